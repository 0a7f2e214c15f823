"""A task's rows, written by this project's producer to an in-memory broker."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType

from spark_kafka_source import KafkaDataSource
from spark_kafka_source.errors import BootstrapError, BrokerError, KafkaTimeoutError, error_named
from spark_kafka_source.producer import KafkaProducer, ProducerConfig
from spark_kafka_source.protocol.messages.produce import ProduceRequest
from spark_kafka_source.records import chunks, to_arrow
from spark_kafka_source.spark.pool import Pool
from spark_kafka_source.spark.sink import guarantee
from spark_kafka_source.spark.sink.writer import KafkaWriter
from spark_kafka_source.testing.memory import MemoryBroker, PartitionLog
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import eventually
from tests.spark.settings import shipped
from tests.spark.sink.settings import values

pytestmark = pytest.mark.memory(nodes=2)

MIB = 1 << 20
MOST_BYTES = 2**31 - 1
DENIED = error_named("TOPIC_AUTHORIZATION_FAILED").code


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool[ProducerConfig, KafkaProducer]]:
    """Producers that a fresh worker keeps. The fixture closes them at its end."""
    kept = Pool(KafkaProducer.of, KafkaProducer.close)
    monkeypatch.setattr(guarantee, "kept_producers", kept)
    yield kept
    if kept._timer is not None:
        kept._timer.cancel()
    for each in kept._idle.values():
        each.item.close(0)


def writer(broker: MemoryBroker, *names: str, **options: str) -> KafkaWriter:
    given = {
        "kafka.bootstrap.servers": str(broker.address()),
        "kafka.retry.backoff.ms": "10",
        "kafka.max.block.ms": "20000",
        **{name.replace("_", "."): value for name, value in options.items()},
    }
    schema = StructType([StructField(name, StringType()) for name in names or ("value",)])
    return shipped(KafkaDataSource(given).writer(schema, overwrite=False))


def in_log(log: PartitionLog) -> list[str]:
    found = chunks(log.read(0, log.end_offset, MOST_BYTES), topic_partition=TopicPartition("a", 0))
    return [each.decode() for chunk in found for each in to_arrow(chunk)["value"].to_pylist()]


def test_rows_are_in_the_logs_once_the_task_is_over(broker: MemoryBroker) -> None:
    logs = broker.create_topic("a", 2)
    batches = [values(*(f"{batch}-{row}" for row in range(100))) for batch in range(10)]
    found = writer(broker, topic="a").write(iter(batches))
    assert found.row_count == 1_000
    expected = [text for batch in batches for text in batch["value"].to_pylist()]
    assert sorted(in_log(logs[0]) + in_log(logs[1])) == sorted(expected)


def test_tasks_one_after_the_other_keep_their_connection(broker: MemoryBroker) -> None:
    broker.create_topic("a", 1)
    writer(broker, topic="a").write(iter([values("a")]))
    accepted = broker.accepted(0) + broker.accepted(1)
    for _ in range(5):
        writer(broker, topic="a").write(iter([values("a")]))
    assert broker.accepted(0) + broker.accepted(1) == accepted


def test_after_the_first_failure_no_more_rows_are_taken(broker: MemoryBroker) -> None:
    broker.create_topic("a", 1)
    broker.cluster.refusal = DENIED
    taken = 0

    def rows() -> Iterator[pa.RecordBatch]:
        nonlocal taken
        for _ in range(1_000):
            taken += 1
            yield values("x" * (MIB // 2))

    with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
        writer(broker, topic="a").write(rows())
    assert taken < 300


def test_a_task_after_one_that_failed_writes(broker: MemoryBroker) -> None:
    (log,) = broker.create_topic("a", 1)
    broker.cluster.refusal = DENIED
    with pytest.raises(BrokerError):
        writer(broker, topic="a").write(iter([values("a")]))
    broker.cluster.refusal = 0
    writer(broker, topic="a").write(iter([values("b")]))
    assert in_log(log) == ["b"]


def test_a_small_buffer_holds_a_task_up_and_loses_nothing(broker: MemoryBroker) -> None:
    (log,) = broker.create_topic("a", 1)
    small = writer(broker, topic="a", kafka_buffer_memory="16384")
    small.write(iter([values(*("x" * 15_000 for _ in range(20)))] * 10))
    assert log.end_offset == 200


def is_written(broker: MemoryBroker, **options: str) -> bool:
    """Write a row to topic a. Return False if no broker is reached within `max.block.ms`.

    The worker keeps the producer. The next writer with these options is then connected already.
    """
    try:
        writer(broker, topic="a", **options).write(iter([values("a")]))
    except (BootstrapError, KafkaTimeoutError):
        return False
    return True


def test_a_broker_that_takes_nothing_is_an_error_in_time(broker: MemoryBroker) -> None:
    broker.create_topic("a", 1)
    given = {"kafka_max_block_ms": "300", "kafka_buffer_memory": "16384"}
    eventually(lambda: is_written(broker, **given))
    held = broker.hold(ProduceRequest)
    with pytest.raises(KafkaTimeoutError, match=r"'kafka\.buffer\.memory'"):
        writer(broker, topic="a", **given).write(iter([values("x" * 15_000)] * 10))
    held.release()


def test_errors_name_the_options_of_a_spark_user(broker: MemoryBroker) -> None:
    broker.create_topic("a", 1)
    eventually(lambda: is_written(broker, kafka_max_block_ms="100"))
    with pytest.raises(KafkaTimeoutError, match=r"topic 'none' .*'kafka\.max\.block\.ms'"):
        writer(broker, topic="none", kafka_max_block_ms="100").write(iter([values("a")]))


def test_topics_of_a_column(broker: MemoryBroker) -> None:
    logs = [broker.create_topic(name, 1)[0] for name in "ab"]
    rows = pa.RecordBatch.from_pydict(
        {"value": [str(number) for number in range(100)], "topic": ["a", "b"] * 50}
    )
    writer(broker, "value", "topic").write(iter([rows]))
    assert [in_log(log) for log in logs] == [
        [str(number) for number in range(first, 100, 2)] for first in (0, 1)
    ]
