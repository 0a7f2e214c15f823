"""The error answer to a fetch names the new leader after a move (KIP-951)."""

from collections.abc import Callable

import pytest

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import KafkaError, error_named
from spark_kafka_source.fetch import OffsetRange, RangeReader
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from spark_kafka_source.records import to_arrow
from tests.consumer.consumers import PATIENCE_MS
from tests.fetch.reading import SMALL, T0, fetched
from tests.memory_broker import MemoryBroker, PartitionLog


def refusing(
    broker: MemoryBroker, name: str, leader: LeaderIdAndEpoch
) -> Callable[[FetchRequest], FetchResponse]:
    """Return a function that answers with an error, a new leader and its address."""

    def respond(request: FetchRequest) -> FetchResponse:
        (topic,) = request.topics
        data = PartitionData(0, error_named(name).code, -1, records=b"", current_leader=leader)
        host, port = broker.address(leader.leader_id)
        return FetchResponse(
            responses=[FetchableTopicResponse(topic.topic, topic.topic_id, [data])],
            node_endpoints=[NodeEndpoint(leader.leader_id, host, port)],
        )

    return respond


def read_over_a_move(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog, name: str, epoch: int
) -> list[int]:
    for _ in range(3):
        log.append(b"a")
    found = []
    wanted = OffsetRange(T0, 0, 3, leader_epoch=log.leader_epoch)
    for chunk in RangeReader(client, [wanted], SMALL).chunks():
        found += to_arrow(chunk)["offset"].to_pylist()
        if len(found) == 1:
            broker.wait_for(FetchRequest, 2)
            broker.move_leader(T0, 2)
            leader = LeaderIdAndEpoch(2, epoch)
            broker.control(FetchRequest, refusing(broker, name, leader), node_id=0)
    return found


@pytest.mark.parametrize("name", ["NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH"])
def test_the_leader_that_is_named_is_read_from_at_once(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog, name: str
) -> None:
    assert read_over_a_move(broker, client, log, name, epoch=1) == [0, 1, 2]
    assert len(broker.requests(MetadataRequest)) == 1, "only the first"
    assert len(broker.requests(OffsetForLeaderEpochRequest)) == 1, "its log is checked"
    assert fetched(broker) == [0, 1, 2, 2]


def test_a_leader_that_is_not_newer_is_asked_for(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    name = "NOT_LEADER_OR_FOLLOWER"
    assert read_over_a_move(broker, client, log, name, epoch=0) == [0, 1, 2]
    assert len(broker.requests(MetadataRequest)) == 2


def test_metadata_that_another_conversation_asked_for_will_do(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    recover = client.recover

    def recovering(error: KafkaError) -> None:
        recover(error)
        client.run(client.topics(["t"], Deadline.after_ms(PATIENCE_MS)))

    monkeypatch.setattr(client, "recover", recovering)
    broker.control(FetchRequest, error_named("NOT_LEADER_OR_FOLLOWER"))
    log.append(b"a")
    chunks = RangeReader(client, [OffsetRange(T0, 0, 1)], SMALL).chunks()
    assert [to_arrow(each)["offset"].to_pylist() for each in chunks] == [[0]]
    assert len(broker.requests(FetchRequest)) == 2
