"""Reading from a replica in the same rack (KIP-392), and from the leader after a failure."""

import pytest

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import ErrorCode, error_named
from spark_kafka_source.fetch import FetchConfig
from spark_kafka_source.protocol.messages.fetch import FetchRequest, FetchResponse
from spark_kafka_source.records import Record, encode_batch
from spark_kafka_source.testing.memory import Action, MemoryBroker, PartitionLog
from tests.fetch.reading import T0, answer, offsets, reader

pytestmark = pytest.mark.memory(nodes=3)

HERE = FetchConfig(client_rack="here", max_partition_fetch_bytes=100)
LEADER, REPLICA = 0, 1


def nodes_asked(broker: MemoryBroker) -> list[int]:
    return [each.node_id for each in broker.seen if isinstance(each.request, FetchRequest)]


def test_the_rack_is_told_to_the_leader(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    log.append(b"a")
    offsets(reader(client, 0, 1, HERE))
    assert broker.requests(FetchRequest)[0].rack_id == "here"


def test_the_replica_that_the_leader_names_is_read_from(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    log.append(b"a", b"b")
    broker.control(FetchRequest, answer(b"", preferred_read_replica=REPLICA), node_id=LEADER)
    records = encode_batch([Record(value=b"a"), Record(value=b"b")])
    broker.control(FetchRequest, answer(records), node_id=REPLICA)
    assert offsets(reader(client, 0, 2, HERE)) == [0, 1]
    assert nodes_asked(broker) == [LEADER, REPLICA]


def test_the_replica_may_be_node_0(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    log.append(b"a", b"b")
    broker.move_leader(T0, 1)
    broker.control(FetchRequest, answer(b"", preferred_read_replica=0), node_id=1)
    records = encode_batch([Record(value=b"a"), Record(value=b"b")])
    broker.control(FetchRequest, answer(records), node_id=0)
    assert offsets(reader(client, 0, 2, HERE)) == [0, 1]
    assert nodes_asked(broker) == [1, 0]


@pytest.mark.parametrize(
    "failure",
    [error_named("OFFSET_OUT_OF_RANGE"), error_named("REPLICA_NOT_AVAILABLE"), Action.CLOSE],
)
def test_the_leader_is_read_from_where_the_replica_fails(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog, failure: ErrorCode | Action
) -> None:
    log.append(b"a", b"b")
    broker.control(FetchRequest, answer(b"", preferred_read_replica=REPLICA), node_id=LEADER)
    broker.control(FetchRequest, failure, node_id=REPLICA)
    assert offsets(reader(client, 0, 2, HERE)) == [0, 1]
    assert nodes_asked(broker) == [LEADER, REPLICA, LEADER]


def test_a_replica_that_the_cluster_does_not_have_is_not_asked(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    log.append(b"a")
    broker.control(FetchRequest, answer(b"", preferred_read_replica=77), node_id=LEADER)
    assert offsets(reader(client, 0, 1, HERE)) == [0]
    assert nodes_asked(broker) == [LEADER, LEADER]


def test_a_leader_that_goes_on_naming_a_replica_that_fails_is_not_asked_for_one_again(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    for value in (b"a", b"b", b"c"):
        log.append(value)

    def prefers(request: FetchRequest) -> FetchResponse | Action:
        named = answer(b"", preferred_read_replica=REPLICA)(request)
        return named if request.rack_id else Action.HANDLE

    broker.control(FetchRequest, prefers, node_id=LEADER, times=None)
    broker.control(FetchRequest, Action.CLOSE, node_id=REPLICA, times=None)
    assert offsets(reader(client, 0, 3, HERE)) == [0, 1, 2]
    assert nodes_asked(broker)[:3] == [LEADER, REPLICA, LEADER]
    assert nodes_asked(broker).count(REPLICA) == 1


def test_a_replica_that_has_nothing_is_behind_and_left(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    log.append(b"a", b"b")
    broker.control(FetchRequest, answer(b"", preferred_read_replica=REPLICA), node_id=LEADER)
    broker.control(FetchRequest, answer(b""), node_id=REPLICA)
    assert offsets(reader(client, 0, 2, HERE)) == [0, 1]
    assert nodes_asked(broker) == [LEADER, REPLICA, LEADER]


def test_a_leader_that_goes_on_naming_an_unknown_replica_is_not_asked_for_one_again(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    log.append(b"a")

    def prefers(request: FetchRequest) -> FetchResponse | Action:
        named = answer(b"", preferred_read_replica=77)(request)
        return named if request.rack_id else Action.HANDLE

    broker.control(FetchRequest, prefers, times=None)
    assert offsets(reader(client, 0, 1, HERE)) == [0]
    assert nodes_asked(broker) == [LEADER, LEADER]
