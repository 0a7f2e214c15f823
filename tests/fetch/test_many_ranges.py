"""Many ranges in one task: few round trips, bounded memory, and separate failures."""

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import BootstrapError, KafkaTimeoutError, error_named
from spark_kafka_source.fetch import FetchConfig, OffsetRange, RangeReader, TopicGoneError
from spark_kafka_source.protocol.messages.fetch import FetchRequest
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
)
from spark_kafka_source.records import to_arrow
from spark_kafka_source.testing.memory import MemoryBroker, PartitionLog
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import longer_and_longer
from tests.fetch.reading import fetches_of

pytestmark = pytest.mark.memory(nodes=3)

MANY = 64


def ranges_of(ends: Iterable[int], *, topic: str = "t") -> list[OffsetRange]:
    return [OffsetRange(TopicPartition(topic, number), 0, end) for number, end in enumerate(ends)]


def read(reader: RangeReader) -> dict[TopicPartition, list[int]]:
    """Read all. Return the offsets of each partition, in the order of arrival."""
    found: dict[TopicPartition, list[int]] = defaultdict(list)
    for chunk in reader.chunks():
        found[chunk.topic_partition] += to_arrow(chunk)["offset"].to_pylist()
    return found


def whole(ranges: Iterable[OffsetRange]) -> dict[TopicPartition, list[int]]:
    return {each.topic_partition: list(range(each.start, each.end)) for each in ranges}


def fill(logs: Iterable[PartitionLog], records: int, size_bytes: int = 10) -> None:
    for log in logs:
        log.append(*[bytes(size_bytes)] * records)


def on_one_leader(broker: MemoryBroker, partitions: int = MANY) -> list[PartitionLog]:
    logs = broker.create_topic("t", partitions)
    for log in logs:
        log.leader_id = 0
    return logs


def test_small_partitions_of_one_leader_take_at_most_three_round_trips(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    fill(on_one_leader(broker), 3)
    ranges = ranges_of([3] * MANY)
    assert read(RangeReader(client, ranges, FetchConfig())) == whole(ranges)
    asked = Counter(type(each.request) for each in broker.seen)
    assert asked[FetchRequest] == 1
    assert sum(asked.values()) <= 3, asked
    broker.seen.clear()
    assert read(RangeReader(client, ranges, FetchConfig())) == whole(ranges)
    assert len(broker.seen) == 1, "the leaders are known, and the connection is open"


def test_small_ranges_of_large_partitions_take_few_round_trips(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    """One partition fills the first answer. This answer shows the size of a record."""
    for log in on_one_leader(broker):
        for _ in range(300):
            log.append(bytes(10_000))
    ranges = ranges_of([5] * MANY)
    assert read(RangeReader(client, ranges, FetchConfig())) == whole(ranges)
    assert len(broker.requests(FetchRequest)) < 10


def test_each_leader_is_asked_for_all_its_ranges(broker: MemoryBroker, client: KafkaClient) -> None:
    fill(broker.create_topic("t", 12), 3)
    ranges = ranges_of([3] * 12)
    assert read(RangeReader(client, ranges, FetchConfig())) == whole(ranges)
    asked = Counter(each.node_id for each in broker.seen if type(each.request) is FetchRequest)
    assert asked == {0: 1, 1: 1, 2: 1}


def test_an_answer_is_not_larger_however_many_ranges_there_are(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    fill(on_one_leader(broker, 8), 1, 600)
    ranges = ranges_of([1] * 8)
    assert read(RangeReader(client, ranges, fetches_of(1_000))) == whole(ranges)
    assert {each.max_bytes for each in broker.requests(FetchRequest)} == {1_000}


def test_leaders_share_what_may_be_on_its_way(broker: MemoryBroker, client: KafkaClient) -> None:
    fill(broker.create_topic("t", 3), 1, 200)
    ranges = ranges_of([1] * 3)
    config = FetchConfig(max_partition_fetch_bytes=1_000, fetch_max_bytes=1_500)
    assert read(RangeReader(client, ranges, config)) == whole(ranges)
    assert {each.max_bytes for each in broker.requests(FetchRequest)} == {500}


@given(
    sizes=st.lists(st.lists(st.integers(1, 4), max_size=5), min_size=1, max_size=6),
    cuts=st.lists(st.integers(0, 20), max_size=3),
    fetch_bytes=st.integers(1, 400),
)
def test_any_ranges_of_any_partitions_with_any_fetch_size(
    sizes: list[list[int]], cuts: list[int], fetch_bytes: int
) -> None:
    """A range may be cut, so that a task has several ranges of one partition."""
    with MemoryBroker(2) as broker, KafkaClient(broker.config()) as client:
        for log, of_batches in zip(broker.create_topic("t", len(sizes)), sizes, strict=True):
            for size in of_batches:
                log.append(*[b"value"] * size)
        ranges = []
        for each in ranges_of(map(sum, sizes)):
            points = [0, *sorted(cut for cut in cuts if cut < each.end), each.end]
            ranges += [
                OffsetRange(each.topic_partition, start, end) for start, end in pairwise(points)
            ]
        found = read(RangeReader(client, ranges, fetches_of(fetch_bytes)))
        assert found == {
            where: offsets
            for where, offsets in whole(ranges_of(map(sum, sizes))).items()
            if offsets
        }


def test_ranges_of_one_partition_that_do_not_follow_each_other(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    fill(on_one_leader(broker, 2), 9)
    one, other = TopicPartition("t", 0), TopicPartition("t", 1)
    ranges = [OffsetRange(one, 6, 8), OffsetRange(other, 1, 3), OffsetRange(one, 0, 2)]
    assert read(RangeReader(client, ranges, FetchConfig())) == {one: [6, 7, 0, 1], other: [1, 2]}


# -- a range that fails ----------------------------------------------------------------------------


def test_a_partition_without_a_leader_keeps_no_other_waiting(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    logs = broker.create_topic("t", 3)
    for log in logs:
        for _ in range(3):
            log.append(b"a")
    logs[1].leader_id = 77
    found = []
    for chunk in RangeReader(client, ranges_of([3] * 3), FetchConfig()).chunks():
        found.append(chunk.topic_partition.partition)
        if len(found) == 2:
            logs[1].leader_id = 1
    assert sorted(found[:2]) == [0, 2]
    assert found[2] == 1


def test_a_leader_that_is_silent_about_its_log_keeps_no_other_waiting(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    """Its answer comes only once all rows of the others are there."""
    logs = broker.create_topic("t", 3)
    fill(logs, 3)
    logs[1].leader_epoch = 1
    held = broker.hold(OffsetForLeaderEpochRequest)
    ranges = [replace(each, leader_epoch=0) for each in ranges_of([3] * 3)]
    found = []
    for chunk in RangeReader(client, ranges, FetchConfig()).chunks():
        found.append(chunk.topic_partition.partition)
        if sorted(found) == [0, 2]:
            held.release()
    assert sorted(found[:2]) == [0, 2]
    assert found[2] == 1


@pytest.mark.parametrize("pause_ms", [10, 3_600_000])
def test_what_goes_wrong_is_told_once_nothing_else_is_left(
    broker: MemoryBroker, pause_ms: int
) -> None:
    """The error may have come together with the last records of the other partition."""
    logs = broker.create_topic("t", 2)
    fill(logs, 3)
    broker.control(FetchRequest, error_named("REQUEST_TIMED_OUT"), node_id=1, times=None)
    pauses: dict[str, Any] = {"retry_backoff_ms": pause_ms, "retry_backoff_max_ms": pause_ms}
    for timeout_ms in longer_and_longer(500):
        found = []
        with (
            KafkaClient(broker.config(default_api_timeout_ms=timeout_ms, **pauses)) as client,
            pytest.raises((KafkaTimeoutError, BootstrapError)) as caught,
        ):
            for chunk in RangeReader(client, ranges_of([3, 3]), FetchConfig()).chunks():
                found += to_arrow(chunk)["partition"].to_pylist()
        if found and "REQUEST_TIMED_OUT" in str(caught.value):
            break
    assert found == [0, 0, 0]
    assert "Fetch of t-1 at offset 0" in str(caught.value)
    assert "REQUEST_TIMED_OUT" in str(caught.value)


def test_records_that_never_come_are_told_once_nothing_else_is_left(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    fill(on_one_leader(broker, 3), 3)
    reader = RangeReader(
        client, ranges_of([3, 4, 3]), FetchConfig(fetch_max_wait_ms=1), poll_timeout_ms=20
    )
    found = []
    with pytest.raises(KafkaTimeoutError, match=r"Cannot read t-1 \[0, 4\): nothing at offset 3"):
        for chunk in reader.chunks():
            found += to_arrow(chunk)["partition"].to_pylist()
    assert Counter(found) == {0: 3, 1: 3, 2: 3}


def test_a_topic_that_is_gone_is_passed_over_and_others_are_read(
    broker: MemoryBroker, client: KafkaClient, caplog: pytest.LogCaptureFixture
) -> None:
    fill(broker.create_topic("t", 4), 3)
    ranges = [*ranges_of([3] * 4), *ranges_of([3] * 4, topic="gone")]
    with caplog.at_level(logging.WARNING):
        found = read(RangeReader(client, ranges, FetchConfig(), skip_lost=True))
    assert found == whole(ranges[:4])
    assert sorted(each.getMessage()[:6] for each in caplog.records) == [
        f"gone-{number}" for number in range(4)
    ]
    # One that is looked up until it is surely gone takes seven to nine requests, so four of them
    # would take 28 or more. Looked up together they take as many as one, or twice as many if some
    # were missed later than others.
    assert len(broker.requests(MetadataRequest)) < 24
    with pytest.raises(TopicGoneError, match="gone-0 from offset 0"):
        read(RangeReader(client, ranges, FetchConfig()))


def test_where_all_is_gone_and_passed_over_nothing_is_waited_for(client: KafkaClient) -> None:
    ranges = ranges_of([3], topic="gone")
    gone = RangeReader(client, ranges, FetchConfig(), poll_timeout_ms=1, skip_lost=True)
    assert not any(read(gone).values())


def test_retention_that_overtakes_one_costs_the_others_nothing(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    logs = on_one_leader(broker, 3)
    fill(logs, 5)
    logs[1].log_start_offset = 3
    found = read(RangeReader(client, ranges_of([5] * 3), FetchConfig(), skip_lost=True))
    assert [len(found[TopicPartition("t", number)]) for number in range(3)] == [5, 2, 5]


def test_a_leader_that_dies_costs_no_record_and_doubles_none(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    logs = broker.create_topic("t", 6)
    for log in logs:
        for _ in range(6):
            log.append(b"a")
    found: dict[TopicPartition, list[int]] = defaultdict(list)
    for chunk in RangeReader(client, ranges_of([6] * 6), fetches_of(200)).chunks():
        found[chunk.topic_partition] += to_arrow(chunk)["offset"].to_pylist()
        if sum(map(len, found.values())) == 7:
            broker.stop(1)
            for number in (1, 4):
                broker.move_leader(TopicPartition("t", number), 2)
    assert found == whole(ranges_of([6] * 6))


def test_nothing_is_left_on_its_way(broker: MemoryBroker, client: KafkaClient) -> None:
    fill(broker.create_topic("t", 6), 3)
    for _ in range(3):
        read(RangeReader(client, ranges_of([3] * 6), FetchConfig()))
    assert [broker.accepted(node_id) for node_id in range(3)] == [1, 1, 1]
