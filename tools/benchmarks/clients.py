"""Cost of reading a record from a broker into Arrow, without Spark, against confluent-kafka.

    python -m tools.benchmarks.clients [--codecs none,lz4] [--rows N] [--runs N]

Prints nanoseconds per record, in one process, from one partition. The ways are: confluent-kafka,
with five fields read from each message; this project's `KafkaConsumer`, with each poll as a table
of the same five columns; and the reader of a Spark task. The last two run without and with the
extra `fast`. Brackets show how many times as fast they are: median (least-most) of the turns.
"""

import argparse
from collections.abc import Callable
from functools import partial

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from spark_kafka_source.consumer.kafka_consumer import KafkaConsumer
from spark_kafka_source.spark.options import parse_source_options
from spark_kafka_source.spark.source.offset_arithmetic import LogEnds
from spark_kafka_source.spark.source.tasks import plan_tasks, read_ranges
from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.topic_partition import TopicPartition as Where
from tools.benchmarks.interleaved import Ratio, Seconds, interleaved, medians
from tools.benchmarks.scan import Case, filled
from tools.benchmarks.session import broker
from tools.benchmarks.sources import use_extra

THEIRS, POLLED, POLLED_FAST = "confluent-kafka", "KafkaConsumer", "KafkaConsumer, `fast`"
READ, READ_FAST = "a Spark task", "a Spark task, `fast`"
HEAD = ("codec", *(f"{way} ns" for way in (THEIRS, POLLED, POLLED_FAST, READ, READ_FAST)))
COLUMNS = ("partition", "offset", "timestamp", "key", "value")
_AT_A_TIME = 10_000
_PATIENCE_SECONDS = 30


def main() -> None:
    arguments = _arguments()
    print("".join(f"{each:>26}" for each in HEAD))
    with broker() as kafka:
        for codec in arguments.codecs.split(","):
            case = Case(codec, rows=arguments.rows, partitions=1)
            row = cells(case, measure(kafka, case, arguments.runs))
            print("".join(f"{each:>26}" for each in row), flush=True)


def measure(kafka: LocalKafka, case: Case, runs: int = 5) -> Seconds:
    """Run each way. Return the seconds of its runs."""
    with filled(kafka, case) as topic:
        ways: dict[str, Callable[[], None]] = {
            THEIRS: partial(_consume, kafka.bootstrap_servers, topic, case.rows),
            POLLED: partial(_poll, kafka.bootstrap_servers, topic, case.rows, fast=False),
            POLLED_FAST: partial(_poll, kafka.bootstrap_servers, topic, case.rows, fast=True),
            READ: partial(_read, kafka.bootstrap_servers, topic, case.rows, fast=False),
            READ_FAST: partial(_read, kafka.bootstrap_servers, topic, case.rows, fast=True),
        }
        return interleaved(ways, runs)


def cells(case: Case, seconds: Seconds) -> list[str]:
    """Return one row of the table, under `HEAD`."""
    each = {name: took / case.rows * 1e9 for name, took in medians(seconds).items()}
    ours = [
        f"{each[name]:.0f} ({Ratio.of(seconds, THEIRS, name)})"
        for name in (POLLED, POLLED_FAST, READ, READ_FAST)
    ]
    return [case.codec, f"{each[THEIRS]:.0f}", *ours]


def _consume(servers: str, topic: str, rows: int) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "none",
            "enable.auto.commit": False,
            # By default the consumer pauses for a second when its queue is full enough.
            "queued.min.messages": 1_000_000,
            "fetch.queue.backoff.ms": 1,
        }
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    left = rows
    while left:
        messages = consumer.consume(_AT_A_TIME, _PATIENCE_SECONDS)
        assert messages, f"{left} records are missing"
        fields = [
            (each.partition(), each.offset(), each.timestamp(), each.key(), each.value())
            for each in messages
        ]
        left -= len(fields)
    consumer.close()


def _poll(servers: str, topic: str, rows: int, *, fast: bool) -> None:
    use_extra(fast)
    with KafkaConsumer(
        bootstrap_servers=servers, auto_offset_reset="earliest", columns=COLUMNS
    ) as consumer:
        consumer.assign([Where(topic, 0)])
        left = rows
        while left:
            table = consumer.poll(timeout_ms=_PATIENCE_SECONDS * 1000).to_arrow()
            assert table.num_rows, f"{left} records are missing"
            left -= table.num_rows


def _read(servers: str, topic: str, rows: int, *, fast: bool) -> None:
    use_extra(fast)
    where = Where(topic, 0)
    options = parse_source_options(
        {"kafka.bootstrap.servers": servers, "subscribe": topic, "columns": ",".join(COLUMNS)}
    )
    (task,) = plan_tasks({where: 0}, LogEnds({where: rows}), options)
    read = sum(batch.num_rows for batch in read_ranges(task, options))  # type: ignore[arg-type]  # one of ours
    assert read == rows


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--codecs", default="none,lz4,zstd")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
