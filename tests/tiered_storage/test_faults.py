"""Remote storage that fails, that is slow, or that the broker does not know yet: no row is lost.

A broker answers a fetch with UNKNOWN_SERVER_ERROR where remote storage fails, and without records
where it takes longer than `remote.fetch.max.wait.ms`.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_kafka_source import KafkaConsumer, TopicPartition, read_topic
from spark_kafka_source.errors import KafkaTimeoutError
from tests.spark.traffic import batch
from tests.tiered_storage.tiered import FIRST_MS, STEP_MS, TieredKafka, Written

pytestmark = [pytest.mark.kafka, pytest.mark.long]

COUNT = 1_700
TOPIC = "faults"
WHERE = TopicPartition(TOPIC, 0)
POLLS = 8
IMPATIENT: dict[str, Any] = {"default_api_timeout_ms": 3_000}


@pytest.fixture(scope="module")
def segment(tiered: TieredKafka) -> Path:
    """Write a topic. Return the second of its segments in remote storage."""
    tiered.create_topic(TOPIC, 1)
    Written(tiered, TOPIC).write(COUNT, partitions=1)
    tiered.wait_for_tiering(TOPIC, 1)
    _, second, *_ = tiered.remote_segments(TOPIC)
    return second


@contextmanager
def missing(segment: Path) -> Iterator[int]:
    """Take a segment away. Yield its first offset."""
    away = segment.rename(segment.with_suffix(".away"))
    try:
        yield int(segment.name[:20])
    finally:
        away.rename(segment)


@contextmanager
def slow(segment: Path) -> Iterator[int]:
    """Let the broker wait for the segment's first byte. Yield its first offset."""
    away = segment.rename(segment.with_suffix(".away"))
    pipe = segment.with_suffix(".pipe")
    try:
        os.mkfifo(segment)
        yield int(segment.name[:20])
    finally:
        segment.rename(pipe)
        away.rename(segment)
        # Whoever waits for the pipe comes to its end.
        os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))


def offsets_of(consumer: KafkaConsumer, polls: int) -> list[int]:
    return [each.offset for _ in range(polls) for each in consumer.poll(500)]


@pytest.mark.parametrize("fault", [missing, slow])
def test_a_consumer_waits_and_then_goes_on(
    tiered: TieredKafka, segment: Path, fault: Any, caplog: pytest.LogCaptureFixture
) -> None:
    # A reset would be seen: the position would be another one.
    with KafkaConsumer(bootstrap_servers=tiered.servers, auto_offset_reset="latest") as consumer:
        consumer.assign([WHERE])
        consumer.seek(WHERE, 0)
        with fault(segment) as first:
            found: list[int] = []
            while consumer.position(WHERE) < first:
                found += offsets_of(consumer, 1)
            assert found + offsets_of(consumer, POLLS) == list(range(first))
            assert consumer.position(WHERE) == first
        found = []
        while consumer.position(WHERE) < COUNT:
            found += offsets_of(consumer, 1)
        assert found == list(range(first, COUNT))
    if fault is missing:
        assert f"{WHERE} at offset {first}: UNKNOWN_SERVER_ERROR" in caplog.text


def test_a_table_that_storage_fails_is_an_error_and_not_a_part(
    tiered: TieredKafka, segment: Path
) -> None:
    with missing(segment) as first, pytest.raises(KafkaTimeoutError) as caught:
        read_topic(TOPIC, bootstrap_servers=tiered.servers, **IMPATIENT)
    assert f"{TOPIC}-0 at offset {first}: UNKNOWN_SERVER_ERROR" in str(caught.value)
    assert "remote storage may have failed" in str(caught.value)
    assert read_topic(TOPIC, bootstrap_servers=tiered.servers).num_rows == COUNT


def test_a_table_that_storage_is_too_slow_for_is_an_error_and_not_a_part(
    tiered: TieredKafka, segment: Path
) -> None:
    start = {0: int(segment.name[:20])}
    with slow(segment), pytest.raises(KafkaTimeoutError) as caught:
        read_topic(TOPIC, start=start, bootstrap_servers=tiered.servers, **IMPATIENT)
    assert f"nothing at offset {start[0]} within 3000 ms" in str(caught.value)
    assert "while their remote storage is slow" in str(caught.value)
    assert read_topic(TOPIC, bootstrap_servers=tiered.servers).num_rows == COUNT


@pytest.mark.spark
@pytest.mark.parametrize("fault", [missing, slow])
def test_a_task_skips_nothing_even_if_it_may_skip_what_is_lost(
    spark: SparkSession, tiered: TieredKafka, segment: Path, fault: Any
) -> None:
    given = {
        "kafka.bootstrap.servers": tiered.servers,
        "subscribe": TOPIC,
        "startingOffsets": "earliest",
        "failOnDataLoss": "false",
        "kafka.default.api.timeout.ms": 3_000,
        "kafkaConsumer.pollTimeoutMs": 3_000,
    }
    with fault(segment) as first, pytest.raises(PySparkException, match=f"offset {first}"):
        batch(spark, given).count()
    assert batch(spark, given).count() == COUNT


@pytest.mark.parametrize("by_time", [False, True])
def test_a_broker_that_has_just_started(tiered: TieredKafka, segment: Path, by_time: bool) -> None:
    """It serves before it knows what is in remote storage."""
    tiered.restart()
    start = f"{FIRST_MS + 300 * STEP_MS}" if by_time else "earliest"
    table = read_topic(TOPIC, start=start, bootstrap_servers=tiered.servers)
    assert table["offset"].to_pylist() == list(range(300 if by_time else 0, COUNT))
