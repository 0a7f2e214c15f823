"""Offsets in options. The JSON of a checkpoint is a valid value; malformed values are refused."""

import json

import pytest
from hypothesis import given

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.secret import shown
from spark_kafka_source.spark.source.offsets import (
    Offsets,
    is_partition_number,
    parse_offsets_option,
)
from spark_kafka_source.spark.source.source_offset import by_topic
from tests.spark.settings import A0, A1
from tests.spark.source.strategies import OFFSETS

WORDS = {"earliest": -2, "latest": -1}


@given(OFFSETS.filter(bool))
def test_an_option_takes_what_the_checkpoint_shows(offsets: Offsets) -> None:
    text = json.dumps(by_topic(offsets))
    found = parse_offsets_option("startingOffsets", text, words=WORDS, allowed="any")
    assert found == (offsets, {})


@pytest.mark.parametrize("least", [-2, -1])
def test_no_number_is_less_than_the_least(least: int) -> None:
    text = '{"a":{"0":%d,"1":%d}}'
    words = {word: offset for word, offset in WORDS.items() if offset >= least}
    found, _ = parse_offsets_option("option", text % (least, 5), words=words, allowed="such")
    assert found == {A0: least, A1: 5}
    with pytest.raises(ConfigurationError, match=r"'option': .*partition 1 .*Give such, as in"):
        parse_offsets_option("option", text % (least, least - 1), words=words, allowed="such")


def test_a_topic_may_have_one_word_for_all_partitions() -> None:
    text = '{"a":{"0":7},"b":"Earliest","c":" latest "}'
    found = parse_offsets_option("option", text, words=WORDS, allowed="any")
    assert found == ({A0: 7}, {"b": -2, "c": -1})
    only_words = parse_offsets_option("option", '{"b":"latest"}', words=WORDS, allowed="any")
    assert only_words == ({}, {"b": -1})


@pytest.mark.parametrize(
    "text",
    [
        '{"b":"soon"}',
        '{"b":""}',
        '{"b":"-2"}',
        '{"b":-2}',
        '{"b":null}',
        '{"a":{},"b":"latest"}',
        "{}",
    ],
)
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="'option': "):
        parse_offsets_option("option", text, words=WORDS, allowed="any")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((text, True) for text in ("0", "7", "10", "2147483647")),
        *((text, False) for text in ("", "-1", "+1", "01", " 1", "1_0", "٣", "2147483648")),
        ("9" * 5_000, False),
    ],
)
def test_a_partition_has_a_number_written_in_one_way(text: str, expected: bool) -> None:
    assert is_partition_number(text) is expected


def test_a_text_is_shown_in_quotes_and_cut() -> None:
    assert shown("a'b") == '"a\'b"'
    assert shown("x" * 5_000) == "'" + "x" * 100 + "'..."
