"""The memory of a task does not grow with the rows that it writes."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import psutil
import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType

from spark_kafka_source import KafkaDataSource
from spark_kafka_source.testing import LocalKafka

pytestmark = [pytest.mark.kafka, pytest.mark.long]

MIB = 1 << 20
ROWS = 10_000
VALUE = "x" * 250
BATCHES = 400  # 1 GiB of them
MOST_MIB = 150


def test_a_task_that_writes_a_gibibyte_stays_small(kafka: LocalKafka, topic: str) -> None:
    kafka.create_topic(topic, 8, configs={"retention.bytes": str(64 * MIB)})
    with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
        most = fresh.submit(write, kafka.bootstrap_servers, topic).result()
    print(f"{most:.0f} MiB")
    assert most < MOST_MIB


def write(servers: str, topic: str) -> float:
    """Write as a task does. Return the peak memory above that of the imports, in MiB."""
    options = {
        "kafka.bootstrap.servers": servers,
        "topic": topic,
        "kafka.compression.type": "lz4",
    }
    schema = StructType([StructField(name, StringType()) for name in ("key", "value")])
    process = psutil.Process()
    before = process.memory_info().rss
    most = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal most
        for number in range(BATCHES):
            keys = pa.array([f"{number}-{row}" for row in range(ROWS)])
            yield pa.RecordBatch.from_arrays([keys, pa.array([VALUE] * ROWS)], schema.names)
            most = max(most, process.memory_info().rss - before)

    found = KafkaDataSource(options).writer(schema, overwrite=False).write(batches())
    assert found.row_count == ROWS * BATCHES
    return most / MIB
