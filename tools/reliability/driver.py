"""A driver to be killed: `python -m tools.reliability.driver` reads its orders as JSON.

It runs a stream to the end of its topic, into one file for each attempt at a micro-batch. Or it
kills itself and the JVM on the way, as a loss of power would.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType

from pyspark.sql import DataFrame, SparkSession

import spark_kafka_source


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders of a driver. It goes on to the end unless one of the last three kills it.

    Without `available_now` its query has the default trigger, and is stopped when nothing is new.
    """

    options: dict[str, str]
    directory: str
    attempt: int
    available_now: bool = True
    dies_after_seconds: float | None = None
    dies_before_batch: int | None = None
    dies_after_batch: int | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))


class Sink:
    """A sink with a file for each attempt at a micro-batch. Each run counts them from 1."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._batches = 0

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        self._batches += 1
        if self._orders.dies_before_batch == self._batches:
            kill()
        self._write(frame, batch_id)
        if self._orders.dies_after_batch == self._batches:
            kill()

    def _write(self, frame: DataFrame, batch_id: int) -> None:
        rows = [[row.partition, row.offset, bytes(row.value).decode()] for row in frame.collect()]
        path = Path(self._orders.directory, "rows", f"{batch_id}.{self._orders.attempt}")
        path.parent.mkdir(exist_ok=True)
        unfinished = path.with_name("unfinished")
        unfinished.write_text(json.dumps(sorted(rows)))
        unfinished.rename(path)


def kill() -> None:
    """Kill this process and the JVM that it started."""
    os.killpg(os.getpgrp(), signal.SIGKILL)


def session(master: str, settings: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
    """Return a Spark session for a child process: small, silent and quick to start."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "OFF")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config(map=dict(settings))
        .getOrCreate()
    )


def main() -> None:
    spark = session("local[2]")
    spark_kafka_source.register(spark)
    orders = Orders(**json.loads(sys.stdin.readline()))
    if orders.dies_after_seconds is not None:
        threading.Timer(orders.dies_after_seconds, kill).start()
    writer = (
        spark.readStream.format("pykafka")
        .options(**orders.options)
        .load()
        .writeStream.foreachBatch(Sink(orders))
        .option("checkpointLocation", str(Path(orders.directory, "checkpoint")))
    )
    if orders.available_now:
        writer.trigger(availableNow=True).start().awaitTermination()
    else:
        query = writer.start()
        query.processAllAvailable()
        query.stop()
    spark.stop()
    os._exit(0)  # The timer must not kill the driver any more.


if __name__ == "__main__":
    main()
