"""The letters of a task, read from and written to an in-memory broker.

A task ends once its letters are written. A task that ends in another way leaves the writing to the
next attempt.
"""

import logging
from collections.abc import Generator, Iterator

import pyarrow as pa
import pytest

from spark_kafka_source.dead_letters import DeadLetterError, Destination
from spark_kafka_source.fetch import OffsetRange
from spark_kafka_source.protocol.messages.produce import InitProducerIdRequest, ProduceRequest
from spark_kafka_source.spark.options import parse_source_options
from spark_kafka_source.spark.pool import Pool
from spark_kafka_source.spark.source import planned, task_letters
from spark_kafka_source.spark.source.options import SourceOptions
from spark_kafka_source.spark.source.tasks import KafkaInputPartition, read_ranges
from spark_kafka_source.testing.memory import MemoryBroker, PartitionLog
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import eventually
from tests.producer.writing import answering, sequences, values
from tests.spark.settings import shipped

WHERE = TopicPartition("t", 0)
CHUNKS = 5
"""Each is one batch of `ROWS`, of which one is bad."""
ROWS = 9_000


@pytest.fixture
def log(broker: MemoryBroker) -> PartitionLog:
    (log,) = broker.create_topic("t")
    for number in range(CHUNKS):
        good = [b'{"id": 1}'] * (ROWS - 1)
        log.append(*good, b"?%d" % number)
    return log


@pytest.fixture
def dead(broker: MemoryBroker) -> PartitionLog:
    (dead,) = broker.create_topic("dead")
    return dead


@pytest.fixture
def options(
    broker: MemoryBroker,
    log: PartitionLog,
    dead: PartitionLog,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[SourceOptions]:
    """Options of a query as a task gets them, in a worker that keeps nothing yet."""
    assert log.end_offset > dead.end_offset
    kept = Pool(task_letters._make, task_letters._close)
    monkeypatch.setattr(task_letters, "kept_writers", kept)
    given = {
        "kafka.bootstrap.servers": str(broker.address()),
        "kafka.retry.backoff.ms": "1",
        "subscribe": "t",
        "value.format": "json",
        "value.schema": "id BIGINT",
        "badRecords": "topic",
        "badRecords.topic": "dead",
    }
    yield shipped(planned(parse_source_options(given), has_time=False))
    if kept._timer is not None:
        kept._timer.cancel()
    for each in kept._idle.values():
        each.item.close(0)


def task(broker: MemoryBroker, options: SourceOptions) -> Generator[pa.RecordBatch]:
    topic = broker.cluster.topics["t"]
    wanted = OffsetRange(WHERE, 0, topic.logs[0].end_offset, topic.topic_id)
    reading = read_ranges(KafkaInputPartition((wanted,), 1, 1), options)
    assert isinstance(reading, Generator)
    return reading


def bad(count: int = CHUNKS) -> list[bytes]:
    return [b"?%d" % number for number in range(count)]


def test_a_task_ends_once_its_letters_are_written(
    broker: MemoryBroker,
    options: SourceOptions,
    dead: PartitionLog,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, task_letters.__name__):
        rows = sum(batch.num_rows for batch in task(broker, options))
    assert rows == CHUNKS * (ROWS - 1)
    assert values(dead) == bad()
    (message,) = caplog.messages
    assert message == (
        f"Bad records sent to topic 'dead': {CHUNKS}; the first is t-0 at offset {ROWS - 1}: the "
        "value cannot be decoded: not JSON, or more than one JSON value"
    )


def test_the_end_of_a_task_waits_for_its_letters(
    broker: MemoryBroker, options: SourceOptions, dead: PartitionLog
) -> None:
    """All rows may be there before that. Spark takes them for good only at the end."""
    held = broker.hold(ProduceRequest, then=answering("TOPIC_AUTHORIZATION_FAILED"))
    rows = 0
    with pytest.raises(DeadLetterError, match=rf"t-0, offset {ROWS - 1}: .*'badRecords.topic'"):
        for batch in task(broker, options):
            rows += batch.num_rows
            if rows == CHUNKS * (ROWS - 1):
                held.release()
    assert rows == CHUNKS * (ROWS - 1)
    # Those of the first request are refused. How many it has is a matter of the threads' turns.
    (refused,) = (count for _, _, count in sequences(broker.requests(ProduceRequest)[0]))
    found = values(dead)
    assert found == bad()[refused:][: len(found)]


def test_a_worker_keeps_its_producer_for_the_next_task(
    broker: MemoryBroker, options: SourceOptions, dead: PartitionLog
) -> None:
    for _ in range(3):
        assert sum(batch.num_rows for batch in task(broker, options))
    assert values(dead) == bad() * 3
    assert len(broker.requests(InitProducerIdRequest)) == 1


def test_a_task_that_failed_is_run_again_and_no_letter_is_lost(
    broker: MemoryBroker, options: SourceOptions, dead: PartitionLog
) -> None:
    """A letter is there at most once for each attempt."""
    attempt = task(broker, options)
    next(attempt)
    with pytest.raises(RuntimeError, match="the task is killed"):
        attempt.throw(RuntimeError("the task is killed"))
    assert sum(batch.num_rows for batch in task(broker, options)) == CHUNKS * (ROWS - 1)
    found = values(dead)
    assert {*found} == {*bad()}
    assert all(found.count(each) <= 2 for each in found)
    assert found[-CHUNKS:] == bad()


def test_a_task_that_is_dropped_sends_the_letters_of_its_rows(
    broker: MemoryBroker, options: SourceOptions, dead: PartitionLog
) -> None:
    """With LIMIT, Spark takes a few rows and drops the rest. What it took is accounted for."""
    reading = task(broker, options)
    assert next(reading).num_rows
    reading.close()
    assert values(dead)[:1] == bad(1)


def test_letters_that_are_refused_fail_the_task_before_its_end(
    broker: MemoryBroker, options: SourceOptions, dead: PartitionLog
) -> None:
    broker.control(ProduceRequest, answering("MESSAGE_TOO_LARGE"), times=None)
    with pytest.raises(DeadLetterError, match=r"'max\.message\.bytes'"):
        for _ in task(broker, options):
            eventually(lambda: bool(broker.requests(ProduceRequest)))
    assert values(dead) == []
    broker.forget()
    assert sum(batch.num_rows for batch in task(broker, options)) == CHUNKS * (ROWS - 1)
    assert values(dead) == bad()


def test_a_task_without_bad_records_has_no_producer(
    broker: MemoryBroker, options: SourceOptions, dead: PartitionLog
) -> None:
    topic = broker.cluster.topics["t"]
    wanted = OffsetRange(WHERE, 0, ROWS - 1, topic.topic_id)
    found = read_ranges(KafkaInputPartition((wanted,), 1, 1), options)
    assert sum(batch.num_rows for batch in found) == ROWS - 1
    assert not broker.requests(InitProducerIdRequest)
    assert dead.end_offset == 0


def test_the_letters_go_where_the_records_come_from(options: SourceOptions) -> None:
    columns = options.typed_columns
    assert columns is not None
    assert Destination(options.client, columns.bad_records_topic).producer.client == options.client
