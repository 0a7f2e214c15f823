"""How soon a stream's rows are there: the first one after `start()`, and each from topic to topic.

    python -m tools.benchmarks.latency [--only first-row,topic-to-topic] [--runs N] [--page PAGE]

first-row       seconds from the call of `start()` to the first row in `foreachBatch`, in a session
                that has run such a query before. Spark's own source `rate-micro-batch` has its rows
                ready, so it shows what Spark takes by itself.
topic-to-topic  milliseconds from before a record is produced until another client has its copy. A
                query copies a topic with four partitions, at least once or exactly once.
"""

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial

from confluent_kafka import Consumer, Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_kafka_source.testing import LocalKafka
from tools.benchmarks.interleaved import Ratio, Seconds, interleaved, medians
from tools.benchmarks.page import add_page, publish, table
from tools.benchmarks.produce import created_topic
from tools.benchmarks.session import broker, session
from tools.benchmarks.sink import OURS
from tools.benchmarks.sources import PEER
from tools.benchmarks.trickle import beside

RATE, EXACTLY_ONCE = "rate-micro-batch", "exactly once"
PARTITIONS = 4
_RECORDS_A_SECOND = 100
_WARM_UP, _RECORDS = 500, 1_000
_PATIENCE_SECONDS = 120.0
_POLL_SECONDS = 0.5


def main() -> None:
    arguments = _arguments()
    spark = session()
    with broker() as kafka:
        for name in arguments.only.split(","):
            command = f"tools.benchmarks.latency --only {name}"
            publish(name, command, _TABLES[name](spark, kafka, arguments.runs), arguments.page)
    spark.stop()


# -- the first row ---------------------------------------------------------------------------------


def _first_row(spark: SparkSession, kafka: LocalKafka, runs: int) -> Iterator[str]:
    topic = created_topic(kafka, 1)
    producer = _producer(kafka)
    producer.produce(topic, b"x")
    producer.flush(_PATIENCE_SECONDS)
    of_kafka = {
        "kafka.bootstrap.servers": kafka.bootstrap_servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
    }
    sources = {RATE: {"rowsPerBatch": "1"}, PEER: of_kafka, OURS: of_kafka}
    seconds = interleaved(
        {name: partial(first_row_seconds, spark, name, sources[name]) for name in sources}, runs
    )
    took = medians(seconds)
    head = ("source", "seconds", "more than Spark's own source")
    return table(
        head, ([name, f"{each:.2f}", f"{each - took[RATE]:+.2f}"] for name, each in took.items())
    )


def first_row_seconds(spark: SparkSession, source: str, options: Mapping[str, str]) -> float:
    """Return the seconds from `start()` to the first row."""
    has_row = threading.Event()

    def look(frame: DataFrame, _: int) -> None:
        if frame.collect():
            has_row.set()

    rows = spark.readStream.format(source).options(**options).load()
    with tempfile.TemporaryDirectory() as checkpoint:
        writing = rows.writeStream.foreachBatch(look).option("checkpointLocation", checkpoint)
        began = time.perf_counter()
        query = writing.start()
        try:
            assert has_row.wait(_PATIENCE_SECONDS), query.exception()
            return time.perf_counter() - began
        finally:
            query.stop()


# -- from topic to topic ---------------------------------------------------------------------------


def _topic_to_topic(spark: SparkSession, kafka: LocalKafka, runs: int) -> Iterator[str]:
    options = {PEER: {}, OURS: {}, EXACTLY_ONCE: {"deliveryGuarantee": "exactly-once"}}

    def run(name: str) -> list[float]:
        connector = PEER if name == PEER else OURS
        return copied_seconds(kafka, partial(_copying, spark, kafka, connector, options[name]))

    return latencies({name: partial(run, name) for name in options}, runs)


def latencies(ways: Mapping[str, Callable[[], list[float]]], runs: int) -> Iterator[str]:
    """Run the ways in turn. Return a table of the seconds of their records, beside the first way.

    The first turn does not count.
    """
    middle: dict[str, list[float]] = {name: [] for name in ways}
    late: dict[str, list[float]] = {name: [] for name in ways}

    def run(name: str) -> float:
        found = sorted(ways[name]())
        middle[name].append(found[len(found) // 2])
        late[name].append(found[len(found) * 99 // 100])
        return middle[name][-1]

    interleaved({name: partial(run, name) for name in ways}, runs)
    counted = [{name: each[1:] for name, each in found.items()} for found in (middle, late)]
    peer = next(iter(ways))
    base = "peer" if peer == PEER else peer
    head = ("query", "p50 ms", "p99 ms", f"p50 / {base}", f"p99 / {base}")
    return table(head, (_cells(name, peer, *counted) for name in ways))


def _cells(name: str, peer: str, middle: Seconds, late: Seconds) -> list[str]:
    took = (f"{1000 * statistics.median(each[name]):.0f}" for each in (middle, late))
    ratios = (str(Ratio.of(each, name, peer)) for each in (middle, late))
    return [name, *took, *ratios]


def copied_seconds(
    kafka: LocalKafka, copying: Callable[[tuple[str, str]], AbstractContextManager[None]]
) -> list[float]:
    """Return for each record the seconds until its copy was there.

    `copying` runs a query from the first topic to the second one until its context ends.
    """
    with ExitStack() as stack:
        # The topics stay. A task of the peer's waits a minute for one that is deleted under it, and
        # keeps a core from the next query.
        source, target = created_topic(kafka, PARTITIONS), created_topic(kafka, PARTITIONS)
        consumer = _consumer(kafka, target)
        stack.callback(consumer.close)
        stack.enter_context(copying((source, target)))
        stack.enter_context(_written(kafka, source))
        return _seconds_of_copies(consumer)


@contextmanager
def _copying(
    spark: SparkSession,
    kafka: LocalKafka,
    connector: str,
    options: Mapping[str, str],
    topics: tuple[str, str],
) -> Iterator[None]:
    source, target = topics
    servers = {"kafka.bootstrap.servers": kafka.bootstrap_servers}
    rows = spark.readStream.format(connector).options(**servers, subscribe=source).load()
    writing = rows.select("value").writeStream.format(connector)
    with running(writing.options(**servers, topic=target, **options)):
        yield


@contextmanager
def running(writing: DataStreamWriter) -> Iterator[None]:
    """Run a query until the context ends. It must not fail meanwhile."""
    with tempfile.TemporaryDirectory() as checkpoint:
        query = writing.option("checkpointLocation", checkpoint).start()
        try:
            yield
            error = query.exception()
            assert error is None, error
        finally:
            query.stop()


@contextmanager
def _written(kafka: LocalKafka, topic: str) -> Iterator[None]:
    """Write records at a steady pace, until the context ends. Each value is the time, in ns."""

    def write(enough: threading.Event) -> None:
        producer = _producer(kafka)
        while not enough.wait(1 / _RECORDS_A_SECOND):
            producer.produce(topic, b"%d" % time.time_ns())
            producer.poll(0)
        producer.flush(_PATIENCE_SECONDS)

    with beside(write):
        yield


def _seconds_of_copies(consumer: Consumer) -> list[float]:
    found: list[float] = []
    until = time.monotonic() + _PATIENCE_SECONDS
    while len(found) < _WARM_UP + _RECORDS:
        assert time.monotonic() < until, f"only {len(found)} copies"
        message = consumer.poll(_POLL_SECONDS)
        if message is not None:
            assert message.error() is None, message.error()
            found.append((time.time_ns() - int(message.value() or b"")) / 1e9)
    return found[_WARM_UP:]


def _producer(kafka: LocalKafka) -> Producer:
    return Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 0})


def _consumer(kafka: LocalKafka, topic: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": f"of-{topic}",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([topic])
    return consumer


_TABLES = {"first-row": _first_row, "topic-to-topic": _topic_to_topic}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(_TABLES))
    parser.add_argument("--runs", type=int, default=5)
    add_page(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
