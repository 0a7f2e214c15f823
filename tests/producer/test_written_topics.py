"""Our records on a real broker: Kafka's own readers and confluent-kafka read the same."""

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import numpy as np
import pyarrow as pa
import pytest

from spark_kafka_source.producer.keyless_partitioners import StickyPartitioner
from spark_kafka_source.producer.partitioners import (
    MURMUR2,
    NO_PARTITION,
    PARTITIONERS,
    group_by_partition,
)
from spark_kafka_source.records import Codec, Compression, encode_columns
from spark_kafka_source.testing import LocalKafka, Producer
from tests.producer.reading import (
    ByPartition,
    dumped,
    kafkas_consumer,
    read_by_confluent,
    read_by_kafka,
)
from tests.records.batches import Row
from tools.java_program import JavaProgram

pytestmark = [pytest.mark.kafka, pytest.mark.java]

PARTITIONS = 3
ROWS = 10_000
BATCH_BYTES = 100_000
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.fixture(scope="module")
def kafkas_own(kafka_jars: list[Path]) -> Iterator[JavaProgram]:
    with kafkas_consumer(kafka_jars) as program:
        yield program


def records(count: int = ROWS) -> pa.RecordBatch:
    """Return records with and without a key, a value, headers or a timestamp."""
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
    """Return each row's partition: by the key, or sticky without a key."""
    partitions = MURMUR2.partitions(columns["key"], PARTITIONS)
    rows = np.flatnonzero(partitions == NO_PARTITION)
    sticky = StickyPartitioner(16_384, chance=random.Random(1))
    partitions[rows] = sticky.many(np.full(len(rows), 150), range(PARTITIONS))
    return partitions


def written(kafka: LocalKafka, topic: str, columns: pa.RecordBatch, codec: Codec) -> ByPartition:
    """Write all records. Return the expected result of a read."""
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


@pytest.mark.parametrize("codec", Codec)
def test_every_reader_reads_what_we_wrote(
    kafka: LocalKafka, kafkas_own: JavaProgram, topic: str, codec: Codec
) -> None:
    expected = written(kafka, topic, records(), codec)
    servers = kafka.bootstrap_servers
    assert read_by_confluent(servers, topic, PARTITIONS) == expected
    assert read_by_kafka(kafkas_own, servers, topic, PARTITIONS) == expected
    batches = dumped(kafka, topic)
    assert sum(count for count, _, _ in batches) == ROWS
    assert {tuple(each) for _, *each in batches} == {(codec.name.lower(), "true")}
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
