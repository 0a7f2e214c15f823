"""Cost of a small micro-batch: each partition of a topic gets a row every 20 ms.

    python -m tools.benchmarks.trickle [--partitions 4,16,64,256] [--batches N] [--turns N]

Prints the median milliseconds of a micro-batch: `addBatch` of Spark's progress, and in brackets the
whole `triggerExecution`. The ways are: the peer; this source with one task per partition; this
source with small partitions joined; and the floor, a source with one ready batch per task. Then
prints how many times as fast as the peer this source is, each way, and how much longer than the
floor it takes.
"""

import argparse
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple

from confluent_kafka import Producer
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_kafka_source.testing import LocalKafka
from tools.benchmarks.session import broker, session
from tools.benchmarks.sources import CEILING, PEER, PLAIN

TOGETHER = "together"
WAYS = (PEER, PLAIN, TOGETHER, CEILING)
HEAD = (
    "partitions", "peer ms", "ours ms", "together ms", "floor ms", "ours x", "together x",
    "ours/floor",
)  # fmt: skip
_PATIENCE_SECONDS = 600
_PAUSE_SECONDS = 0.02
WARM_UP = 3
"""Number of first micro-batches that do not count. They run code for the first time."""


class Took(NamedTuple):
    """Milliseconds of one micro-batch."""

    whole: int
    adding: int


Durations = dict[str, list[Took]]
"""Durations of each way's micro-batches."""


def main() -> None:
    arguments = _arguments()
    spark = session()
    print("".join(f"{each:>16}" for each in HEAD))
    with broker() as kafka:
        for partitions in map(int, arguments.partitions.split(",")):
            found = measure(spark, kafka, partitions, arguments.batches, arguments.turns)
            print("".join(f"{each:>16}" for each in cells(partitions, found)), flush=True)
    spark.stop()


def measure(
    spark: SparkSession, kafka: LocalKafka, partitions: int, batches: int = 10, turns: int = 1
) -> Durations:
    """Run the ways in turn. Return the durations of `turns` times `batches` micro-batches each."""
    found: Durations = {name: [] for name in WAYS}
    order = list(WAYS)
    for turn in range(turns):
        random.Random(turn).shuffle(order)
        for name in order:
            topic = f"trickle-{partitions}-{name}-{turn}"
            found[name] += _run(spark, kafka, name, topic, partitions=partitions, batches=batches)
    return found


def cells(partitions: int, found: Durations) -> list[str]:
    """Return one row of the table, under `HEAD`."""
    whole, adding = (
        {name: statistics.median(each[at] for each in found[name]) for name in WAYS}
        for at in range(2)
    )
    return [
        str(partitions),
        *(f"{adding[name]:.0f} ({whole[name]:.0f})" for name in WAYS),
        f"{adding[PEER] / adding[PLAIN]:.2f}",
        f"{adding[PEER] / adding[TOGETHER]:.2f}",
        f"{adding[PLAIN] / adding[CEILING]:.2f}",
    ]


def _run(
    spark: SparkSession, kafka: LocalKafka, name: str, topic: str, *, partitions: int, batches: int
) -> list[Took]:
    kafka.create_topic(topic, partitions=partitions)
    with tempfile.TemporaryDirectory() as checkpoint:
        rows = spark.readStream.format(PLAIN if name == TOGETHER else name)
        rows = rows.options(**_options(kafka, name, topic, partitions))  # type: ignore[arg-type]  # any value
        writing = rows.load().writeStream.format("noop")
        query = writing.option("checkpointLocation", checkpoint).start()
        try:
            # The writer runs beside the floor, too, since it uses a part of the machine.
            with trickling(kafka, topic, partitions):
                wait_for_batches(query, WARM_UP + batches)
            progress = [each for each in query.recentProgress if each["numInputRows"]]
        finally:
            query.stop()
    kafka.delete_topic(topic)
    durations = [each["durationMs"] for each in progress[WARM_UP:]]
    return [Took(each["triggerExecution"], each["addBatch"]) for each in durations]


def _options(kafka: LocalKafka, name: str, topic: str, partitions: int) -> Mapping[str, object]:
    if name == CEILING:
        return {"partitions": partitions, "valueBytes": 150}
    grouped = {"minRecordsPerPartition": 10_000} if name == TOGETHER else {}
    return {
        "kafka.bootstrap.servers": kafka.bootstrap_servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
    } | grouped


@contextmanager
def trickling(kafka: LocalKafka, topic: str, partitions: int) -> Iterator[None]:
    """Write a row to each partition again and again, until the context ends."""

    def write(enough: threading.Event) -> None:
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 5})
        while not enough.wait(_PAUSE_SECONDS):
            with suppress(BufferError):  # The broker is behind. The next turn tries again.
                for partition in range(partitions):
                    producer.produce(topic, b"x" * 150, partition=partition)
            producer.poll(0)
        producer.flush(30)

    with beside(write):
        yield


@contextmanager
def beside(work: Callable[[threading.Event], object]) -> Iterator[None]:
    """Do this work in a thread, until the context ends: then it gets the event."""
    enough = threading.Event()
    thread = threading.Thread(target=work, args=[enough])
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


def wait_for_batches(query: StreamingQuery, batches: int) -> None:
    """Wait until a query has run so many micro-batches with rows."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while sum(bool(each["numInputRows"]) for each in query.recentProgress) < batches:
        error = query.exception()
        assert query.isActive and error is None, error
        assert time.monotonic() < deadline, f"fewer than {batches} micro-batches"
        time.sleep(0.1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", default="4,16,64,256")
    parser.add_argument("--batches", type=int, default=10, help="of each turn")
    parser.add_argument("--turns", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
