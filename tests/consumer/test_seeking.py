"""`seek` and `position` of one and of several partitions."""

from typing import Any

import pytest

from spark_kafka_source import KafkaConsumer, OffsetAndMetadata, TopicPartition
from spark_kafka_source.errors import LocalError
from spark_kafka_source.protocol.messages.list_offsets import ListOffsetsRequest
from spark_kafka_source.testing.memory import MemoryBroker
from tests.consumer.consumers import T0, T1, T2, consuming, fill, polled

pytestmark = pytest.mark.memory(nodes=3)


@pytest.fixture
def filled(broker: MemoryBroker) -> MemoryBroker:
    broker.create_topic("t", 3)
    fill(broker, T0, 2)
    fill(broker, T1, 2)
    return broker


def test_several_partitions_move_at_once(filled: MemoryBroker) -> None:
    with consuming(filled, T0, T1) as consumer:
        consumer.seek({T0: 18, T1: OffsetAndMetadata(15, metadata="mine")})
        assert consumer.position([T0, T1]) == {T0: 18, T1: 15}
        assert sorted(polled(consumer, 7)) == [
            *((T0, each) for each in (18, 19)),
            *((T1, each) for each in range(15, 20)),
        ]
        consumer.seek({})
        assert consumer.position(T0) == 20


def test_an_epoch_comes_with_the_offset_or_alone(filled: MemoryBroker) -> None:
    with consuming(filled, T0, T1) as consumer:
        consumer.seek(T0, OffsetAndMetadata(3, 7))
        consumer.seek(T1, 4, leader_epoch=8)
        assert consumer._positions[T0].next == (3, 7)
        assert consumer._positions[T1].next == (4, 8)
        consumer.seek(T0, OffsetAndMetadata(3, 7), leader_epoch=9)
        assert consumer._positions[T0].next == (3, 9)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({T0: 9, T1: -1}, "Cannot seek to offset -1 of t-1"),
        ({T0: 9, T1: "5"}, "offset '5' of t-1: give a whole number, or an OffsetAndMetadata"),
        ({T0: 9, T1: True}, "offset True of t-1"),
        ({T0: 9, T1: None}, "Cannot seek in t-1 without an offset: give one, or say"),
        ({T0: 9, T2: 5}, "t-2 is not assigned"),
        ({T0: 9, "t": 5}, "found 't'"),
        ([T0, T1], "give a dict of offsets by partition"),
        (T0, "Cannot seek in t-0 without an offset"),
    ],
    ids=["negative", "text", "truth", "none", "unassigned", "topic", "list", "alone"],
)
def test_after_a_fault_in_one_partition_none_has_moved(
    filled: MemoryBroker, given: Any, said: str
) -> None:
    with consuming(filled, T0, T1) as consumer:
        consumer.seek({T0: 1, T1: 2})
        with pytest.raises(LocalError, match=said):
            consumer.seek(given)
        assert consumer.position([T1, T0]) == {T0: 1, T1: 2}


def test_nothing_is_paused_where_one_partition_is_not_assigned(filled: MemoryBroker) -> None:
    with consuming(filled, T0, T1) as consumer:
        with pytest.raises(LocalError, match="t-2 is not assigned"):
            consumer.pause(T0, T2)
        assert not consumer.paused()


def test_positions_that_are_not_known_are_asked_for_at_once(filled: MemoryBroker) -> None:
    with consuming(filled, T0, T1, T2, auto_offset_reset="latest") as consumer:
        assert consumer.position([]) == {}
        assert consumer.position([T0, T1, T2]) == {T0: 20, T1: 20, T2: 0}
        asked = filled.requests(ListOffsetsRequest)
        # One request for each leader.
        assert sorted(p.partition_index for r in asked for t in r.topics for p in t.partitions) == [
            0,
            1,
            2,
        ]
        with pytest.raises(LocalError, match="t-9 is not assigned"):
            consumer.position([T0, TopicPartition("t", 9)])


@pytest.mark.parametrize("given", [5, [T0], "t"], ids=["number", "list", "text"])
def test_a_commit_takes_offsets_alike(given: Any) -> None:
    with KafkaConsumer(bootstrap_servers="127.0.0.1:1", group_id="g") as consumer:
        with pytest.raises(LocalError, match=r"Cannot commit .*: give a dict"):
            consumer.commit(given)
        with pytest.raises(LocalError, match="Cannot commit offset '1' of t-0"):
            consumer.commit_async({T0: "1"})  # type: ignore[dict-item]
