"""The records of a topic by independent readers: Kafka's own, confluent-kafka, ours."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka as ck

from spark_kafka_source import KafkaConsumer, TopicPartition
from spark_kafka_source.testing import LocalKafka
from tests.exactly_once.judge import wait_for_markers
from tests.records.batches import Row
from tests.records.oracle import row_of
from tools.java_program import JavaProgram, run_java

ByPartition = dict[int, list[Row]]

_WAIT_SECONDS = 60.0


@contextmanager
def kafkas_consumer(jars: Sequence[Path]) -> Iterator[JavaProgram]:
    """Run Kafka's own consumer, for `read_by_kafka`."""
    with run_java(Path(__file__).with_name("ReadTopic.java"), jars) as program:
        yield program


def read_by_kafka(
    program: JavaProgram,
    servers: str,
    topic: str,
    partitions: int,
    isolation_level: str = "read_uncommitted",
) -> ByPartition:
    """Read all records with Kafka's own consumer."""
    if isolation_level == "read_committed":
        wait_for_markers(servers, topic, partitions)
    found: ByPartition = defaultdict(list)
    for text in program.ask(f"{servers} {topic} {partitions} {isolation_level}").split():
        partition, record = text.split(":", 1)
        found[int(partition)].append(row_of(record))
    return dict(found)


def read_by_confluent(
    servers: str, topic: str, partitions: int, isolation_level: str = "read_uncommitted"
) -> ByPartition:
    """Read all records with librdkafka's consumer."""
    if isolation_level == "read_committed":
        wait_for_markers(servers, topic, partitions)
    consumer = ck.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": topic,
            "isolation.level": isolation_level,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "check.crcs": True,
            "log_level": 0,
        }
    )
    consumer.assign([ck.TopicPartition(topic, each, 0) for each in range(partitions)])
    found: ByPartition = defaultdict(list)
    ended = set[int]()
    while len(ended) < partitions:
        message = consumer.poll(_WAIT_SECONDS)
        assert message is not None, f"nothing within {_WAIT_SECONDS} s"
        error, partition = message.error(), message.partition() or 0
        if error is None:
            found[partition].append(_row(message))
        elif error.code() == ck.KafkaError._PARTITION_EOF:
            ended.add(partition)
        else:
            assert error.retriable(), error
    consumer.close()
    return dict(found)


def _row(message: Any) -> Row:
    return Row(
        message.offset(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
    )


def read_by_us(servers: str, topic: str, partitions: int) -> ByPartition:
    """Read all records with our consumer."""
    found: ByPartition = defaultdict(list)
    where = [TopicPartition(topic, each) for each in range(partitions)]
    with KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        consumer.assign(where)
        ends = consumer.end_offsets(where)
        while any(consumer.position(each) < ends[each] for each in where):
            for each in consumer.poll(1_000):
                row = Row(
                    each.offset, each.timestamp_ms or 0, each.key, each.value, tuple(each.headers)
                )
                found[each.partition].append(row)
    return dict(found)


def dumped(kafka: LocalKafka, topic: str) -> list[tuple[int, str, str]]:
    """Read batches with `DumpLogSegments`: record count, codec, and `true` for a valid batch."""
    segments = sorted(kafka.broker(1).log_dir.glob(f"{topic}-*/*.log"))
    shown = kafka.tool("dump-log", "--deep-iteration", "--files", ",".join(map(str, segments)))
    found = re.findall(r"count: (\d+) .* compresscodec: (\w+) .* isvalid: (\w+)", shown)
    return [(int(count), codec, valid) for count, codec, valid in found]
