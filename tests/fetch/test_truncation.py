"""Log truncation below the planned range, by an unclean election (KIP-320), seen by a task."""

import time

import pytest

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import error_named
from spark_kafka_source.fetch import (
    FetchConfig,
    LogTruncatedError,
    OffsetRange,
    RangeReader,
)
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from spark_kafka_source.records import to_arrow
from spark_kafka_source.testing.memory import Action, MemoryBroker, PartitionLog
from spark_kafka_source.testing.memory.answers import FixedAnswer
from spark_kafka_source.topic_partition import TopicPartition
from tests.fetch.reading import T0, values

pytestmark = pytest.mark.memory(nodes=3)


def reader(client: KafkaClient, end: int, epoch: int, *, skip_lost: bool = False) -> RangeReader:
    wanted = OffsetRange(T0, 0, end, leader_epoch=epoch)
    config = FetchConfig(max_partition_fetch_bytes=1)
    return RangeReader(client, [wanted], config, skip_lost=skip_lost)


@pytest.fixture
def cut(log: PartitionLog) -> PartitionLog:
    """Truncate a log at 2 after a read to offset 4 in epoch 0. It grows to 6 in epoch 1."""
    for value in (b"a", b"b", b"c", b"d"):
        log.append(value)
    elect_unclean(log)
    return log


def elect_unclean(log: PartitionLog) -> None:
    log.truncate(2)
    log.leader_epoch = 1
    for _ in range(4):
        log.append(b"other")


@pytest.mark.usefixtures("cut")
def test_records_that_replaced_the_planned_ones_are_not_read(client: KafkaClient) -> None:
    with pytest.raises(LogTruncatedError, match=r"t-0: .* truncated at offset 2") as caught:
        values(reader(client, 4, 0))
    assert (caught.value.offset, caught.value.diverged) == (2, 2)


@pytest.mark.usefixtures("cut")
def test_where_losses_are_skipped_what_is_still_the_same_is_read(
    client: KafkaClient, caplog: pytest.LogCaptureFixture
) -> None:
    assert values(reader(client, 4, 0, skip_lost=True)) == [b"a", b"b"]
    (record,) = caplog.records
    assert "offsets 2 to 4 are skipped" in record.getMessage()


@pytest.mark.usefixtures("cut")
def test_a_range_that_ends_where_the_log_was_cut_is_whole(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    assert values(reader(client, 2, 0)) == [b"a", b"b"]
    assert len(broker.requests(OffsetForLeaderEpochRequest)) == 1


@pytest.mark.usefixtures("cut")
def test_what_was_planned_after_the_election_is_read_without_a_question(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    assert values(reader(client, 4, 1)) == [b"a", b"b", b"other", b"other"]
    assert values(reader(client, 4, -1)) == [b"a", b"b", b"other", b"other"]
    assert not broker.requests(OffsetForLeaderEpochRequest)


def test_an_election_in_mid_read_is_seen(
    client: KafkaClient, log: PartitionLog, caplog: pytest.LogCaptureFixture
) -> None:
    for value in (b"a", b"b", b"c", b"d"):
        log.append(value)
    found = []
    for chunk in reader(client, 4, 0, skip_lost=True).chunks():
        found += to_arrow(chunk)["value"].to_pylist()
        if len(found) == 1:
            elect_unclean(log)
    assert found == [b"a", b"b"]
    assert "offsets 2 to 4 are skipped" in caplog.text


def test_an_election_that_lost_nothing_is_passed_over(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    for value in (b"a", b"b"):
        log.append(value)
    log.leader_epoch = 3
    log.append(b"c")
    assert values(reader(client, 2, 0)) == [b"a", b"b"]
    assert len(broker.requests(OffsetForLeaderEpochRequest)) == 1


def test_a_broker_that_is_behind_the_plan_is_asked_again(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    """Such a broker describes a leader of an earlier epoch than the driver knows."""
    log.append(b"a")

    def catch_up(_: object) -> Action:
        log.leader_epoch = 5
        return Action.HANDLE

    broker.control(MetadataRequest, Action.HANDLE)
    broker.control(MetadataRequest, catch_up)
    topic_id = broker.cluster.topics["t"].topic_id
    wanted = OffsetRange(T0, 0, 1, topic_id, leader_epoch=5)
    assert values(RangeReader(client, [wanted], FetchConfig())) == [b"a"]
    assert len(broker.requests(MetadataRequest)) == 2


@pytest.mark.parametrize("answer", [error_named("NOT_LEADER_OR_FOLLOWER"), Action.SILENCE], ids=str)
def test_a_look_up_whose_time_was_up_between_two_chunks_is_asked_again(
    broker: MemoryBroker, client: KafkaClient, monkeypatch: pytest.MonkeyPatch, answer: FixedAnswer
) -> None:
    """The caller works on a chunk for longer than a look-up may take."""
    moved, other = broker.create_topic("t", 2)
    moved.append(b"a")
    other.append(b"b")
    moved.leader_epoch = 1
    held = broker.hold(OffsetForLeaderEpochRequest, then=answer)
    ranges = [OffsetRange(T0, 0, 1, leader_epoch=0), OffsetRange(TopicPartition("t", 1), 0, 1)]
    chunks = RangeReader(client, ranges, FetchConfig()).chunks()
    found = to_arrow(next(chunks))["value"].to_pylist()
    broker.wait_for(OffsetForLeaderEpochRequest)
    monotonic = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + 20)
    held.release()
    for chunk in chunks:
        found += to_arrow(chunk)["value"].to_pylist()
    assert found == [b"b", b"a"]
    assert len(broker.requests(OffsetForLeaderEpochRequest)) == 2
