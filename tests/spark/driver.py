"""A driver to be killed: `python -m tests.spark.driver`, with what it is to do as JSON.

Runs a stream to the end of its topic into one file for each attempt at a micro-batch, or kills
itself on the way, with the JVM, as a machine would that loses its power.
"""

import json
import os
import signal
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import spark_kafka_source


@dataclass(frozen=True, slots=True)
class Orders:
    """What a driver does: `ends` is one of the methods of `Sink`, or empty to go on to the end."""

    options: dict[str, str]
    directory: str
    attempt: int
    ends: str = ""

    def to_json(self) -> str:
        return json.dumps(asdict(self))


class Sink:
    """Writes a file for each attempt at a micro-batch, and is killed in the second of its run."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._batches = 0

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        self._batches += 1
        if self._orders.ends == "at_any_time" and self._batches == 1:
            threading.Timer(self._orders.attempt * 0.05, kill).start()
        if self._orders.ends == "before_it_is_written" and self._batches == 2:
            kill()
        self._write(frame, batch_id)
        if self._orders.ends == "after_it_is_written" and self._batches == 2:
            kill()

    def _write(self, frame: DataFrame, batch_id: int) -> None:
        rows = [[row.partition, row.offset, bytes(row.value).decode()] for row in frame.collect()]
        path = Path(self._orders.directory, "rows", f"{batch_id}.{self._orders.attempt}")
        path.parent.mkdir(exist_ok=True)
        unfinished = path.with_name("unfinished")
        unfinished.write_text(json.dumps(sorted(rows)))
        unfinished.rename(path)


def kill() -> None:
    """The end of this process and of the JVM that it started."""
    os.killpg(os.getpgrp(), signal.SIGKILL)


def main() -> None:
    orders = Orders(**json.loads(sys.argv[1]))
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "OFF")
        .config("spark.python.unix.domain.socket.enabled", "true")
        # For a quick start.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .getOrCreate()
    )
    spark_kafka_source.register(spark)
    sys.stdin.readline()  # Ready: it goes on when it is told to.
    query = (
        spark.readStream.format("pykafka")
        .options(**orders.options)
        .load()
        .writeStream.foreachBatch(Sink(orders))
        .option("checkpointLocation", str(Path(orders.directory, "checkpoint")))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
