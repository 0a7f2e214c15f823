"""An option has one declaration. Parsing, reasons and tables come from the declaration."""

from dataclasses import dataclass, fields

import pytest

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.net import SASL_OPTIONS
from spark_kafka_source.net.sasl import SaslSettings
from spark_kafka_source.settings import Settings, setting
from spark_kafka_source.spark import sasl_options
from spark_kafka_source.spark.all_options import OF_KAFKA, OPTIONS
from spark_kafka_source.spark.declaration import (
    Option,
    Use,
    combined,
    of_kafka,
    option,
    options_of,
    read_by,
    read_options,
    reasons_of_others,
)
from spark_kafka_source.spark.kinds import Kind, Texts, byte_size, duration_ms, if_given, like
from spark_kafka_source.spark.source.options import OF_A_MEMBER, SourceOptions
from tests.spark.options_table import MARKS, REFERENCE, reference


def _wanted(texts: Texts) -> str:
    return f"{sorted(texts)}"


@dataclass(frozen=True, slots=True)
class Declaring:
    known: str
    tasks: int = option("minTasks", like(4, minimum=1), "how many")
    most: int | None = option("maxRows", if_given(like(9)), "at most")
    both: tuple[int, int] = combined(
        lambda a, b: (a, b), Option("First", like(1), ""), Option("Second", like(2), "")
    )
    names: str = read_by(_wanted, Option("names", like(""), ""))


def test_a_field_is_all_that_an_option_takes() -> None:
    assert [each.name for each in options_of(Declaring)] == [
        "minTasks", "maxRows", "First", "Second", "names",
    ]  # fmt: skip
    texts = {"mintasks": "7", "maxrows": " 5 ", "second": "3"}
    found = read_options(Declaring, texts, known="given")
    assert found == Declaring("given", 7, 5, (1, 3), "['maxrows', 'mintasks', 'second']")
    assert read_options(Declaring, {}, known="") == Declaring("", 4, None, (1, 2), "[]")


def test_options_are_read_in_the_order_of_the_fields() -> None:
    with pytest.raises(ConfigurationError, match="'minTasks': found '0'"):
        read_options(Declaring, {"maxrows": "x", "mintasks": "0"}, known="")


OF_EACH = (
    Option("reads", like(""), ""),
    Option("readsStreams", like(""), "", Use.STREAM_READ, instead="'writes' does it"),
    Option("writes", like(""), "", Use.WRITE, instead="'reads' does it"),
    Option("does", like(""), "", Use.BOTH),
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
        (like(True), "`true`, `false`", "true"),
        (like(8, minimum=1), "a whole number from 1", "8"),
        (if_given(like(8, minimum=1)), "a whole number from 1", ""),
        (like(Use.READ), ", ".join(f"`{each}`" for each in Use), str(Use.READ)),
        (byte_size("64m", range(2 << 20, (1 << 30) + 1)), "bytes, as `64m`, `2m` to `1g`", "64m"),
        (byte_size("64m", range(1, 2**63)), "bytes, as `64m`", "64m"),
        (duration_ms("15m"), "ms, or a number with `ms`, `s`, `m`, `min`, `h`, `d`", "15m"),
    ],
)
def test_what_a_kind_takes_in_words(kind: Kind[object], takes: str, default: str) -> None:
    assert (kind.takes, kind.default) == (takes, default)


@dataclass(frozen=True, slots=True)
class Kafkas:
    linger_ms: int = setting(5, minimum=1, meaning="how long")
    acks: str = setting("all")


def test_kafkas_settings_are_options_with_defaults_of_ours() -> None:
    linger, acks = of_kafka(Kafkas, Use.WRITE, {"acks": "1"})
    assert (linger.name, linger.meaning, linger.use) == ("kafka.linger.ms", "how long", Use.WRITE)
    assert (linger.kind.takes, acks.kind.default) == ("a whole number from 1", "1")
    with pytest.raises(ConfigurationError, match="from 1 to 2147483647, as in '5'"):
        linger.of({"kafka.linger.ms": str(2**31)})


# -- options of the source -------------------------------------------------------------------------


def test_each_option_is_declared_once_and_says_what_it_means() -> None:
    names = [each.name.lower() for each in (*OPTIONS, *OF_KAFKA)]
    assert len(names) == len(set(names))
    for each in OPTIONS:
        assert each.meaning, each.name
        assert not each.meaning.endswith("."), each.name
        assert "|" not in each.meaning + each.kind.takes, each.name


def test_each_option_of_sasl_has_words() -> None:
    names = [each.name for each in sasl_options.OPTIONS]
    assert sorted(names) == sorted(SASL_OPTIONS)
    assert all(each.meaning and each.kind.takes for each in sasl_options.OPTIONS)


@pytest.mark.parametrize(
    "login",
    [
        {"mechanism": "GSSAPI"},
        {
            "mechanism": "OAUTHBEARER",
            "oauthbearer.token.endpoint.url": "https://a/",
            "oauthbearer.client.credentials.client.id": "id",
            "oauthbearer.client.credentials.client.secret": "secret",
        },
    ],
    ids=lambda login: login["mechanism"],
)
def test_what_the_table_of_sasl_says_is_not_given_is_as_good_as_given(
    login: dict[str, str],
) -> None:
    given = {f"kafka.sasl.{name}": value for name, value in login.items()}
    defaults = {each.name: each.kind.default for each in sasl_options.OPTIONS if each.kind.default}
    with_defaults, without = (
        SaslSettings.from_settings(Settings(each), tls=True) for each in (defaults | given, given)
    )
    assert with_defaults == without


def test_each_field_of_the_source_is_read() -> None:
    by_hand = {"client", "hidden", "typed_columns"}
    assert by_hand == {each.name for each in fields(SourceOptions) if not each.metadata}


def test_what_the_tables_say_is_not_given_is_as_good_as_given() -> None:
    given = {"kafka.group.id": "g", "kafka.bootstrap.servers": "a:1"}
    for each in (*OPTIONS, *OF_KAFKA, *OF_A_MEMBER):
        if each.kind.default:
            by_default = {each.name.lower(): each.kind.default}
            assert each.of(given | by_default) == each.of(given), each.name


def test_the_page_has_the_tables() -> None:
    _, tables, _ = MARKS.split(REFERENCE)
    assert tables == reference(), "run `make options`"
