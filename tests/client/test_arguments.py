"""Settings as keyword arguments, for all kinds of clients."""

from enum import Enum
from pathlib import PurePosixPath
from typing import Any

import pytest

from spark_kafka_source.client import ClientConfig
from spark_kafka_source.client.arguments import Vocabulary, numbered
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.options.declaration import Option, Options, Settings, named
from spark_kafka_source.options.judgement import OtherNames
from spark_kafka_source.options.kinds import string
from spark_kafka_source.secret import Secret
from spark_kafka_source.spelling import spelt


def _options(*names: str) -> Options:
    return named(*(Option(name, string()) for name in names))


VOCABULARY = Vocabulary(
    kind="reader",
    known=_options("kafka.a.b", "kafka.c.Dee", "kafka.e"),
    others=lambda: OtherNames(
        reasons={"kafka.x": "'kafka.a.b' does it"},
        refused={"kafka.y": "Give 'kafka.c.Dee'"},
        done={"kafka.x": "yes", "kafka.y": ""},
        meant={"kafka.q": "kafka.e"},
        instead={"kafka.w": "Ask for it"},
    ),
)


class Color(Enum):
    RED = 1

    def __str__(self) -> str:
        return "as kafka says it"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", "x"),
        (1, "1"),
        (1.5, "1.5"),
        (True, "True"),
        (Secret("s"), "s"),
        (Color.RED, "as kafka says it"),
        (PurePosixPath("/a"), "/a"),
        (["a", 1, Color.RED], "a,1,as kafka says it"),
        (("a",), "a"),
    ],
)
def test_values_are_texts(value: object, text: str) -> None:
    assert VOCABULARY.settings({"a_b": value}).values == {"kafka.a.b": text}


def test_names_have_dots_or_underscores_in_any_case() -> None:
    given = {"A_b": 1, "c.DEE": 2, "e": None}
    assert VOCABULARY.settings(given).values == {"kafka.a.b": "1", "kafka.c.dee": "2"}


@pytest.mark.parametrize(
    ("arguments", "option", "text"),
    [
        ({"a_b": 1, "a.b": 1}, "kafka.a.b", "is given twice"),
        ({"a_b": 1, "A.b": None}, "kafka.a.b", "is given twice"),
        ({"a_b": {}}, "kafka.a.b", "found a value of type dict"),
        ({"a_b": [None]}, "kafka.a.b", "found a value of type NoneType"),
        ({"y": 1}, "kafka.y", "is not supported. Give 'kafka.c.Dee'"),
        ({"q": 1}, "kafka.q", "is no configuration of this reader. Did you mean 'kafka.e'?"),
        ({"c.de": 1}, "kafka.c.de", "Did you mean 'kafka.c.Dee'?"),
        ({"w": 1}, "kafka.w", "is no configuration of this reader. Ask for it"),
        ({"nothing.like.it": 1}, "kafka.nothing.like.it", "See docs/options.md"),
    ],
)
def test_what_cannot_be_used(arguments: dict[str, Any], option: str, text: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        VOCABULARY.settings(arguments)
    assert refused.value.option == option
    assert text in str(refused.value)


def test_what_has_no_effect_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    arguments = {"x": "no"}
    with spelt(VOCABULARY.spelling(arguments)):
        VOCABULARY.settings(arguments)
    assert caplog.messages == ["'x' has no effect here: 'a_b' does it"]


def test_what_is_done_anyway_is_not_spoken_of(caplog: pytest.LogCaptureFixture) -> None:
    VOCABULARY.settings({"x": " Yes ", "y": ""})
    assert not caplog.messages


def test_unknown_names_of_security_are_left_to_who_reads_the_others() -> None:
    assert VOCABULARY.settings({"ssl_kay": 1, "sasl_kay": 1}).values


def test_names_are_spelt_as_the_first_of_the_arguments() -> None:
    found = VOCABULARY.spelling(["a_B", "a.b", "unknown.too"])
    assert found["kafka.a.b"] == "a_B"
    assert found["kafka.unknown.too"] == "unknown.too"
    assert found["kafka.c.Dee"] == "c.Dee"
    assert VOCABULARY.spelling(["a_b"])["kafka.c.Dee"] == "c_Dee"
    assert VOCABULARY.spelling([])["kafka.sasl.*"] == "sasl_*"
    assert {"kafka.x", "kafka.y"} <= found.keys()


def test_a_client_id_that_is_given_stays() -> None:
    config = ClientConfig(())
    assert numbered(config, Settings({"kafka.client.id": "mine"}), "g") is config
    first = numbered(config, Settings({}), "").connection.client_id
    second = numbered(config, Settings({}), "g").connection.client_id
    number = int(first.removeprefix("spark-kafka-source-"))
    assert second == f"spark-kafka-source-g-{number + 1}"


OWN = Vocabulary(
    kind="reader",
    known=_options("kafka.a.b"),
    others=OtherNames,
    own=_options("value.format", "badRecords"),
)


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("value_format", "value.format"),
        ("Value.Format", "value.format"),
        ("bad_records", "badrecords"),
        ("badRecords", "badrecords"),
        ("a_b", "kafka.a.b"),
        ("kafka_a_b", "kafka.kafka.a.b"),
        ("value_size", "kafka.value.size"),
    ],
)
def test_options_that_kafka_has_not_are_none_of_its_settings(name: str, option: str) -> None:
    assert OWN.option(name) == option


def test_they_are_read_and_named_as_they_are_written() -> None:
    given = {"value_format": "x", "badRecords": "null"}
    assert OWN.settings(given).values == {"value.format": "x", "badrecords": "null"}
    found = OWN.spelling(given)
    assert (found["value.format"], found["badRecords"]) == ("value_format", "badRecords")
    assert OWN.spelling(["a_b"])["badRecords"] == "bad_records"
    assert OWN.spelling(["a.b"])["badRecords"] == "badRecords"
    assert OWN.knows("bad_records")
    assert not OWN.knows("bad")
    with pytest.raises(ConfigurationError, match="is given twice"):
        OWN.settings({"bad_records": 1, "badRecords": 1})
    with pytest.raises(ConfigurationError, match=r"Did you mean 'value\.format'"):
        OWN.settings({"value_fromat": 1})
