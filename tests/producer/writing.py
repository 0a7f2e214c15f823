"""Producers of tests, what they wrote to an in-memory broker, and answers to Produce requests."""

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
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import eventually
from tests.memory_broker import MemoryBroker, PartitionLog

T0, T1, T2 = (TopicPartition("t", each) for each in range(3))
IN_TIME = 30.0
"""Seconds within which anything comes that comes at all."""
HOUR_MS = 3_600_000


@contextmanager
def producing(broker: MemoryBroker, **settings: Any) -> Iterator[KafkaProducer]:
    """A producer that sends at once, pauses hardly, and is closed without a wait at the end."""
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
    """Asks for a topic until it is known, for a test whose `max.block.ms` is short.

    What is known is not asked for again. So the short time bounds only what the test is about.
    """

    def is_known() -> bool:
        try:
            return bool(producer.partitions_for(topic))
        except (BootstrapError, KafkaTimeoutError):
            return False

    eventually(is_known)


@contextmanager
def blocking_for(producer: KafkaProducer, max_block_ms: int) -> Iterator[None]:
    """Within the block, calls about transactions wait no longer than this."""
    transaction: Any = producer._transaction
    config = transaction._config
    transaction._config = replace(config, max_block_ms=max_block_ms)
    try:
        yield
    finally:
        transaction._config = config


def in_flight(producer: KafkaProducer, count: int) -> None:
    """Waits until so many requests of a producer await their answers."""
    eventually(lambda: sum(each.asked.is_sent for each in producer._sender._flights) == count)


def assert_all_given_back(producer: KafkaProducer) -> None:
    """Nothing of `buffer.memory` is taken, nothing is waited for."""
    memory = producer._accumulator.memory
    assert memory.free == memory.size
    assert not producer._accumulator.unfinished()


class Written(NamedTuple):
    """A record in a log."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    timestamp_ms: int


def written(log: PartitionLog) -> list[Written]:
    """All records of a log, in its order."""
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
    """The values of a log's records."""
    return [each.value for each in written(log)]


def committed_values(log: PartitionLog) -> list[bytes | None]:
    """The values of records that a reader with `read_committed` sees."""
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
    """The headers of a log's batches."""
    return [header for each in log.batches for header, _ in batches(memoryview(each.data), T0)]


def sequences(request: ProduceRequest) -> list[tuple[int, int, int]]:
    """The epoch, the first sequence and the count of records of each batch of a request."""
    return [
        (header.producer_epoch, header.base_sequence, header.record_count)
        for topic in request.topic_data
        for each in topic.partition_data
        for header, _ in batches(memoryview(bytes(each.records or b"")), T0)  # type: ignore[arg-type]
    ]


def asked_for(request: ProduceRequest) -> list[TopicPartition]:
    """The partitions of a request."""
    return [
        TopicPartition(topic.name, each.index)
        for topic in request.topic_data
        for each in topic.partition_data
    ]


def answering(error: str | ErrorCode, **rest: Any) -> Callable[[ProduceRequest], ProduceResponse]:
    """An answer with this error for each partition that is asked for."""
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
