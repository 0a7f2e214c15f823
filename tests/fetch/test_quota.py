"""Over a quota a fetch's answer has a throttle time and no partition (KIP-219)."""

import pytest

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.fetch import FetchConfig, sampled_bytes_per_offset
from spark_kafka_source.protocol.messages.fetch import FetchRequest, FetchResponse
from spark_kafka_source.testing.memory import MemoryBroker, PartitionLog
from tests.fetch.reading import SMALL, T0, answer, fetched, reader, values

pytestmark = pytest.mark.memory(nodes=3)

THROTTLED = FetchResponse(throttle_time_ms=20)


def test_a_range_is_read_all_the_same(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    for value in (b"a", b"b", b"c"):
        log.append(value)
    broker.control(FetchRequest, THROTTLED, times=2)
    assert values(reader(client, 0, 3)) == [b"a", b"b", b"c"]
    assert fetched(broker)[:3] == [0, 0, 0]


def test_in_the_middle_of_a_range_too(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    """There the next fetch is in flight while Python works on the rows of this one."""
    for value in (b"a", b"b", b"c", b"d"):
        log.append(value * 200)
    reading = reader(client, 0, 4, SMALL, poll_timeout_ms=10_000).chunks()
    assert next(reading).next_offset == 1
    broker.control(FetchRequest, THROTTLED, times=2)
    assert [chunk.next_offset for chunk in reading if chunk.next_offset > 1][-1] == 4
    # Two fetches are sent once more. Any of them may have been in flight.
    assert len(fetched(broker)) == len(set(fetched(broker))) + 2


def test_a_replica_that_is_throttled_is_not_left(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    log.append(b"a")
    replica = (log.leader_id + 1) % 3
    named = answer(b"", preferred_read_replica=replica)
    broker.control(FetchRequest, named, node_id=log.leader_id)
    broker.control(FetchRequest, THROTTLED, node_id=replica)
    whole = answer(bytes(log.batches[0].data))
    broker.control(FetchRequest, whole, node_id=replica)
    assert values(reader(client, 0, 1, FetchConfig(client_rack="here"))) == [b"a"]
    asked = [seen.node_id for seen in broker.seen if isinstance(seen.request, FetchRequest)]
    assert asked == [log.leader_id, replica, replica]


def test_a_sample_is_asked_for_again(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    log.append(b"a")
    broker.control(FetchRequest, THROTTLED)
    assert client.run(sampled_bytes_per_offset(client, {T0: 0})) == {T0: len(log.batches[0].data)}
