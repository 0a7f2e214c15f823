"""The offset in a checkpoint. Equal offsets have equal texts, and each old format is readable.

The texts of older formats are literals. Checkpoints contain them, so they never change.
"""

import json
from random import Random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.errors import LocalError, UnsupportedVersionError
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.spark.source.source_offset import (
    INITIAL,
    CheckpointError,
    SourceOffset,
    by_topic,
)
from spark_kafka_source.topic_partition import TopicPartition
from tests.spark.settings import A0, A1, A2, A10, B0
from tests.spark.source.strategies import OFFSETS, TOPIC_PARTITIONS

ID, OTHER_ID = UUID(int=1), UUID(int=2)
SOURCE_OFFSETS = st.builds(
    SourceOffset,
    OFFSETS,
    OFFSETS,
    st.dictionaries(TOPIC_PARTITIONS, st.integers(0, 2**31 - 1), max_size=8),
    st.dictionaries(st.text(max_size=5), st.uuids(), max_size=4),
    st.booleans(),
    st.text(max_size=5),
    OFFSETS,
)

# Texts of release 0.1.0 (before format 2), of Spark's own connector, and of the present code.
FORMAT_1 = (
    '{"version": 1, "offsets": {"a": {"0": 5, "2": 3}, "b": {"0": 4}}, "starts": {"a": {"0": 2}}}'
)
FORMAT_1_INITIAL = '{"version": 1, "offsets": {}, "initial": true}'
PEER = '{"a":{"10":23,"0":5},"b":{"0":4}}'
FORMAT_2 = (
    '{"version": 2, "offsets": {"a": {"0": 5, "10": 23}}, "starts": {"a": {"0": 2}}, '
    '"leaderEpochs": {"a": {"0": 7}}, "topicIds": {"a": "00000000-0000-0000-0000-000000000001"}}'
)

FORMAT_2_OF_CLUSTER = (
    '{"version": 2, "offsets": {"a": {"0": 5}}, "clusterId": "MkU3OEVBNTcwNTJENDM2Qg"}'
)
FORMAT_2_WITH_ENDS = '{"version": 2, "offsets": {"a": {"0": 5}}, "logEnds": {"a": {"0": 9}}}'


def read(text: str) -> SourceOffset:
    return SourceOffset.from_json(json.loads(text))


def written(offset: SourceOffset) -> str:
    return json.dumps(offset.to_json())


# -- writing ---------------------------------------------------------------------------------------


def test_sorted_by_topic_then_by_number() -> None:
    assert json.dumps(by_topic({B0: 4, A10: 3, A2: 2, A0: 1})) == (
        '{"a": {"0": 1, "2": 2, "10": 3}, "b": {"0": 4}}'
    )


def test_the_form_in_the_checkpoint() -> None:
    offset = SourceOffset({A10: 23, A0: 5}, {A0: 2}, {A0: 7}, {"a": ID})
    assert written(offset) == FORMAT_2
    assert read(FORMAT_2_OF_CLUSTER) == SourceOffset({A0: 5}, cluster_id="MkU3OEVBNTcwNTJENDM2Qg")
    assert written(read(FORMAT_2_OF_CLUSTER)) == FORMAT_2_OF_CLUSTER
    assert read(FORMAT_2_WITH_ENDS) == SourceOffset({A0: 5}, log_ends={A0: 9})
    assert written(read(FORMAT_2_WITH_ENDS)) == FORMAT_2_WITH_ENDS
    assert written(SourceOffset({A0: 5})) == '{"version": 2, "offsets": {"a": {"0": 5}}}'
    assert written(INITIAL) == '{"version": 2, "offsets": {}, "initial": true}'


@given(SOURCE_OFFSETS, st.randoms(use_true_random=False))
def test_the_text_does_not_depend_on_the_order(offset: SourceOffset, random: Random) -> None:
    def shuffled(found: Any) -> Any:
        items = list(found.items())
        random.shuffle(items)
        return dict(items)

    other = SourceOffset(
        shuffled(offset.offsets),
        shuffled(offset.starts),
        shuffled(offset.leader_epochs),
        shuffled(offset.topic_ids),
        offset.initial,
        offset.cluster_id,
        shuffled(offset.log_ends),
    )
    assert written(other) == written(offset)


@given(SOURCE_OFFSETS)
def test_a_source_offset_comes_back(offset: SourceOffset) -> None:
    assert read(written(offset)) == offset
    assert written(read(written(offset))) == written(offset)


# -- reading ---------------------------------------------------------------------------------------


def test_format_2_is_read() -> None:
    assert read(FORMAT_2) == SourceOffset({A0: 5, A10: 23}, {A0: 2}, {A0: 7}, {"a": ID})


def test_format_1_is_read() -> None:
    assert read(FORMAT_1) == SourceOffset({A0: 5, A2: 3, B0: 4}, {A0: 2})
    assert read(FORMAT_1_INITIAL) == INITIAL


def test_what_sparks_own_connector_wrote_is_read() -> None:
    assert read(PEER) == SourceOffset({A0: 5, A10: 23, B0: 4})
    assert read('{"topic":{"0":23}}') == SourceOffset({TopicPartition("topic", 0): 23})
    assert read("{}") == SourceOffset({})


@given(OFFSETS)
def test_whatever_sparks_own_connector_wrote_is_read(offsets: Offsets) -> None:
    assert read(json.dumps(by_topic(offsets))) == SourceOffset(offsets)


@pytest.mark.parametrize("name", ["version", "offsets", "starts", "initial"])
def test_a_topic_may_have_any_name(name: str) -> None:
    offset = SourceOffset({TopicPartition(name, 0): 23, A0: 5}, topic_ids={name: ID})
    assert read(f'{{"{name}":{{"0":23}},"a":{{"0":5}}}}').offsets == offset.offsets
    assert read(written(offset)) == offset


@pytest.mark.parametrize("version", [3, 0, -1, 2**70])
def test_another_format_version_is_refused_by_name(version: int) -> None:
    with pytest.raises(UnsupportedVersionError) as refused:
        SourceOffset.from_json({"version": version, "offsets": {"a": {"0": 5}}, "new": 1})
    assert f"format version {version};" in str(refused.value)
    assert "reads 1 to 2" in str(refused.value)


GARBAGE: list[Any] = [
    {"version": "1", "offsets": {"a": {"0": 5}}},
    {"version": None, "offsets": {"a": {"0": 5}}},
    {"version": True, "offsets": {"a": {"0": 5}}},
    {"version": 1.0, "offsets": {"a": {"0": 5}}},
    {"version": 2},
    {"version": 2, "offsets": None},
    {"version": 2, "offsets": [1]},
    {"version": 2, "offsets": {"a": 5}},
    {"version": 2, "offsets": {"a": ["0"]}},
    {"version": 2, "offsets": {}, "starts": {"a": {"0": None}}},
    {"version": 2, "offsets": {}, "leaderEpochs": {"a": {"0": -1}}},
    {"version": 2, "offsets": {}, "topicIds": {"a": "no id"}},
    {"version": 2, "offsets": {}, "topicIds": {"a": 5}},
    {"version": 2, "offsets": {}, "topicIds": {"a": None}},
    {"version": 2, "offsets": {}, "topicIds": ["a"]},
    {"version": 2, "offsets": {}, "clusterId": None},
    {"version": 2, "offsets": {}, "clusterId": 5},
    {"version": 2, "offsets": {}, "logEnds": {"a": {"0": -1}}},
    {"a": 5},
    {"a": "0"},
    {"a": {"0": "5"}},
    {"a": {"0": True}},
    {"a": {"0": 5.0}},
    {"a": {"0": -1}},
    {"a": {"0": 2**63}},
    {"a": {"x": 5}},
    {"a": {"-1": 5}},
    {"a": {"00": 5}},
    {"a": {"1_0": 5}},
    {"a": {"9" * 5_000: 5}},
    [],
    None,
    "text",
]


@pytest.mark.parametrize("found", GARBAGE, ids=lambda found: str(found)[:60])
def test_garbage_is_refused_with_what_would_be_right(found: Any) -> None:
    with pytest.raises(CheckpointError) as refused:
        SourceOffset.from_json(found)
    assert isinstance(refused.value, LocalError)
    assert '{"topic":{"0":23' in str(refused.value)
    assert len(str(refused.value)) < 500


NAMES = st.sampled_from(
    [
        *("version", "offsets", "starts", "leaderEpochs", "topicIds", "clusterId", "logEnds"),
        *("initial", "firstOfRun"),
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(NAMES | st.sampled_from(["a", "0", "1", "01"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_read_or_refused_with_a_typed_error(found: Any) -> None:
    try:
        offset = SourceOffset.from_json(found)
    except (CheckpointError, UnsupportedVersionError):
        return
    assert read(written(offset)) == offset


# -- order of offsets ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (SourceOffset({A0: 5}), SourceOffset({A0: 5}), True),
        (SourceOffset({A0: 5}), SourceOffset({A0: 7}), True),
        (SourceOffset({A0: 5, A1: 3}), SourceOffset({A0: 7}), True),
        (SourceOffset({A0: 5}), SourceOffset({A0: 4}), False),
        (SourceOffset({A0: 5}), SourceOffset({A0: 4}, starts={A0: 4}), True),
        (SourceOffset({A0: 5}), SourceOffset({A0: 7, A1: 2}), False),
        (SourceOffset({A0: 5}), SourceOffset({A0: 7, A1: 2}, starts={A1: 0}), True),
        (INITIAL, SourceOffset({A0: 5}), False),
        (INITIAL, SourceOffset({A0: 5}, starts={A0: 5}), True),
        (SourceOffset({A0: 5}), SourceOffset({A0: 7}, topic_ids={"a": ID}), True),
        (
            SourceOffset({A0: 5}, topic_ids={"a": OTHER_ID}),
            SourceOffset({A0: 7}, topic_ids={"a": ID}),
            False,
        ),
        (
            SourceOffset({A0: 5}, topic_ids={"a": OTHER_ID}),
            SourceOffset({A0: 7}, starts={A0: 0}, topic_ids={"a": ID}),
            True,
        ),
    ],
)
def test_an_offset_says_itself_where_it_does_not_go_on(
    before: SourceOffset, after: SourceOffset, expected: bool
) -> None:
    assert after.follows(before) is expected
