"""Records of a `KafkaProducer` on real brokers: all readers see them, in Java's partitions."""

import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.producer import KafkaProducer, ProducerFencedError
from spark_kafka_source.records import Codec
from spark_kafka_source.testing import LocalKafka
from tests.producer.reading import (
    ByPartition,
    dumped,
    kafkas_consumer,
    read_by_confluent,
    read_by_kafka,
    read_by_us,
)
from tests.producer.rows import ROWS, as_columns, rows
from tests.records.batches import Row
from tools.java_program import JavaProgram, RefusedError, run_java

pytestmark = [pytest.mark.kafka, pytest.mark.java]

PARTITIONS = 3
WAIT_SECONDS = 60.0
# Java's hashes of a test's 10,000 keys have both signs.
KEYS = 10_000
WAYS = ("send", "send_columns")


@pytest.fixture(scope="module")
def kafkas_own(kafka_jars: list[Path]) -> Iterator[JavaProgram]:
    with kafkas_consumer(kafka_jars) as program:
        yield program


@pytest.fixture(scope="module")
def javas(kafka_jars: list[Path]) -> Iterator[JavaProgram]:
    """Run Java's producers."""
    with run_java(Path(__file__).with_name("JavaProducer.java"), kafka_jars) as program:
        yield program


def producing(kafka: LocalKafka, **settings: Any) -> KafkaProducer:
    return KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, **settings)


def write(producer: KafkaProducer, topic: str, given: list[dict[str, Any]], way: str) -> None:
    """Write all rows. Raise the first error."""
    if way == "send":
        for each in [producer.send(topic, **row) for row in given]:
            each.result(WAIT_SECONDS)
    else:
        producer.send_columns(topic, as_columns(given)).result(WAIT_SECONDS)


Content = tuple[int | None, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]


def given_content(given: list[dict[str, Any]]) -> Counter[Content]:
    return Counter(
        (row["timestamp_ms"], row["key"], row["value"], tuple(row["headers"])) for row in given
    )


def found_content(found: ByPartition, since_ms: int) -> Counter[Content]:
    """Return the contents of all records, with None for timestamps of the producer."""
    until_ms = time.time_ns() // 1_000_000

    def stamp(row: Row) -> int | None:
        return None if since_ms <= row.timestamp_ms <= until_ms else row.timestamp_ms

    return Counter(
        (stamp(row), row.key, row.value, row.headers) for each in found.values() for row in each
    )


def assert_in_order(found: ByPartition, given: list[dict[str, Any]]) -> None:
    """Check that offsets have no gap, and that each partition keeps the order of the rows."""
    known = {row["timestamp_ms"] for row in given} - {None}
    for read in found.values():
        assert [row.offset for row in read] == list(range(len(read)))
        stamps = [row.timestamp_ms for row in read if row.timestamp_ms in known]
        assert stamps == sorted(stamps)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("codec", Codec)
def test_every_reader_reads_what_the_producer_wrote(
    kafka: LocalKafka, kafkas_own: JavaProgram, topic: str, codec: Codec, way: str
) -> None:
    kafka.create_topic(topic, PARTITIONS)
    given = rows()
    since_ms = time.time_ns() // 1_000_000
    # Small batches: several of a partition are in flight.
    with producing(kafka, compression_type=codec.name.lower(), batch_size=50_000) as producer:
        write(producer, topic, given, way)
    servers = kafka.bootstrap_servers
    found = read_by_kafka(kafkas_own, servers, topic, PARTITIONS)
    assert found_content(found, since_ms) == given_content(given)
    assert_in_order(found, given)
    assert read_by_confluent(servers, topic, PARTITIONS) == found
    assert read_by_us(servers, topic, PARTITIONS) == found
    batches = dumped(kafka, topic)
    assert sum(count for count, _, _ in batches) == ROWS
    assert {tuple(each) for _, *each in batches} == {(codec.name.lower(), "true")}
    assert len(batches) > PARTITIONS


@pytest.mark.parametrize(
    "settings",
    [
        {"acks": "0"},
        {"acks": 1},
        {"acks": "all", "enable_idempotence": False},
        {"acks": "all", "enable_idempotence": True},
        {"max_in_flight_requests_per_connection": 1},
        {"linger_ms": 0, "batch_size": 0},
        {"linger_ms": 50},
    ],
    ids=str,
)
@pytest.mark.parametrize("way", WAYS)
def test_all_is_there_however_it_is_acknowledged(
    kafka: LocalKafka, topic: str, way: str, settings: Mapping[str, Any]
) -> None:
    kafka.create_topic(topic, PARTITIONS)
    given = rows()[:500]
    since_ms = time.time_ns() // 1_000_000
    with producing(kafka, **settings) as producer:
        write(producer, topic, given, way)
    found = read_by_confluent(kafka.bootstrap_servers, topic, PARTITIONS)
    assert found_content(found, since_ms) == given_content(given)
    assert_in_order(found, given)


def test_where_a_record_is_said_to_be_it_is(kafka: LocalKafka, topic: str) -> None:
    kafka.create_topic(topic, PARTITIONS)
    given = rows()
    with producing(kafka, batch_size=20_000) as producer:
        said = [
            each.result(WAIT_SECONDS) for each in [producer.send(topic, **row) for row in given]
        ]
        runs = producer.send_columns(topic, as_columns(given)).result(WAIT_SECONDS)
    found = read_by_confluent(kafka.bootstrap_servers, topic, PARTITIONS)
    for row, place in zip(given, said, strict=True):
        there = found[place.partition][place.offset]
        assert (there.key, there.value) == (row["key"], row["value"])
        assert place.timestamp_ms == there.timestamp_ms
        sizes = tuple(-1 if row[name] is None else len(row[name]) for name in ("key", "value"))
        assert (place.serialized_key_size, place.serialized_value_size) == sizes
    # The runs of a partition follow each other without a gap, after the single records.
    ends = {number: sum(each.partition == number for each in said) for number in range(PARTITIONS)}
    for run in runs:
        assert run.offset == ends[run.partition]
        ends[run.partition] += run.record_count
    assert ends == {number: len(each) for number, each in found.items()}


@pytest.mark.parametrize("way", WAYS)
def test_ten_thousand_keys_get_the_partitions_of_the_java_producer(
    kafka: LocalKafka, javas: JavaProgram, topic: str, way: str
) -> None:
    chance = random.Random(17)
    partition_count = 17
    kafka.create_topic(topic, partition_count)
    keys = [chance.randbytes(chance.choice([1, 2, 3, 8, 10, 36, 200])) for _ in range(KEYS)]
    with producing(kafka) as producer:
        write(producer, topic, [row_of(key) for key in keys], way)
    found = read_by_confluent(kafka.bootstrap_servers, topic, partition_count)
    ours = {row.key: number for number, each in found.items() for row in each}
    java = Java(javas, kafka, topic)
    assert [ours[key] for key in keys] == java.send(topic, *keys)


class Java:
    """One producer of Java."""

    def __init__(self, program: JavaProgram, kafka: LocalKafka, name: str, *settings: str) -> None:
        self._program, self._name = program, name
        given = " ".join([f"bootstrap.servers={kafka.bootstrap_servers}", *settings])
        program.ask(f"new {name} {given}")

    def send(self, topic: str, *keys: bytes) -> list[int]:
        """Write records with these keys and equal values. Return their partitions."""
        said = self._program.ask(f"send {self._name} {topic} {','.join(key.hex() for key in keys)}")
        return list(map(int, said.split()))

    def do(self, what: str) -> None:
        """Call `init`, `begin`, `commit`, `abort` or `close`. Raise `RefusedError` on an error."""
        self._program.ask(f"{what} {self._name}")


def row_of(key: bytes) -> dict[str, Any]:
    return {"key": key, "value": b"", "headers": [], "timestamp_ms": None}


def test_readers_with_read_committed_see_what_was_committed_only(
    kafka: LocalKafka, kafkas_own: JavaProgram, topic: str
) -> None:
    kafka.create_topic(topic, PARTITIONS)
    chance = random.Random(3)
    committed, written = set[bytes | None](), set[bytes | None]()
    with producing(kafka, transactional_id=topic, linger_ms=0, batch_size=500) as producer:
        producer.init_transactions()
        for number in range(20):
            producer.begin_transaction()
            values = [b"%d-%d" % (number, each) for each in range(chance.choice([0, 1, 50]))]
            for each in values:
                producer.send(topic, each, key=each)
            if chance.random() < 0.5:
                producer.send_columns(topic, pa.table({"value": [b"%d-c" % number]}))
                values.append(b"%d-c" % number)
            if chance.random() < 0.5:
                producer.flush(WAIT_SECONDS)
                written.update(values)
            if chance.random() < 0.5:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
                committed.update(values)
    servers = kafka.bootstrap_servers
    found = read_by_kafka(kafkas_own, servers, topic, PARTITIONS, "read_committed")
    assert Counter(values_of(found)) == Counter(committed)
    assert read_by_confluent(servers, topic, PARTITIONS, "read_committed") == found
    all_of_them = values_of(read_by_confluent(servers, topic, PARTITIONS))
    assert committed | written <= set(all_of_them)
    assert len(all_of_them) == len(set(all_of_them))


def values_of(found: ByPartition) -> list[bytes | None]:
    return [row.value for each in found.values() for row in each]


def test_a_java_producer_with_the_same_transactional_id_fences_this_one(
    kafka: LocalKafka, kafkas_own: JavaProgram, javas: JavaProgram, topic: str
) -> None:
    kafka.create_topic(topic, PARTITIONS)
    with producing(kafka, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"ours").result(WAIT_SECONDS)
        java = Java(javas, kafka, topic, f"transactional.id={topic}")
        java.do("init")
        java.do("begin")
        java.send(topic, b"theirs")
        with pytest.raises(ProducerFencedError, match=topic):
            producer.commit_transaction()
        with pytest.raises(ProducerFencedError):
            producer.send(topic, b"ours, too late")
        java.do("commit")
        java.do("close")
    found = read_by_kafka(kafkas_own, kafka.bootstrap_servers, topic, PARTITIONS, "read_committed")
    assert values_of(found) == [b"theirs"]


def test_a_fenced_producer_fails_by_its_records_and_for_good_by_its_abort(
    kafka: LocalKafka, javas: JavaProgram, topic: str
) -> None:
    """As in Java: a leader cannot tell a fenced producer from a transaction that timed out."""
    kafka.create_topic(topic)
    with producing(kafka, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"1").result(WAIT_SECONDS)
        java = Java(javas, kafka, topic, f"transactional.id={topic}")
        java.do("init")
        error = producer.send(topic, b"2").exception(WAIT_SECONDS)
        assert "INVALID_PRODUCER_EPOCH" in str(error)
        with pytest.raises(KafkaError, match="INVALID_PRODUCER_EPOCH"):
            producer.commit_transaction()
        with pytest.raises(ProducerFencedError):
            producer.abort_transaction()
        with pytest.raises(ProducerFencedError):
            producer.begin_transaction()
        java.do("close")


def test_a_java_producer_is_fenced_by_the_same_transactional_id_here(
    kafka: LocalKafka, kafkas_own: JavaProgram, javas: JavaProgram, topic: str
) -> None:
    kafka.create_topic(topic, PARTITIONS)
    java = Java(javas, kafka, topic, f"transactional.id={topic}")
    java.do("init")
    java.do("begin")
    java.send(topic, b"theirs")
    with producing(kafka, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"ours")
        with pytest.raises(RefusedError, match=r"ProducerFenced|InvalidProducerEpoch"):
            java.do("commit")
        producer.commit_transaction()
    java.do("close")
    found = read_by_kafka(kafkas_own, kafka.bootstrap_servers, topic, PARTITIONS, "read_committed")
    assert values_of(found) == [b"ours"]
