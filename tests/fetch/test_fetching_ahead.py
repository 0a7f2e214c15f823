"""Fetch-ahead, and fetches that grow with the latency."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import BrokerError, ErrorCode, error_named
from spark_kafka_source.fetch import FetchConfig, OffsetOutOfRangeError
from spark_kafka_source.fetch import size as size_module
from spark_kafka_source.protocol.messages.fetch import FetchRequest
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.records import Record, encode_batch, next_offset
from spark_kafka_source.testing.memory import Action, MemoryBroker, PartitionLog
from tests.fetch.reading import fetched, offsets, reader
from tests.fixtures import silent_after

pytestmark = pytest.mark.memory(nodes=3)

ONE_BATCH = FetchConfig(max_partition_fetch_bytes=1)


def fill(log: PartitionLog, count: int) -> None:
    for _ in range(count):
        log.append(b"x")


def test_the_next_fetch_is_on_its_way_while_this_one_is_worked_on(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    fill(log, 3)
    chunks = reader(client, 0, 3, ONE_BATCH).chunks()
    next(chunks)
    broker.wait_for(FetchRequest, 2)
    assert [chunk.next_offset for chunk in chunks] == [2, 3]
    assert fetched(broker) == [0, 1, 2]


def test_a_broker_is_not_silent_because_the_caller_works_on_a_chunk_for_long(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(log, 4)
    silent_after(30_000, monkeypatch)
    monotonic = time.monotonic
    found: list[int] = []
    for chunk in reader(client, 0, 4, ONE_BATCH).chunks():
        late = 60 * len(found)
        monkeypatch.setattr(time, "monotonic", lambda late=late: monotonic() + late)
        found.append(chunk.next_offset)
    assert found == [1, 2, 3, 4]
    assert (len(broker.requests(MetadataRequest)), broker.accepted()) == (1, 1)


def test_nothing_is_asked_for_beyond_the_range(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    fill(log, 5)
    assert offsets(reader(client, 1, 3, ONE_BATCH)) == [1, 2]
    assert fetched(broker) == [1, 2]
    assert broker.accepted() == 1
    offsets(reader(client, 3, 5, ONE_BATCH))
    assert broker.accepted() == 1  # No answer was left in flight: the connection is reused.


@pytest.mark.parametrize(
    "failure",
    [
        error_named("NOT_LEADER_OR_FOLLOWER"),
        error_named("REQUEST_TIMED_OUT"),
        Action.CLOSE,
    ],
)
def test_one_that_fails_is_asked_for_again_when_it_is_its_turn(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog, failure: ErrorCode | Action
) -> None:
    fill(log, 3)
    broker.control(FetchRequest, Action.HANDLE)
    broker.control(FetchRequest, failure)
    assert offsets(reader(client, 0, 3, ONE_BATCH)) == [0, 1, 2]


@pytest.mark.parametrize("name", ["OFFSET_OUT_OF_RANGE", "TOPIC_AUTHORIZATION_FAILED"])
def test_one_that_fails_for_good_is_told_of_after_what_came_first(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog, name: str
) -> None:
    fill(log, 3)
    broker.control(FetchRequest, Action.HANDLE)
    broker.control(FetchRequest, error_named(name))
    chunks = reader(client, 0, 3, ONE_BATCH).chunks()
    assert next(chunks).next_offset == 1
    with pytest.raises((BrokerError, OffsetOutOfRangeError), match=r"t-0.* offset 1"):
        next(chunks)


def test_one_that_nobody_wants_any_more_does_no_harm(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    fill(log, 5)
    chunks = reader(client, 0, 5, ONE_BATCH).chunks()
    next(chunks)
    broker.wait_for(FetchRequest, 2)
    chunks.close()  # a generator
    assert offsets(reader(client, 0, 5, ONE_BATCH)) == [0, 1, 2, 3, 4]


def asked_bytes(broker: MemoryBroker) -> list[int]:
    return [
        request.topics[0].partitions[0].partition_max_bytes
        for request in broker.requests(FetchRequest)
    ]


@pytest.mark.parametrize("far", [True, False])
def test_fetches_grow_where_answers_are_full_and_more_where_they_are_waited_for(
    broker: MemoryBroker,
    client: KafkaClient,
    log: PartitionLog,
    monkeypatch: pytest.MonkeyPatch,
    far: bool,
) -> None:
    monkeypatch.setattr(size_module, "_LONG_WAIT_SECONDS", -1.0 if far else 60.0)
    fill(log, 40)
    config = FetchConfig(max_partition_fetch_bytes=100)
    assert offsets(reader(client, 0, 40, config)) == list(range(40))
    assert asked_bytes(broker)[0] == 100
    assert max(asked_bytes(broker)) == (800 if far else 200)


def test_fetches_do_not_grow_beyond_what_is_allowed(
    broker: MemoryBroker,
    client: KafkaClient,
    log: PartitionLog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(size_module, "_LONG_WAIT_SECONDS", -1.0)
    fill(log, 40)
    config = FetchConfig(max_partition_fetch_bytes=100, fetch_max_bytes=250)
    assert offsets(reader(client, 0, 40, config)) == list(range(40))
    assert max(asked_bytes(broker)) == 250
    assert max(request.max_bytes for request in broker.requests(FetchRequest)) == 250


def test_a_partitions_fetches_stay_within_a_limit_that_is_given(
    broker: MemoryBroker,
    client: KafkaClient,
    log: PartitionLog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(size_module, "_LONG_WAIT_SECONDS", -1.0)
    fill(log, 40)
    config = FetchConfig(max_partition_fetch_bytes=100, limits_partitions=True)
    assert offsets(reader(client, 0, 40, config)) == list(range(40))
    assert set(asked_bytes(broker)) == {100}


def test_where_a_fetch_leads_to() -> None:
    first = encode_batch([Record(), Record()])
    second = encode_batch([Record()], base_offset=7)
    assert next_offset(memoryview(first)) == 2
    assert next_offset(memoryview(first + second)) == 8
    assert next_offset(memoryview(first + second[:-1])) == 2


@given(st.binary(max_size=200))
def test_garbage_leads_anywhere_but_to_an_error(garbage: bytes) -> None:
    next_offset(memoryview(garbage))
    next_offset(memoryview(encode_batch([Record()]) + garbage))


@pytest.mark.parametrize("size", [0, 1, 20, 60])
def test_what_is_cut_leads_nowhere(size: int) -> None:
    assert next_offset(memoryview(encode_batch([Record()]))[:size]) is None
