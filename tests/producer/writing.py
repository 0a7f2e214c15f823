"""Producers for tests, their records on an in-memory broker, and answers to Produce requests."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa

from spark_kafka_source.errors import BootstrapError, ErrorCode, KafkaTimeoutError, error_named
from spark_kafka_source.producer import KafkaProducer
from spark_kafka_source.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from spark_kafka_source.records import (
    BatchHeader,
    batches,
    chunks,
    to_arrow,
)
from spark_kafka_source.testing.memory import MemoryBroker, PartitionLog
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import eventually

T0, T1, T2 = (TopicPartition("t", each) for each in range(3))
IN_TIME = 60.0
"""The longest wait, in seconds, for anything that must come."""
HOUR_MS = 3_600_000


@contextmanager
def producing(broker: MemoryBroker, **settings: Any) -> Iterator[KafkaProducer]:
    """Run a producer that sends at once, with short pauses. The end closes it without a wait."""
    known: dict[str, Any] = {
        "bootstrap_servers": str(broker.address()),
        "linger_ms": 0,
        "retry_backoff_ms": 1,
        "retry_backoff_max_ms": 1,
    }
    producer = KafkaProducer(**known | settings)
    try:
        yield producer
    finally:
        producer.close(0)
        assert_all_given_back(producer)


def knowing(producer: KafkaProducer, topic: str) -> None:
    """Make a topic known to the producer, for a test with a short `max.block.ms`.

    The producer does not look it up again. So the short time bounds only the tested call.
    """

    def is_known() -> bool:
        try:
            return bool(producer.partitions_for(topic))
        except (BootstrapError, KafkaTimeoutError):
            return False

    eventually(is_known)


@contextmanager
def blocking_for(producer: KafkaProducer, max_block_ms: int) -> Iterator[None]:
    """Limit the waits of transaction calls within the block."""
    transaction: Any = producer._transaction
    config = transaction._config
    transaction._config = replace(config, max_block_ms=max_block_ms)
    try:
        yield
    finally:
        transaction._config = config


def in_flight(producer: KafkaProducer, count: int) -> None:
    """Wait until `count` requests of a producer are in flight."""
    eventually(lambda: sum(each.asked.is_sent for each in producer._sender._requests) == count)


def assert_all_given_back(producer: KafkaProducer) -> None:
    """Check that `buffer.memory` is all free, and that nothing waits for it."""
    memory = producer._accumulator.memory
    assert memory.free == memory.size
    assert not producer._accumulator.unfinished()


class Written(NamedTuple):
    """A written record."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    timestamp_ms: int


def written(log: PartitionLog) -> list[Written]:
    """Return all records of a log, in order."""
    found = []
    for batch in log.batches:
        for chunk in chunks(batch.data, topic_partition=T0):
            columns = to_arrow(chunk, include_headers=True)
            times = columns["timestamp"].cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
            rows = zip(
                columns["offset"].to_pylist(),
                columns["key"].to_pylist(),
                columns["value"].to_pylist(),
                map(_pairs, columns["headers"].to_pylist()),
                times.to_pylist(),
                strict=True,
            )
            found += [Written(*row) for row in rows]
    return found


def _pairs(headers: list[dict[str, Any]] | None) -> list[tuple[str, bytes | None]]:
    return [(each["key"], each["value"]) for each in headers or ()]


def values(log: PartitionLog) -> list[bytes | None]:
    """Return the values of a log's records."""
    return [each.value for each in written(log)]


def committed_values(log: PartitionLog) -> list[bytes | None]:
    """Return the values of the records for a `read_committed` reader."""
    found, seen = iter(values(log)), []
    for batch in headers(log):
        if batch.is_control:
            continue
        records = list(islice(found, batch.record_count))
        is_aborted = any(
            each.producer_id == batch.producer_id
            and each.first_offset <= batch.base_offset <= each.last_offset
            for each in log.aborted
        )
        if batch.base_offset < log.last_stable_offset and not is_aborted:
            seen += records
    return seen


def headers(log: PartitionLog) -> list[BatchHeader]:
    """Return the headers of a log's batches."""
    return [header for each in log.batches for header, _ in batches(memoryview(each.data), T0)]


def sequences(request: ProduceRequest) -> list[tuple[int, int, int]]:
    """Return epoch, first sequence and record count of each batch of a request."""
    return [
        (header.producer_epoch, header.base_sequence, header.record_count)
        for topic in request.topic_data
        for each in topic.partition_data
        for header, _ in batches(memoryview(bytes(each.records or b"")), T0)  # type: ignore[arg-type]
    ]


def asked_for(request: ProduceRequest) -> list[TopicPartition]:
    """Return the partitions of a request."""
    return [
        TopicPartition(topic.name, each.index)
        for topic in request.topic_data
        for each in topic.partition_data
    ]


def answering(error: str | ErrorCode, **rest: Any) -> Callable[[ProduceRequest], ProduceResponse]:
    """Answer each partition of a request with this error."""
    code = (error_named(error) if isinstance(error, str) else error).code

    def answer(request: ProduceRequest) -> ProduceResponse:
        return ProduceResponse(
            responses=[
                TopicProduceResponse(
                    topic.name,
                    partition_responses=[
                        PartitionProduceResponse(each.index, code, -1, **rest)
                        for each in topic.partition_data
                    ],
                )
                for topic in request.topic_data
            ]
        )

    return answer
