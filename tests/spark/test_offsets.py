"""Offsets as JSON: one text for the same offsets, and back again without loss."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.errors import UnsupportedVersionError
from spark_kafka_source.spark.offsets import (
    INITIAL,
    Offsets,
    SourceOffset,
    offsets_from_json,
    offsets_to_json,
    parse_offsets_option,
)
from spark_kafka_source.topic_partition import TopicPartition
from tests.spark.settings import A0, A2, A10, B0

TOPIC_PARTITIONS = st.builds(TopicPartition, st.text(max_size=5), st.integers(0, 2**31 - 1))
OFFSETS = st.dictionaries(TOPIC_PARTITIONS, st.integers(0, 2**63 - 1), max_size=8)


def test_sorted_by_topic_then_by_number() -> None:
    text = json.dumps(offsets_to_json({B0: 4, A10: 3, A2: 2, A0: 1}))
    assert text == '{"a": {"0": 1, "2": 2, "10": 3}, "b": {"0": 4}}'


@given(OFFSETS, st.randoms(use_true_random=False))
def test_the_text_does_not_depend_on_the_order(offsets: Offsets, random: Random) -> None:
    shuffled = list(offsets.items())
    random.shuffle(shuffled)
    assert json.dumps(offsets_to_json(dict(shuffled))) == json.dumps(offsets_to_json(offsets))


@given(OFFSETS)
def test_offsets_come_back(offsets: Offsets) -> None:
    assert offsets_from_json(json.loads(json.dumps(offsets_to_json(offsets)))) == offsets


@given(OFFSETS.filter(bool))
def test_an_option_takes_what_the_checkpoint_shows(offsets: Offsets) -> None:
    text = json.dumps(offsets_to_json(offsets))
    assert parse_offsets_option("startingOffsets", text, least=-2) == offsets


@given(OFFSETS, OFFSETS, st.booleans())
def test_a_source_offset_comes_back(offsets: Offsets, starts: Offsets, initial: bool) -> None:
    offset = SourceOffset(offsets, starts, initial)
    text = json.dumps(offset.to_json())
    found = SourceOffset.from_json(json.loads(text))
    assert found == offset
    assert json.dumps(found.to_json()) == text


def test_the_form_in_the_checkpoint() -> None:
    assert SourceOffset({A0: 5}).to_json() == {"version": 1, "offsets": {"a": {"0": 5}}}
    assert SourceOffset({A0: 5}, {A0: 2}).to_json() == {
        "version": 1,
        "offsets": {"a": {"0": 5}},
        "starts": {"a": {"0": 2}},
    }
    assert INITIAL.to_json() == {"version": 1, "offsets": {}, "initial": True}


@pytest.mark.parametrize("version", [2, 0, "1", None])
def test_another_format_version_is_refused_by_name(version: object) -> None:
    found = {"version": version, "offsets": {"a": {"0": 5}}}
    with pytest.raises(UnsupportedVersionError) as refused:
        SourceOffset.from_json(found)
    assert f"format version {version!r}" in str(refused.value)
    assert "reads 1" in str(refused.value)
