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
from spark_kafka_source.testing.memory import MemoryBroker, PartitionLog
from tests.consumer.consumers import PATIENCE_MS
from tests.fetch.reading import SMALL, T0, fetched

pytestmark = pytest.mark.memory(nodes=3)


def refusing(
    name: str, leader: LeaderIdAndEpoch, endpoints: list[NodeEndpoint]
) -> Callable[[FetchRequest], FetchResponse]:
    """Return a function that answers with an error, a new leader and its address."""

    def respond(request: FetchRequest) -> FetchResponse:
        (topic,) = request.topics
        data = PartitionData(0, error_named(name).code, -1, records=b"", current_leader=leader)
        return FetchResponse(
            responses=[FetchableTopicResponse(topic.topic, topic.topic_id, [data])],
            node_endpoints=endpoints,
        )

    return respond


def read_over_a_move(
    broker: MemoryBroker,
    client: KafkaClient,
    log: PartitionLog,
    name: str,
    leader: LeaderIdAndEpoch,
    *,
    endpoints: list[NodeEndpoint] | None = None,
) -> list[int]:
    """Read three records. Before the last, the leader moves to node 2, and node 0 says so."""
    if endpoints is None:
        endpoints = [NodeEndpoint(leader.leader_id, *broker.address(leader.leader_id))]
    for _ in range(3):
        log.append(b"a")
    found = []
    wanted = OffsetRange(T0, 0, 3, leader_epoch=log.leader_epoch)
    for chunk in RangeReader(client, [wanted], SMALL).chunks():
        found += to_arrow(chunk)["offset"].to_pylist()
        if len(found) == 1:
            broker.wait_for(FetchRequest, 2)
            broker.move_leader(T0, 2)
            broker.control(FetchRequest, refusing(name, leader, endpoints), node_id=0)
    return found


@pytest.mark.parametrize("name", ["NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH"])
def test_the_leader_that_is_named_is_read_from_at_once(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog, name: str
) -> None:
    assert read_over_a_move(broker, client, log, name, LeaderIdAndEpoch(2, 1)) == [0, 1, 2]
    assert len(broker.requests(MetadataRequest)) == 1, "only the first"
    assert len(broker.requests(OffsetForLeaderEpochRequest)) == 1, "its log is checked"
    assert fetched(broker) == [0, 1, 2, 2]


@pytest.mark.parametrize(
    ("leader", "endpoints"),
    [
        (LeaderIdAndEpoch(2, 0), None),
        (LeaderIdAndEpoch(7, 1), []),
        (LeaderIdAndEpoch(-1, 1), []),
        (LeaderIdAndEpoch(2, 1), [NodeEndpoint(2, "no..host", 9092)]),
        (LeaderIdAndEpoch(2, 1), [NodeEndpoint(2, "", 9092)]),
        (LeaderIdAndEpoch(2, 1), [NodeEndpoint(2, "127.0.0.1", -1)]),
    ],
    ids=["no newer epoch", "no address", "no leader", "nonsense", "no host", "no port"],
)
def test_a_leader_of_no_use_is_asked_for(
    broker: MemoryBroker,
    client: KafkaClient,
    log: PartitionLog,
    leader: LeaderIdAndEpoch,
    endpoints: list[NodeEndpoint] | None,
) -> None:
    name = "NOT_LEADER_OR_FOLLOWER"
    found = read_over_a_move(broker, client, log, name, leader, endpoints=endpoints)
    assert found == [0, 1, 2]
    # The check of the position may ask as well as the reader.
    assert len(broker.requests(MetadataRequest)) in (2, 3)
    assert fetched(broker) == [0, 1, 2, 2], "no broker is fetched from before"


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
