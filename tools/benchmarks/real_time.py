"""How soon a record is copied in Spark's real-time mode, which runs no source or sink in Python.

    python -m tools.benchmarks.real_time [--runs N] [--page PAGE]

Prints milliseconds from before a record is produced until another client has its copy, as
`latency --only topic-to-topic` does. Spark's own connector reads in all queries:

micro-batches, pykafka  our sink, with the default trigger
micro-batches, foreach  a writer for `foreach` over our `KafkaProducer`, with the default trigger
real time, foreach      the same writer in real-time mode
real time, kafka        Spark's own sink in real-time mode
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_kafka_source import KafkaProducer
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.testing import LocalKafka
from tools.benchmarks.latency import PARTITIONS, copied_seconds, latencies, running
from tools.benchmarks.page import add_page, publish
from tools.benchmarks.session import broker, session
from tools.benchmarks.sink import OURS
from tools.benchmarks.sources import PEER

FOREACH = "foreach"
WAYS = ((False, OURS), (False, FOREACH), (True, FOREACH), (True, PEER))
BATCH = "10 seconds"


class Writer:
    """A writer of values for `foreach`. Each task has one, in each of its batches."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._servers, self._topic = bootstrap_servers, topic

    def open(self, partition_id: int, epoch_id: int) -> bool:
        self._failed: list[KafkaError] = []
        self._producer = KafkaProducer(bootstrap_servers=self._servers, linger_ms=0)
        return True

    def process(self, row: Row) -> None:
        self._producer.send(self._topic, row.value, on_delivery=self._delivered)

    def close(self, error: Exception | None) -> None:
        self._producer.close()
        if self._failed and error is None:
            raise self._failed[0]

    def _delivered(self, _: object, error: KafkaError | None) -> None:
        if error is not None:
            self._failed.append(error)


def main() -> None:
    arguments = _arguments()
    # In real-time mode the tasks of all partitions run all the time.
    spark = session(cores=PARTITIONS)
    with broker() as kafka:
        ways = {_name(*way): partial(_seconds, spark, kafka, *way) for way in WAYS}
        table = latencies(ways, arguments.runs)
        publish("real-time", "tools.benchmarks.real_time", table, arguments.page)
    spark.stop()


def _name(is_real_time: bool, sink: str) -> str:
    return f"{'real time' if is_real_time else 'micro-batches'}, {sink}"


def _seconds(spark: SparkSession, kafka: LocalKafka, is_real_time: bool, sink: str) -> list[float]:
    @contextmanager
    def copying(topics: tuple[str, str]) -> Iterator[None]:
        source, target = topics
        servers = {"kafka.bootstrap.servers": kafka.bootstrap_servers}
        rows = spark.readStream.format(PEER).options(**servers, subscribe=source).load()
        writing: DataStreamWriter = rows.select("value").writeStream
        if sink == FOREACH:
            writing = writing.foreach(Writer(kafka.bootstrap_servers, target))
        else:
            writing = writing.format(sink).options(**servers, topic=target)
        if is_real_time:
            # PySpark's own type hints do not have it.
            writing = writing.outputMode("update").trigger(realTime=BATCH)  # type: ignore[call-overload]
        with running(writing):
            yield

    return copied_seconds(kafka, copying)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    add_page(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
