"""Offsets and epochs: one request for each leader, and retries only for missing answers."""

from collections import Counter
from typing import Any

import pytest

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import (
    BrokerError,
    KafkaTimeoutError,
    ProtocolError,
    error_named,
)
from spark_kafka_source.fetch import (
    NO_OFFSET,
    OffsetAndEpoch,
    earliest_offsets,
    epoch_end_offsets,
    latest_offsets,
    list_offsets,
)
from spark_kafka_source.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from spark_kafka_source.records import IsolationLevel, Record
from spark_kafka_source.testing.memory import KAFKA_2_1, ONE_TRY, Action, MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition

pytestmark = pytest.mark.memory(nodes=3)

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def offsets_at(
    client: KafkaClient, timestamps: dict[TopicPartition, int]
) -> dict[TopicPartition, int]:
    return {
        each: found.offset for each, found in client.run(list_offsets(client, timestamps)).items()
    }


def asked(broker: MemoryBroker) -> Counter[int]:
    return Counter(
        seen.node_id for seen in broker.seen if isinstance(seen.request, ListOffsetsRequest)
    )


def asked_partitions(request: ListOffsetsRequest) -> set[TopicPartition]:
    return {
        TopicPartition(topic.name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    }


def refused(where: TopicPartition, name: str) -> ListOffsetsResponse:
    refusal = ListOffsetsPartitionResponse(where.partition, error_named(name).code)
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(where.topic, [refusal])])


def test_each_leader_is_asked_once_whatever_the_number_of_partitions() -> None:
    with MemoryBroker(10) as broker, KafkaClient(broker.config()) as client:
        for topic in range(4):
            for number, log in enumerate(broker.create_topic(f"t{topic}", 500)):
                log.fixed_high_watermark = 1_000 * topic + number
        wanted = [TopicPartition(f"t{topic}", each) for topic in range(4) for each in range(500)]
        found = client.run(latest_offsets(client, wanted))
        assert found == {
            each: OffsetAndEpoch(1_000 * int(each.topic[1:]) + each.partition, leader_epoch=0)
            for each in wanted
        }
        assert asked(broker) == dict.fromkeys(range(10), 1)
        assert len(broker.requests(MetadataRequest)) == 1


def test_leaders_are_asked_all_at_once(broker: MemoryBroker, client: KafkaClient) -> None:
    """Node 0 answers only after the request to node 1."""
    broker.create_topic("t", 2)
    client.run(earliest_offsets(client, [T0, T1]))
    broker.forget()
    held = broker.hold(ListOffsetsRequest, node_id=0)

    def second(_: Any) -> Action:
        held.release()
        return Action.HANDLE

    broker.control(ListOffsetsRequest, second, node_id=1)
    assert client.run(earliest_offsets(client, [T0, T1])) == {T0: 0, T1: 0}


def test_the_ends_of_a_log(broker: MemoryBroker, client: KafkaClient) -> None:
    (log,) = broker.create_topic("t")
    log.append(b"a", b"b", b"c", b"d")
    log.log_start_offset, log.fixed_high_watermark, log.fixed_last_stable_offset = 1, 3, 2
    assert client.run(earliest_offsets(client, [T0])) == {T0: 1}
    log.leader_epoch = 7
    assert client.run(latest_offsets(client, [T0])) == {T0: OffsetAndEpoch(3, leader_epoch=7)}
    committed = client.run(latest_offsets(client, [T0], IsolationLevel.READ_COMMITTED))
    assert committed == {T0: OffsetAndEpoch(2, leader_epoch=7)}
    # A follower's request returns the log's end, with open transactions.
    assert {request.replica_id for request in broker.requests(ListOffsetsRequest)} == {-1}


def test_times(broker: MemoryBroker, client: KafkaClient) -> None:
    log, _ = broker.create_topic("t", 2)
    log.append(Record(timestamp_ms=100), Record(timestamp_ms=200))
    log.append(Record(timestamp_ms=300))
    assert offsets_at(client, {T0: 150, T1: 150}) == {T0: 1, T1: NO_OFFSET}
    assert offsets_at(client, {T0: 301}) == {T0: NO_OFFSET}


def test_the_oldest_broker_answers_the_same() -> None:
    with MemoryBroker(versions=KAFKA_2_1) as broker, KafkaClient(broker.config()) as client:
        (log,) = broker.create_topic("t")
        log.append(Record(timestamp_ms=100), Record(timestamp_ms=200))
        assert offsets_at(client, {T0: 150}) == {T0: 1}
        latest = client.run(latest_offsets(client, [T0], IsolationLevel.READ_COMMITTED))
        assert latest == {T0: OffsetAndEpoch(2, leader_epoch=0)}
        log.leader_epoch = 3
        assert client.run(epoch_end_offsets(client, {T0: 0})) == {T0: 2}


def test_nothing_wanted_is_nothing_asked(broker: MemoryBroker, client: KafkaClient) -> None:
    assert client.run(list_offsets(client, {})) == {}
    assert client.run(epoch_end_offsets(client, {})) == {}
    assert broker.seen == []


def test_only_the_partitions_that_failed_are_asked_for_again(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    broker.create_topic("t", 30)
    wanted = [TopicPartition("t", each) for each in range(30)]
    client.run(earliest_offsets(client, wanted))
    broker.forget()
    broker.move_leader(TopicPartition("t", 4), 2)
    broker.control(ListOffsetsRequest, Action.CLOSE, node_id=0)
    assert client.run(earliest_offsets(client, wanted)) == dict.fromkeys(wanted, 0)
    first, again = broker.requests(ListOffsetsRequest)[:3], broker.requests(ListOffsetsRequest)[3:]
    assert set.union(*map(asked_partitions, first)) == set(wanted)
    led_by_0 = set(wanted[::3])
    assert set.union(*map(asked_partitions, again)) == led_by_0 | {TopicPartition("t", 4)}
    assert len(again) == 2


def test_what_cannot_heal_is_raised_though_another_partition_might(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    broker.create_topic("t", 2)
    broker.control(ListOffsetsRequest, refused(T0, "NOT_LEADER_OR_FOLLOWER"), node_id=0)
    broker.control(ListOffsetsRequest, refused(T1, "TOPIC_AUTHORIZATION_FAILED"), node_id=1)
    with pytest.raises(BrokerError, match=r"ListOffsets of t-1: TOPIC_AUTHORIZATION_FAILED"):
        client.run(latest_offsets(client, [T0, T1]))


def test_time_is_up_with_the_partition_named(broker: MemoryBroker) -> None:
    broker.create_topic("t")
    broker.control(ListOffsetsRequest, error_named("OFFSET_NOT_AVAILABLE"), times=None)
    with (
        KafkaClient(broker.config(**ONE_TRY)) as client,
        pytest.raises(KafkaTimeoutError, match=r"ListOffsets of t-0: OFFSET_NOT_AVAILABLE"),
    ):
        client.run(latest_offsets(client, [T0]))


def test_an_answer_that_leaves_out_what_was_asked_is_refused(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    broker.create_topic("t", 2)
    other = ListOffsetsTopicResponse("t", [ListOffsetsPartitionResponse(7, 0, -1, 99)])
    broker.control(ListOffsetsRequest, ListOffsetsResponse(topics=[other]))
    with pytest.raises(ProtocolError, match="ListOffsets of t-0: the answer leaves it out"):
        client.run(latest_offsets(client, [T0]))


# -- leader epochs (KIP-320) -----------------------------------------------------------------------


def test_where_each_leader_epoch_ends(broker: MemoryBroker, client: KafkaClient) -> None:
    (log,) = broker.create_topic("t")
    log.leader_epoch = 1
    log.append(b"a", b"b")
    log.leader_epoch = 4
    log.append(b"c")
    log.leader_epoch = 5
    ends = {epoch: client.run(epoch_end_offsets(client, {T0: epoch}))[T0] for epoch in range(7)}
    # Before the first epoch there are no records. The leader does not know a later epoch.
    assert ends == {0: 0, 1: 2, 2: 2, 3: 2, 4: 3, 5: 3, 6: -1}


def test_a_log_that_was_cut_ends_an_epoch_before_what_was_read(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    (log,) = broker.create_topic("t")
    log.append(b"a")
    log.append(b"b")
    log.truncate(1)
    broker.move_leader(T0, 1)
    log.append(b"other", b"records")
    assert client.run(latest_offsets(client, [T0])) == {T0: OffsetAndEpoch(3, leader_epoch=1)}
    assert client.run(epoch_end_offsets(client, {T0: 0})) == {T0: 1}


def test_each_leader_is_asked_for_epochs_as_a_consumer_that_knows_who_leads(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    for epoch, log in enumerate(broker.create_topic("t", 2)):
        log.leader_epoch = 10 + epoch
    assert client.run(epoch_end_offsets(client, {T0: 10, T1: 3})) == {T0: 0, T1: 0}
    requests = broker.requests(OffsetForLeaderEpochRequest)
    assert {request.replica_id for request in requests} == {-1}
    partitions = [each for request in requests for each in request.topics[0].partitions]
    asked = [(each.partition, each.current_leader_epoch, each.leader_epoch) for each in partitions]
    assert sorted(asked) == [(0, 10, 10), (1, 11, 3)]


def test_a_leader_that_moved_is_asked_again_for_its_epochs_alone(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    broker.create_topic("t", 2)
    client.run(epoch_end_offsets(client, {T0: 0, T1: 0}))
    broker.forget()
    broker.move_leader(T1, 2)
    assert client.run(epoch_end_offsets(client, {T0: 0, T1: 0})) == {T0: 0, T1: 0}
    last = broker.requests(OffsetForLeaderEpochRequest)[-1]
    assert [each.partition for each in last.topics[0].partitions] == [1]


def test_an_answer_of_another_partition_s_epochs_is_refused(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    broker.create_topic("t")
    other = OffsetForLeaderTopicResult("t", [EpochEndOffset(0, 7, 0, 99)])
    broker.control(OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse(topics=[other]))
    with pytest.raises(ProtocolError, match="OffsetForLeaderEpoch of t-0: the answer leaves it"):
        client.run(epoch_end_offsets(client, {T0: 0}))
