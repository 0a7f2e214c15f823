"""Remote storage that fails, that is slow, or that the broker does not know yet: no row is lost.

A broker answers a fetch with UNKNOWN_SERVER_ERROR where remote storage fails, and without records
where it takes longer than `remote.fetch.max.wait.ms`.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_kafka_source import KafkaConsumer, TopicPartition, read_topic
from spark_kafka_source.errors import KafkaTimeoutError
from tests.tiered_storage.tiered import FIRST_MS, STEP_MS, TieredKafka, Written
from tools.traffic import batch

pytestmark = [pytest.mark.kafka, pytest.mark.long]

COUNT = 1_700
TOPIC = "faults"
WHERE = TopicPartition(TOPIC, 0)
POLLS = 8
TIMEOUTS_MS = (3_000, 30_000)
"""For a read that comes to the fault, and for one that a busy machine keeps from it."""


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


def failed(error: type[Exception], said: str, read: Callable[[int], object]) -> str:
    """Return the text of a read's error, which a fault has caused if it says this."""
    for timeout_ms in TIMEOUTS_MS:
        with pytest.raises(error) as caught:
            read(timeout_ms)
        if said in str(caught.value):
            break
    return str(caught.value)


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
            if fault is missing:  # The broker has answered with an error, however late.
                said = f"{WHERE} at offset {first}: UNKNOWN_SERVER_ERROR"
                while said not in caplog.text:
                    found += offsets_of(consumer, 1)
            assert found + offsets_of(consumer, POLLS) == list(range(first))
            assert consumer.position(WHERE) == first
        found = []
        while consumer.position(WHERE) < COUNT:
            found += offsets_of(consumer, 1)
        assert found == list(range(first, COUNT))


def test_a_table_that_storage_fails_is_an_error_and_not_a_part(
    tiered: TieredKafka, segment: Path
) -> None:
    def read(timeout_ms: int) -> None:
        read_topic(TOPIC, bootstrap_servers=tiered.servers, default_api_timeout_ms=timeout_ms)

    with missing(segment) as first:
        said = f"{TOPIC}-0 at offset {first}: UNKNOWN_SERVER_ERROR"
        text = failed(KafkaTimeoutError, said, read)
    assert said in text
    assert "remote storage may have failed" in text
    assert read_topic(TOPIC, bootstrap_servers=tiered.servers).num_rows == COUNT


def test_a_table_that_storage_is_too_slow_for_is_an_error_and_not_a_part(
    tiered: TieredKafka, segment: Path
) -> None:
    start = {0: int(segment.name[:20])}

    def read(timeout_ms: int) -> None:
        settings: dict[str, Any] = {"default_api_timeout_ms": timeout_ms}
        read_topic(TOPIC, start=start, bootstrap_servers=tiered.servers, **settings)

    said = f"nothing at offset {start[0]} within "
    with slow(segment):
        text = failed(KafkaTimeoutError, said, read)
    assert said in text
    assert "while their remote storage is slow" in text
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
    }

    def count(timeout_ms: int) -> int:
        names = ("kafka.default.api.timeout.ms", "kafkaConsumer.pollTimeoutMs")
        return batch(spark, given | dict.fromkeys(names, timeout_ms)).count()

    with fault(segment) as first:
        assert f"offset {first}" in failed(PySparkException, f"offset {first}", count)
    assert count(TIMEOUTS_MS[-1]) == COUNT


@pytest.mark.parametrize("by_time", [False, True])
def test_a_broker_that_has_just_started(tiered: TieredKafka, segment: Path, by_time: bool) -> None:
    """It serves before it knows what is in remote storage."""
    tiered.restart()
    start = f"{FIRST_MS + 300 * STEP_MS}" if by_time else "earliest"
    table = read_topic(TOPIC, start=start, bootstrap_servers=tiered.servers)
    assert table["offset"].to_pylist() == list(range(300 if by_time else 0, COUNT))
