"""Processor time of a sink's small micro-batch, by process: the tasks, the driver and the broker.

    python -m tools.benchmarks.guarantees [--tasks 4,16,64] [--batches N] [--page PAGE]

There is no Spark. One process runs the tasks one after the other, as a Python worker does, and then
the driver's commit. At least once and exactly once run in turn.
"""

import argparse
import pickle
import statistics
import time
import uuid
from collections.abc import Iterator
from typing import NamedTuple
from unittest import mock

import psutil
import pyarrow as pa
from pyspark.sql.types import BinaryType, StructType

from spark_kafka_source.spark.data_source import KafkaDataSource
from spark_kafka_source.spark.sink.guarantee import Attempt, Written
from spark_kafka_source.spark.sink.writer import KafkaWriter
from spark_kafka_source.testing import LocalKafka
from tools.benchmarks.costs import seconds
from tools.benchmarks.page import add_page, publish, table
from tools.benchmarks.produce import new_topic
from tools.benchmarks.session import broker
from tools.benchmarks.sink import ROWS_OF_A_TASK, VALUE_BYTES

HEAD = ("tasks", "guarantee", "a task ms", "all tasks ms", "commit ms", "broker ms", "sum ms")
GUARANTEES = ("at-least-once", "exactly-once")
_WARM_UP = 3


class Took(NamedTuple):
    """Processor time of a micro-batch, in milliseconds."""

    tasks: float
    commit: float
    broker: float


class Query:
    """A query that writes the same rows in each micro-batch."""

    def __init__(self, kafka: LocalKafka, topic: str, guarantee: str) -> None:
        schema = StructType().add("key", BinaryType()).add("value", BinaryType())
        options = {
            "kafka.bootstrap.servers": kafka.bootstrap_servers,
            "topic": topic,
            "deliveryGuarantee": guarantee,
        }
        # Spark sends the writer to each task and to each commit.
        self._writer = pickle.dumps(KafkaDataSource(options).streamWriter(schema, overwrite=False))
        self._query_id, self._run_id = str(uuid.uuid4()), str(uuid.uuid4())
        self._broker = psutil.Process(kafka.broker(1).pid)
        self._next_batch = 0

    def run(self, tasks: int) -> Took:
        """Run the next micro-batch."""
        batch_id, self._next_batch = self._next_batch, self._next_batch + 1
        began, broker_began = time.process_time(), seconds(self._broker)
        messages = [self._task(batch_id, task) for task in range(tasks)]
        written = time.process_time()
        self._new_writer().commit(messages, batch_id)
        ended, broker_ended = time.process_time(), seconds(self._broker)
        spans = (written - began, ended - written, broker_ended - broker_began)
        return Took(*(1000 * each for each in spans))

    def _task(self, batch_id: int, task: int) -> Written:
        attempt = Attempt(task, 0, self._query_id, self._run_id, batch_id)
        keys = [b"%d" % (task * ROWS_OF_A_TASK + row) for row in range(ROWS_OF_A_TASK)]
        values = [b"v" * VALUE_BYTES] * ROWS_OF_A_TASK
        rows = pa.RecordBatch.from_pydict({"key": keys, "value": values})
        with mock.patch.object(Attempt, "current", return_value=attempt):
            return self._new_writer().write(iter([rows]))

    def _new_writer(self) -> KafkaWriter:
        writer = pickle.loads(self._writer)
        assert isinstance(writer, KafkaWriter)
        return writer


def main() -> None:
    arguments = _arguments()
    rows: list[list[str]] = []
    with broker() as kafka:
        for tasks in map(int, arguments.tasks.split(",")):
            rows += _cells(kafka, tasks, arguments.batches)
    command = "tools.benchmarks.guarantees"
    publish("guarantees", command, table(HEAD, rows), arguments.page)


def _cells(kafka: LocalKafka, tasks: int, batches: int) -> Iterator[list[str]]:
    with new_topic(kafka, tasks, None) as plain, new_topic(kafka, tasks, None) as exact:
        queries = [Query(kafka, *each) for each in zip((plain, exact), GUARANTEES, strict=True)]
        turns = [[each.run(tasks) for each in queries] for _ in range(_WARM_UP + batches)]
    for guarantee, found in zip(GUARANTEES, zip(*turns[_WARM_UP:], strict=True), strict=True):
        # The broker's processor time is told in hundredths of a second, so medians are too coarse.
        took = Took(*map(statistics.fmean, zip(*found, strict=True)))
        each = f"{took.tasks / tasks:.2f}"
        sums = f"{took.tasks:.0f}", f"{took.commit:.0f}", f"{took.broker:.0f}", f"{sum(took):.0f}"
        yield [str(tasks), guarantee, each, *sums]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default="4,16,64")
    parser.add_argument("--batches", type=int, default=40)
    add_page(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
