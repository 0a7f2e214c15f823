"""Settings are declared once, as fields. The type of a default decides how an option is read."""

from dataclasses import dataclass
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.secret import Secret
from spark_kafka_source.settings import Settings, setting, settings_of

NOTHING = Secret("")


class Colour(Enum):
    LIGHT_RED = 1
    BLUE = 2

    def __str__(self) -> str:
        return self.name.title()


@dataclass(frozen=True, slots=True)
class Config:
    where: str
    wait_max_ms: int = setting(500, minimum=-1)
    fast: bool = setting(False)
    colour: Colour = setting(Colour.BLUE)
    rack_id: str = setting("")
    password: Secret = setting(NOTHING)
    not_an_option: int = 7


def test_a_field_is_all_that_a_setting_takes() -> None:
    assert list(settings_of(Config)) == [
        "kafka.wait.max.ms", "kafka.fast", "kafka.colour", "kafka.rack.id", "kafka.password",
    ]  # fmt: skip
    values = {
        "kafka.wait.max.ms": " -1 ",
        "kafka.fast": "True",
        "kafka.colour": " light_RED",
        "kafka.rack.id": " a ",
        "kafka.password": " canary ",
        "kafka.not.an.option": "8",
        "kafka.where": "there",
    }
    settings = Settings(values)
    found = settings.read(Config, where="here")
    assert found == Config("here", -1, True, Colour.LIGHT_RED, " a ", Secret("canary"))
    assert "canary" not in f"{settings}{found}"


def test_what_is_not_given_is_the_default() -> None:
    assert Settings({}).read(Config, where="here") == Config("here")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("kafka.wait.max.ms", "-2", "found '-2'. Give a whole number from -1 to 2147483647, as in"),
        ("kafka.wait.max.ms", "2147483648", "from -1 to 2147483647, as in '500'"),
        ("kafka.fast", "yes", "found 'yes'. Give 'true' or 'false'"),
        ("kafka.colour", "Red", "found 'Red'. Give one of Light_Red, Blue"),
        ("kafka.colour", "kip848", "found 'kip848'. Give one of Light_Red, Blue"),
        ("kafka.wait.max.ms", "9" * 5_000, f"found '{'9' * 100}'..."),
    ],
    ids=lambda value: value[:40],
)
def test_an_error_names_the_option_the_fault_and_what_is_right(
    option: str, value: str, message: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Settings({option: value}).read(Config, where="here")
    assert refused.value.option == option
    assert message in str(refused.value)


def test_options_of_sparks_keep_their_capitals_in_errors() -> None:
    settings = Settings({"minpartitions": "9223372036854775807", "maxwait": "x"})
    assert settings.integer("minPartitions", 8) == 2**63 - 1
    with pytest.raises(ConfigurationError, match="'maxWait': found 'x'"):
        settings.integer("maxWait", 8)


def test_what_may_be_a_password_in_the_wrong_place_is_not_shown() -> None:
    for value, shown in (("hunter2", "*********(redacted)"), ("blu", "'blu'")):
        with pytest.raises(ConfigurationError) as refused:
            Settings({"kafka.security.colour": value}).choice("kafka.security.colour", Colour.BLUE)
        assert f"found {shown}. Give one of" in str(refused.value)


@given(st.integers(-(2**70), 2**70), st.integers(-5, 5), st.integers(2**31, 2**63 - 1))
def test_a_number_is_read_within_its_bounds(number: int, minimum: int, maximum: int) -> None:
    settings = Settings({"a": str(number)})
    if minimum <= number <= maximum:
        assert settings.integer("a", 1, minimum=minimum, maximum=maximum) == number
    else:
        with pytest.raises(ConfigurationError):
            settings.integer("a", 1, minimum=minimum, maximum=maximum)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for option in settings_of(Config):
        try:
            Settings({option: text}).read(Config, where="here")
        except ConfigurationError as refused:
            assert refused.option == option


def test_settings_of_another_service_begin_with_its_own_prefix() -> None:
    assert next(iter(settings_of(Config, "other."))) == "other.wait.max.ms"
    settings = Settings({"other.wait.max.ms": "7", "kafka.wait.max.ms": "8"})
    assert settings.read(Config, "other.", where="here") == Config("here", 7)
    assert settings.read(Config, where="here") == Config("here", 8)
