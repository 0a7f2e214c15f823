"""Spread and size of batches on a real broker, beside Java's producer and confluent-kafka."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_kafka_source.producer import KafkaProducer, UnsendableRecordError
from spark_kafka_source.records import RowTooLargeError
from spark_kafka_source.testing import LocalKafka
from tools.java_program import JavaProgram
from tools.three_producers import (
    OURS,
    PARTITIONS,
    SMALL_BATCHES,
    WAIT_SECONDS,
    Load,
    Outcome,
    Way,
    by_columns,
    by_confluent,
    by_java,
    java,
)

pytestmark = pytest.mark.kafka

SLOW = Load(1_500, 100, 1_333)
FAST = Load(90_000, 100)
ROUNDS = 5
ROUND_ROBIN = "org.apache.kafka.clients.producer.RoundRobinPartitioner"
MOST_BYTES = 20_000
our_way = pytest.mark.parametrize("way", OURS.values(), ids=OURS)


@pytest.fixture(scope="module")
def program(kafka_jars: list[Path]) -> Iterator[JavaProgram]:
    with java(kafka_jars) as program:
        yield program


@pytest.fixture(scope="module")
def strict() -> Iterator[LocalKafka]:
    """Run a broker that hangs up on larger requests."""
    with LocalKafka(properties={"socket.request.max.bytes": str(MOST_BYTES)}) as kafka:
        yield kafka


def write(
    kafka: LocalKafka, topic: str, way: Way, load: Load, settings: Mapping[str, Any]
) -> Outcome:
    kafka.create_topic(topic, PARTITIONS)
    return way(kafka.bootstrap_servers, topic, load, settings)


def by_value(value: bytes) -> pa.Table:
    return pa.table({"value": [value]})


def one_by_send(producer: KafkaProducer, topic: str) -> int:
    """Return the partition of a record."""
    return producer.send(topic, b"1").result(WAIT_SECONDS).partition


def one_by_columns(producer: KafkaProducer, topic: str) -> int:
    """Return the partition of a record."""
    (run,) = producer.send_columns(topic, by_value(b"1")).result(WAIT_SECONDS)
    return run.partition


def uneven(outcome: Outcome) -> float:
    """Return how far the shares are from equal ones: 0 for equal shares, 5 for one of six."""
    equal = sum(outcome.counts) / PARTITIONS
    return max(abs(each - equal) for each in outcome.counts) / equal


# -- records without a key -------------------------------------------------------------------------


@pytest.mark.parametrize("linger_ms", [0, 5, 100])
@pytest.mark.parametrize("send", [one_by_send, one_by_columns])
def test_a_slow_producer_writes_to_all_partitions(
    kafka: LocalKafka, topic: str, send: Callable[[KafkaProducer, str], int], linger_ms: int
) -> None:
    """The producer waits for each record, so none gather while the machine stands still."""
    kafka.create_topic(topic, PARTITIONS)
    settings: dict[str, Any] = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "linger.ms": linger_ms,
    }
    with KafkaProducer(**settings) as producer:
        found = Counter(send(producer, topic) for _ in range(ROUNDS * PARTITIONS))
    assert found == dict.fromkeys(range(PARTITIONS), ROUNDS)


@our_way
def test_a_fast_producer_writes_to_all_partitions_alike(
    kafka: LocalKafka, topic: str, way: Way
) -> None:
    # An adaptive producer spares partitions whose batches wait, as after a pause of the machine.
    settings = {"batch.size": 1 << 24, "partitioner.adaptive.partitioning.enable": False}
    found = write(kafka, topic, way, FAST, settings)
    assert uneven(found) < 0.5


# Twelve writes of more than a second. The shorter tests above hold ours to bounds of their own.
@our_way
@pytest.mark.java
@pytest.mark.reliability_full
def test_partitions_are_as_even_as_by_java_and_by_confluent_kafka(
    kafka: LocalKafka, program: JavaProgram, topic: str, way: Way
) -> None:
    """The figures of one run of theirs vary, so ours need only be even in half of the runs."""
    ours, theirs = [], []
    for number in range(2):
        for name, settings in (("a", {}), ("b", {"linger.ms": 50})):
            ours.append(uneven(write(kafka, f"{topic}-{name}{number}", way, SLOW, settings)))
            for other, way_of_other in (("j", by_java(program)), ("c", by_confluent)):
                named = f"{topic}-{name}{number}{other}"
                theirs.append(uneven(write(kafka, named, way_of_other, SLOW, settings)))
    assert sorted(ours)[1] <= max(theirs)


@our_way
@pytest.mark.java
def test_round_robin_equals_the_java_partitioner(
    kafka: LocalKafka, program: JavaProgram, topic: str, way: Way
) -> None:
    settings = {"partitioner.class": ROUND_ROBIN}
    javas = write(kafka, f"{topic}-java", by_java(program), Load(600, 100), settings)
    ours = write(kafka, topic, way, Load(600, 100), settings)
    assert ours.counts == javas.counts == [100] * PARTITIONS
    assert javas.longest_run == 1
    if way is not by_columns:  # There the rows of a partition are told together.
        assert ours.longest_run == 1


# -- sizes of batches and requests -----------------------------------------------------------------


@our_way
@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_a_topic_with_small_batches_costs_little_more_on_the_wire(
    kafka: LocalKafka, topic: str, way: Way, codec: str
) -> None:
    """Ours used to take five times the bytes, as Java's does with batches of 1 MiB."""
    load = Load(18_000, 1_000)
    settings = {"compression.type": codec}
    kafka.create_topic(topic, PARTITIONS, configs=SMALL_BATCHES)
    found = way(kafka.bootstrap_servers, topic, load, settings)
    assert sum(found.counts) == load.count
    assert found.wire_bytes < 1.7 * load.bytes


@our_way
@pytest.mark.parametrize("batch_size", [1_000, 16_384, 1 << 20])
def test_no_request_exceeds_max_request_size(
    strict: LocalKafka, topic: str, way: Way, batch_size: int
) -> None:
    in_time = {"request.timeout.ms": 30_000, "delivery.timeout.ms": 120_000}
    settings = {"max.request.size": MOST_BYTES, "batch.size": batch_size, **in_time}
    load = Load(3_000, 1_000)
    found = write(strict, topic, way, load, settings)
    assert sum(found.counts) == load.count


def test_a_larger_record_is_refused_before_it_is_sent(strict: LocalKafka, topic: str) -> None:
    strict.create_topic(topic)
    with KafkaProducer(
        bootstrap_servers=strict.bootstrap_servers, max_request_size=MOST_BYTES
    ) as producer:
        said = r"it may take 20083 bytes, and 'max_request_size' is 20000"
        with pytest.raises(UnsendableRecordError, match=said):
            producer.send(topic, bytes(20_001))
        with pytest.raises(RowTooLargeError, match="'max_request_size' is 20000"):
            producer.send_columns(topic, by_value(bytes(20_001)))
        largest = bytes(MOST_BYTES - 61 - 21 - 200)
        assert producer.send(topic, largest).result(60).offset == 0
        assert producer.send_columns(topic, by_value(largest)).result(60)[0].offset == 1
