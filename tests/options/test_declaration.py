"""An option has one declaration, as a field. Reading, errors, reasons and tables come from it."""

from dataclasses import dataclass
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.options.declaration import (
    Option,
    Settings,
    Use,
    combined,
    held,
    option,
    options_of,
    read_by,
    reasons_of_others,
)
from spark_kafka_source.options.kinds import (
    Kind,
    boolean,
    byte_size,
    choice,
    duration_ms,
    fraction,
    if_given,
    int32,
    int64,
    secret,
    string,
)
from spark_kafka_source.secret import Secret


class Colour(Enum):
    LIGHT_RED = 1
    BLUE = 2

    def __str__(self) -> str:
        return self.name.title()


RACK = Option("kafka.rack.id", string(), "where", Use.BOTH)


@dataclass(frozen=True, slots=True)
class Config:
    where: str
    wait_max_ms: int = option("kafka.wait.max.ms", int32(500, minimum=-1), "how long")
    fast: bool = option("kafka.fast", boolean(False))
    colour: Colour = option("kafka.colour", choice(Colour.BLUE))
    rack_id: str = held(RACK)
    password: Secret = option("kafka.password", secret())
    not_an_option: int = 7


def test_a_field_is_all_that_an_option_takes() -> None:
    assert list(options_of(Config)) == [
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
    config = settings.read(Config, where="here")
    assert config == Config("here", -1, True, Colour.LIGHT_RED, " a ", Secret("canary"))
    assert "canary" not in f"{settings}{config}"


def test_what_is_not_given_is_the_default() -> None:
    assert Settings({}).read(Config, where="here") == Config("here")


def _wanted(settings: Settings) -> str:
    return f"{sorted(settings.values)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaring:
    known: str
    tasks: int = option("minTasks", int64(4, minimum=1), "how many")
    most: int | None = option("maxRows", if_given(int64(9)), "at most")
    both: tuple[int, int] = combined(
        lambda a, b: (a, b), Option("First", int64(1)), Option("Second", int64(2))
    )
    names: str = read_by(_wanted, Option("names", string()))


def test_a_field_may_have_several_options() -> None:
    assert list(options_of(Declaring)) == ["minTasks", "maxRows", "First", "Second", "names"]
    settings = Settings({"mintasks": "7", "maxrows": " 5 ", "second": "3"})
    config = settings.read(Declaring, known="given")
    names = "['maxrows', 'mintasks', 'second']"
    assert config == Declaring(known="given", tasks=7, most=5, both=(1, 3), names=names)
    assert Settings({}).read(Declaring, known="") == Declaring(
        known="", tasks=4, most=None, both=(1, 2), names="[]"
    )


def test_options_are_read_in_the_order_of_the_fields() -> None:
    with pytest.raises(ConfigurationError, match="'minTasks': found '0'"):
        Settings({"maxrows": "x", "mintasks": "0"}).read(Declaring, known="")


@pytest.mark.parametrize(
    ("name", "value", "message"),
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
    name: str, value: str, message: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Settings({name: value}).read(Config, where="here")
    assert refused.value.option == name
    assert message in str(refused.value)


def test_options_of_sparks_keep_their_capitals_in_errors() -> None:
    settings = Settings({"minpartitions": "9223372036854775807", "maxwait": "x"})
    assert Option("minPartitions", int64(8)).of(settings) == 2**63 - 1
    with pytest.raises(ConfigurationError, match="'maxWait': found 'x'"):
        Option("maxWait", int64(8)).of(settings)


def test_what_may_be_a_password_in_the_wrong_place_is_not_shown() -> None:
    colour = Option("kafka.security.colour", choice(Colour.BLUE))
    for value, shown in (("hunter2", "*********(redacted)"), ("blu", "'blu'")):
        with pytest.raises(ConfigurationError) as refused:
            colour.of(Settings({colour.name: value}))
        assert f"found {shown}. Give one of" in str(refused.value)


@given(st.integers(-(2**70), 2**70), st.integers(-5, 5), st.integers(2**31, 2**63 - 1))
def test_a_number_is_read_within_its_bounds(number: int, minimum: int, maximum: int) -> None:
    declared = Option("a", int32(1, minimum, maximum))
    settings = Settings({"a": str(number)})
    if minimum <= number <= maximum:
        assert declared.of(settings) == number
    else:
        with pytest.raises(ConfigurationError):
            declared.of(settings)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for name in options_of(Config):
        try:
            Settings({name: text}).read(Config, where="here")
        except ConfigurationError as refused:
            assert refused.option == name


def test_options_of_another_service_begin_with_its_own_prefix() -> None:
    assert next(iter(options_of(Config, "other."))) == "other.kafka.wait.max.ms"
    settings = Settings({"other.kafka.wait.max.ms": "7", "kafka.wait.max.ms": "8"})
    assert settings.read(Config, "other.", where="here") == Config("here", 7)
    assert settings.read(Config, where="here") == Config("here", 8)
    with pytest.raises(ConfigurationError, match=r"'other\.kafka\.wait\.max\.ms'"):
        Settings({"other.kafka.wait.max.ms": "x"}).read(Config, "other.", where="here")


def test_an_option_says_its_own_use_or_its_configuration_does() -> None:
    uses = {name: each.use for name, each in options_of(Config, use=Use.WRITE).items()}
    assert uses["kafka.rack.id"] is Use.BOTH
    assert uses["kafka.fast"] is Use.WRITE


OF_EACH = (
    Option("reads", string(), "", Use.READ),
    Option("readsStreams", string(), "", Use.STREAM_READ, instead="'writes' does it"),
    Option("writes", string(), "", Use.WRITE, instead="'reads' does it"),
    Option("does", string(), "", Use.BOTH),
)


def test_what_is_for_another_use_has_a_reason() -> None:
    assert reasons_of_others(OF_EACH, Use.READ) == {"writes": "it is for writing; 'reads' does it"}
    assert reasons_of_others(OF_EACH, Use.WRITE) == {
        "reads": "it is for reading",
        "readsstreams": "it is for reading; 'writes' does it",
    }


@pytest.mark.parametrize(
    ("kind", "takes", "default"),
    [
        (boolean(True), "`true`, `false`", "true"),
        (int32(8, minimum=1), "a whole number from 1", "8"),
        (int32(8, maximum=9), "a whole number from 0 to 9", "8"),
        (if_given(int64(8, minimum=1)), "a whole number from 1", ""),
        (fraction(0.8, 0.5, 1.0), "0.5 to 1.0", "0.8"),
        (choice(Use.READ), ", ".join(f"`{each}`" for each in Use), str(Use.READ)),
        (string("x"), "a text", "x"),
        (secret(), "a secret text", ""),
        (byte_size("64m", range(2 << 20, (1 << 30) + 1)), "bytes, as `64m`, `2m` to `1g`", "64m"),
        (byte_size("64m", range(1, 2**63)), "bytes, as `64m`", "64m"),
        (duration_ms("15m"), "ms, or a number with `ms`, `s`, `m`, `min`, `h`, `d`", "15m"),
    ],
)
def test_what_a_kind_takes_in_words(kind: Kind[object], takes: str, default: str) -> None:
    assert (kind.takes, kind.default) == (takes, default)
