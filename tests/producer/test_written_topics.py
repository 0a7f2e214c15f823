"""Topics that we wrote on a real broker: Kafka's own readers and confluent-kafka read the same."""

import random
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import numpy as np
import pyarrow as pa
import pytest

from spark_kafka_source.producer import (
    MURMUR2,
    NO_PARTITION,
    PARTITIONERS,
    StickyPartitioner,
    group_by_partition,
)
from spark_kafka_source.records import Codec, Compression, encode_columns
from spark_kafka_source.testing import LocalKafka, Producer
from tests.java_program import JavaProgram, run_java
from tests.records.batches import Row
from tests.records.oracle import row_of

pytestmark = [pytest.mark.kafka, pytest.mark.java]

PARTITIONS = 3
ROWS = 10_000
BATCH_BYTES = 100_000
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

ByPartition = dict[int, list[Row]]


@pytest.fixture(scope="module")
def kafkas_consumer(kafka_jars: list[Path]) -> Iterator[JavaProgram]:
    with run_java(Path(__file__).with_name("ReadTopic.java"), kafka_jars) as program:
        yield program


def records(count: int = ROWS) -> pa.RecordBatch:
    """Some without a key, a value, headers or a timestamp."""
    chance = random.Random(13)
    now_us = time.time_ns() // 1000
    pairs = [[], None, [{"key": "a", "value": b"1"}], [{"key": "é", "value": None}] * 2]
    return pa.RecordBatch.from_pydict(
        {
            "key": [chance.choice([None, b"", b"%d" % n, b"k" * (n % 70)]) for n in range(count)],
            "value": [None if n % 11 == 0 else f"value {n} " * (n % 30) for n in range(count)],
            "headers": pa.array([chance.choice(pairs) for _ in range(count)], HEADERS),
            "timestamp": pa.array(
                [None if n % 5 == 0 else now_us - n * 999 for n in range(count)],
                pa.timestamp("us", "UTC"),
            ),
        }
    )


def partitioned(columns: pa.RecordBatch) -> np.ndarray[Any, Any]:
    """By the key; without one, by stickiness."""
    partitions = MURMUR2.partitions(columns["key"], PARTITIONS)
    rows = np.flatnonzero(partitions == NO_PARTITION)
    sticky = StickyPartitioner(16_384, random.Random(1))
    partitions[rows] = sticky.partitions(np.full(len(rows), 150), range(PARTITIONS))
    return partitions


def written(kafka: LocalKafka, topic: str, columns: pa.RecordBatch, codec: Codec) -> ByPartition:
    """Writes all records, and returns them as they must be read."""
    now_ms = time.time_ns() // 1_000_000
    grouped = group_by_partition(partitioned(columns))
    kafka.create_topic(topic, PARTITIONS)
    with Producer(kafka.bootstrap_servers) as producer:
        for batch in encode_columns(
            columns,
            grouped.rows,
            bounds=grouped.bounds,
            compression=Compression(codec),
            max_batch_bytes=BATCH_BYTES,
            timestamp_ms=now_ms,
        ):
            partition = int(grouped.partitions[batch.group])
            producer.send_batch(topic, partition, batch.to_bytes())
    cells = columns.set_column(
        columns.schema.names.index("timestamp"), "timestamp", columns["timestamp"].view(pa.int64())
    ).to_pylist()
    return {
        partition: [as_row(offset, cells[row], now_ms) for offset, row in enumerate(rows.tolist())]
        for partition, rows in grouped
    }


def as_row(offset: int, cells: dict[str, Any], now_ms: int) -> Row:
    us, value = cells["timestamp"], cells["value"]
    return Row(
        offset,
        now_ms if us is None else us // 1000,
        cells["key"],
        None if value is None else value.encode(),
        tuple((each["key"], each["value"]) for each in cells["headers"] or ()),
    )


def read_by_confluent(kafka: LocalKafka, topic: str) -> ByPartition:
    consumer = ck.Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": topic,
            "enable.auto.commit": False,
            "check.crcs": True,
            "log_level": 0,
        }
    )
    consumer.assign([ck.TopicPartition(topic, p, 0) for p in range(PARTITIONS)])
    found: ByPartition = {}
    messages: list[Any] = consumer.consume(ROWS, 60)
    for each in messages:
        assert not each.error()
        row = Row(
            each.offset(),
            each.timestamp()[1],
            each.key(),
            each.value(),
            tuple(each.headers() or ()),
        )
        found.setdefault(each.partition(), []).append(row)
    consumer.close()
    return found


def read_by_kafka(program: JavaProgram, kafka: LocalKafka, topic: str) -> ByPartition:
    found: ByPartition = {}
    answer = program.ask(f"{kafka.bootstrap_servers} {topic} {PARTITIONS} {ROWS}")
    for text in answer.split(" "):
        partition, record = text.split(":", 1)
        found.setdefault(int(partition), []).append(row_of(record))
    return found


@pytest.mark.parametrize("codec", Codec)
def test_every_reader_reads_what_we_wrote(
    kafka: LocalKafka, kafkas_consumer: JavaProgram, topic: str, codec: Codec
) -> None:
    expected = written(kafka, topic, records(), codec)
    assert read_by_confluent(kafka, topic) == expected
    assert read_by_kafka(kafkas_consumer, kafka, topic) == expected
    segments = list(kafka.broker(1).log_dir.glob(f"{topic}-*/*.log"))
    assert len(segments) == PARTITIONS
    shown = kafka.tool("dump-log", "--deep-iteration", "--files", ",".join(map(str, segments)))
    batches = re.findall(r"count: (\d+) .* compresscodec: (\w+) .* isvalid: (\w+)", shown)
    assert sum(int(count) for count, _, _ in batches) == ROWS
    assert {(name, valid) for _, name, valid in batches} == {(codec.name.lower(), "true")}
    assert len(batches) > 2 * PARTITIONS


@pytest.mark.parametrize("name", PARTITIONERS)
def test_of_ten_thousand_keys_librdkafka_puts_each_where_we_do(
    kafka: LocalKafka, topic: str, name: str
) -> None:
    chance = random.Random(17)
    keys = [chance.randbytes(chance.choice([1, 2, 3, 8, 10, 36, 200])) for _ in range(10_000)]
    partition_count = 17
    kafka.create_topic(topic, partition_count)
    found: dict[bytes, int] = {}
    producer = ck.Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "partitioner": name, "log_level": 0}
    )

    def delivered(error: ck.KafkaError | None, message: Any) -> None:
        assert error is None
        found[message.key()] = message.partition()

    for key in keys:
        producer.produce(topic, key=key, on_delivery=delivered)
        producer.poll(0)
    assert producer.flush(60) == 0
    partitions = PARTITIONERS[name].partitions(pa.array(keys), partition_count).tolist()
    assert found == dict(zip(keys, partitions, strict=True))
