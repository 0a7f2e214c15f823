"""Records that a real broker refuses: errors name the records, and no other record is lost."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

from spark_kafka_source import BufferFullError, KafkaProducer, UnsendableRecordError
from spark_kafka_source.errors import BrokerError, KafkaError, KafkaTimeoutError
from spark_kafka_source.producer import RefusedRowsError, SendFuture
from spark_kafka_source.records import ColumnTypeError, RowTooLargeError, UnencodableRowError
from spark_kafka_source.testing import LocalKafka
from tests.consumer.consumers import eventually
from tests.producer.reading import read_by_confluent
from tests.producer.writing import knowing

pytestmark = pytest.mark.kafka

WAIT_SECONDS = 60.0
COUNT = 500
POISONED = (0, 1, 77, 250, 499)
MOST_BYTES = 20_000


def values_in(kafka: LocalKafka, topic: str, partitions: int = 1) -> list[bytes | None]:
    found = read_by_confluent(kafka.bootstrap_servers, topic, partitions)
    return [row.value for rows in found.values() for row in rows]


def failed(futures: list[SendFuture]) -> dict[int, KafkaError]:
    found = enumerate(each.exception(WAIT_SECONDS) for each in futures)
    return {number: error for number, error in found if error is not None}


def value(number: int) -> bytes:
    return b"%d" % number


# -- poisoned records ------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", ["none", "lz4"])
@pytest.mark.parametrize("idempotent", [True, False])
def test_records_too_large_for_the_topic_fail_alone(
    kafka: LocalKafka, topic: str, idempotent: bool, compression: str
) -> None:
    kafka.create_topic(topic, configs={"max.message.bytes": str(MOST_BYTES)})
    given = [value(number) for number in range(COUNT)]
    for number in POISONED:  # Random bytes cannot be compressed.
        given[number] = random.Random(number).randbytes(2 * MOST_BYTES)
    rest = [each for number, each in enumerate(given) if number not in POISONED]
    with KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers,
        enable_idempotence=idempotent,
        compression_type=compression,
        linger_ms=50,
    ) as producer:
        errors = failed([producer.send(topic, each) for each in given])
        assert set(errors) == set(POISONED)
        for error in errors.values():
            assert isinstance(error, BrokerError)
            assert error.error.name == "MESSAGE_TOO_LARGE"
            assert f"{topic}-0" in str(error)
            assert "'max.message.bytes'" in str(error)
        assert values_in(kafka, topic) == rest
        with pytest.raises(
            RefusedRowsError, match=rf"^Row 0 \(and 4 more rows\): .*{topic}-0"
        ) as e:
            producer.send_columns(topic, pa.table({"value": given})).result(WAIT_SECONDS)
        assert e.value.rows == POISONED
        assert values_in(kafka, topic) == rest * 2
        producer.send(topic, b"after").result(WAIT_SECONDS)
        assert values_in(kafka, topic)[-1] == b"after"


@pytest.mark.parametrize("idempotent", [True, False])
def test_records_without_a_key_fail_alone_in_a_compacted_topic(
    kafka: LocalKafka, topic: str, idempotent: bool
) -> None:
    kafka.create_topic(topic, configs={"cleanup.policy": "compact"})
    keys = [None if number in POISONED else value(number) for number in range(COUNT)]
    rest = [value(number) for number in range(COUNT) if number not in POISONED]
    with KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers, enable_idempotence=idempotent, linger_ms=50
    ) as producer:
        errors = failed(
            [producer.send(topic, value(number), key=key) for number, key in enumerate(keys)]
        )
        assert set(errors) == set(POISONED)
        for error in errors.values():
            assert isinstance(error, BrokerError)
            assert error.error.name == "INVALID_RECORD"
            assert f"{topic}-0" in str(error)
        assert values_in(kafka, topic) == rest
        table = pa.table({"key": keys, "value": [value(each) for each in range(COUNT)]})
        with pytest.raises(RefusedRowsError) as refused:
            producer.send_columns(topic, table).result(WAIT_SECONDS)
        assert refused.value.rows == POISONED
        assert values_in(kafka, topic) == rest * 2


def test_what_cannot_be_made_bytes_or_is_too_large_raises_at_once_and_harms_no_other(
    kafka: LocalKafka, topic: str
) -> None:
    kafka.create_topic(topic)

    def serialize(number: int) -> bytes:
        return b"%d" % (12 // number)

    with KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers,
        value_serializer=serialize,
        max_request_size=MOST_BYTES,
    ) as producer:
        futures = [producer.send(topic, 4)]
        with pytest.raises(UnsendableRecordError, match=rf"{topic}.*value.*ZeroDivisionError"):
            producer.send(topic, 0)
        with pytest.raises(UnsendableRecordError, match=rf"{topic}.*'max_request_size'"):
            producer.send(topic, 1, headers=[("h", bytes(MOST_BYTES))])
        with pytest.raises(RowTooLargeError, match=r"^Row 2: .*'max_request_size'"):
            table = pa.table({"value": [b"", b"", bytes(MOST_BYTES)]})
            producer.send_columns(topic, table)
        with pytest.raises(UnencodableRowError, match=r"^Row 1: its timestamp is before 1970"):
            producer.send_columns(topic, pa.table({"timestamp": [1, -2]}))
        with pytest.raises(ColumnTypeError, match="'value' is of the type int64"):
            producer.send_columns(topic, pa.table({"value": [1]}))
        futures.append(producer.send(topic, 3))
        assert failed(futures) == {}
    assert values_in(kafka, topic) == [b"3", b"4"]


# -- brokers that are paused -----------------------------------------------------------------------


@contextmanager
def paused(kafka: LocalKafka) -> Iterator[None]:
    kafka.pause()
    try:
        yield
    finally:
        kafka.resume()


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_full_buffer_blocks_then_fails_by_name_and_the_producer_goes_on(
    kafka: LocalKafka, topic: str, idempotent: bool
) -> None:
    kafka.create_topic(topic)
    with KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers,
        enable_idempotence=idempotent,
        buffer_memory=100_000,
        batch_size=10_000,
        max_block_ms=300,
    ) as producer:
        knowing(producer, topic)
        futures = [producer.send(topic, b"%d" % 0)]
        futures[0].result(WAIT_SECONDS)
        with paused(kafka):
            with pytest.raises(BufferFullError) as full:
                while len(futures) < 10_000:
                    futures.append(producer.send(topic, b"%d" % len(futures)))
            assert "within 300 ms ('max_block_ms')" in str(full.value)
            assert "of the 100000 of 'buffer_memory'" in str(full.value)
            taken = len(futures)
            with pytest.raises(BufferFullError):
                producer.send_columns(topic, pa.table({"value": [b"x" * 50_000]}))
        assert failed(futures) == {}
        futures += [producer.send(topic, b"%d" % number) for number in range(taken, taken + 100)]
        assert failed(futures) == {}
    assert values_in(kafka, topic) == [b"%d" % number for number in range(len(futures))]


def write_in_time(producer: KafkaProducer, topic: str, value: bytes) -> None:
    """Send the value until it is written within `delivery.timeout.ms`.

    A busy broker may write the value too late. Then the log has it more than once.
    """
    eventually(lambda: producer.send(topic, value).exception(WAIT_SECONDS) is None)


def test_records_that_nobody_takes_in_time_fail_by_name(kafka: LocalKafka, topic: str) -> None:
    kafka.create_topic(topic)
    with KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers,
        delivery_timeout_ms=700,
        request_timeout_ms=500,
        linger_ms=0,
    ) as producer:
        write_in_time(producer, topic, b"0")
        with paused(kafka):
            future = producer.send(topic, b"1")
            error = future.exception(WAIT_SECONDS)
        assert isinstance(error, KafkaTimeoutError)
        assert f"{topic}-0" in str(error)
        assert "within 700 ms ('delivery_timeout_ms')" in str(error)
        write_in_time(producer, topic, b"2")
    found = values_in(kafka, topic)
    assert found.count(b"1") <= 1
    # A failed record may still be in the log. The producer cannot know.
    assert list(dict.fromkeys(found)) in ([b"0", b"2"], [b"0", b"1", b"2"])
