"""What a small micro-batch costs: one row in each of many partitions, again and again.

    python -m tests.benchmarks.trickle [--partitions 4,16,64,256] [--bursts N] [--turns N]

Prints the median milliseconds of a micro-batch (Spark's `triggerExecution`; in brackets `addBatch`,
the part that reads and writes rows): of the peer, of ours with one task for each partition, of ours
with small partitions together, and of the floor, a source that yields one ready batch a task.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Mapping

from confluent_kafka import Producer
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_kafka_source.testing import LocalKafka
from tests.benchmarks.session import broker, session
from tests.benchmarks.sources import CEILING, PEER, PLAIN

TOGETHER = "together"
WAYS = (PEER, PLAIN, TOGETHER, CEILING)
HEAD = ("partitions", "peer ms", "ours ms", "together ms", "floor ms")
_PATIENCE_SECONDS = 120
# The first few run code for the first time.
_WARM_UP = 3

Durations = dict[str, list[tuple[int, int]]]
"""`triggerExecution` and `addBatch` of each micro-batch, by way."""


def main() -> None:
    arguments = _arguments()
    spark = session()
    print("".join(f"{each:>16}" for each in HEAD))
    with broker() as kafka:
        for partitions in map(int, arguments.partitions.split(",")):
            found = measure(
                spark, kafka, partitions, bursts=arguments.bursts, turns=arguments.turns
            )
            print("".join(f"{each:>16}" for each in cells(partitions, found)), flush=True)
    spark.stop()


def measure(
    spark: SparkSession, kafka: LocalKafka, partitions: int, *, bursts: int = 15, turns: int = 2
) -> Durations:
    """The durations of `turns` times `bursts` micro-batches of each way, run in turn."""
    topic = _topic(partitions)
    kafka.create_topic(topic, partitions=partitions)
    found: Durations = {name: [] for name in WAYS}
    for _ in range(turns):
        for name in WAYS:
            found[name] += _run(spark, kafka, name, partitions, bursts)
    kafka.delete_topic(topic)
    return found


def _topic(partitions: int) -> str:
    return f"trickle-{partitions}"


def cells(partitions: int, found: Durations) -> list[str]:
    """One row of the table, under `HEAD`."""
    return [str(partitions), *(_shown(found[name]) for name in WAYS)]


def _shown(durations: list[tuple[int, int]]) -> str:
    whole, add = (statistics.median(each) for each in zip(*durations, strict=True))
    return f"{whole:.0f} ({add:.0f})"


def _run(
    spark: SparkSession, kafka: LocalKafka, name: str, partitions: int, bursts: int
) -> list[tuple[int, int]]:
    topic = _topic(partitions)
    with tempfile.TemporaryDirectory() as checkpoint:
        rows = spark.readStream.format(PLAIN if name == TOGETHER else name)
        rows = rows.options(**_options(kafka, name, topic, partitions))  # type: ignore[arg-type]  # any value
        writing = rows.load().writeStream.format("noop")
        query = writing.option("checkpointLocation", checkpoint).start()
        try:
            if name != CEILING:
                _feed(query, kafka, topic, partitions, bursts + _WARM_UP)
            else:
                _wait(query, bursts + _WARM_UP)
            progress = [each for each in query.recentProgress if each["numInputRows"]]
        finally:
            query.stop()
    durations = [each["durationMs"] for each in progress[_WARM_UP:]]
    return [(each["triggerExecution"], each["addBatch"]) for each in durations]


def _options(kafka: LocalKafka, name: str, topic: str, partitions: int) -> Mapping[str, object]:
    if name == CEILING:
        return {"partitions": partitions, "valueBytes": 150}
    grouped = {"minRecordsPerPartition": 10_000} if name == TOGETHER else {}
    return {
        "kafka.bootstrap.servers": kafka.bootstrap_servers,
        "subscribe": topic,
        "startingOffsets": "latest",
    } | grouped


def _feed(
    query: StreamingQuery, kafka: LocalKafka, topic: str, partitions: int, bursts: int
) -> None:
    """A row to each partition, as often as the query has read the ones before."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 5})
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not query.lastProgress:  # It then knows where it starts.
        _check(query, deadline)
    written = 0
    for _ in range(bursts):
        for partition in range(partitions):
            producer.produce(topic, b"x" * 150, partition=partition)
        assert producer.flush(30) == 0
        written += partitions
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while sum(each["numInputRows"] for each in query.recentProgress) < written:
            _check(query, deadline)


def _wait(query: StreamingQuery, batches: int) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while len([each for each in query.recentProgress if each["numInputRows"]]) < batches:
        _check(query, deadline)


def _check(query: StreamingQuery, deadline: float) -> None:
    error = query.exception()
    assert query.isActive and error is None, error
    assert time.monotonic() < deadline, "the query does not get on"
    time.sleep(0.01)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", default="4,16,64,256")
    parser.add_argument("--bursts", type=int, default=15, help="micro-batches of each turn")
    parser.add_argument("--turns", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
