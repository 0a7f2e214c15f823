"""A driver that copies a topic: `python -m tools.reliability.sink.driver` reads orders as JSON.

Each line of its standard input is one order: a query that ends when all is copied, when it is
stopped, or when it fails. The driver ends with its standard input, or when it is killed; its exit
status is the last order's.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from random import Random

from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr, udf
from pyspark.sql.streaming.readwriter import DataStreamWriter

import spark_kafka_source
from spark_kafka_source.testing import peer_jars
from tools.reliability.sink.faulty import FORMAT, FaultyDataSource

FAILED, STOPPED = 3, 4
"""Exit statuses of a query that failed, or was stopped before its end."""
LOCAL, CLUSTER = "local[2,4]", "local-cluster[2,1,640]"


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders of a driver. By default it goes on to the end of the topic."""

    source: dict[str, str]
    sink: dict[str, str]
    """The sink's options, with `format`."""
    checkpoint: str
    tasks: int
    keys: int
    """Number of keys in one partition. Rows of one key keep their order."""
    seed: str
    rows_fail: float = 0.0
    """In which share of attempts an expression fails among the rows."""
    dies_after_seconds: float | None = None
    stops_after_seconds: float | None = None
    stands_still_after_seconds: float | None = None
    """The whole driver stops by SIGSTOP, until it gets SIGCONT."""
    second_topic: str = ""
    """With it, code in `foreachBatch` writes the rows of half of the keys to this topic."""
    report: str = ""
    """The file that gets the order's status once the order is done."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @property
    def sink_options(self) -> dict[str, str]:
        return {name: each for name, each in self.sink.items() if name != "format"}


def session(master: str) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    paths = os.pathsep.join(filter(None, sys.path))
    return (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "OFF")
        .config("spark.jars", ",".join(map(str, peer_jars())))
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.executor.memory", "400m")
        .config("spark.testing.reservedMemory", "50000000")
        .config("spark.executorEnv.PYTHONPATH", paths)
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.speculation", "true")  # It has an effect only with executors.
        .config("spark.speculation.interval", "50ms")
        .config("spark.speculation.quantile", "0.25")
        .config("spark.speculation.multiplier", "1.1")
        .config("spark.speculation.minTaskRuntime", "500ms")
        .getOrCreate()
    )


def failing(seed: str, share: float) -> "object":
    @udf("binary", useArrow=False)
    def value(found: bytes) -> bytes:
        context = TaskContext.get()
        assert context is not None
        chance = Random(f"{seed}-{context.taskAttemptId()}-{bytes(found).decode()}")
        if context.attemptNumber() < 2 and chance.random() < share / 100:
            raise RuntimeError("on purpose")
        return found

    return value


def batches(checkpoint: str) -> int:
    """Return the number of micro-batches begun, in this run and earlier ones."""
    return len(list(Path(checkpoint, "offsets").glob("[0-9]*")))


def after_a_batch_began(checkpoint: str, seconds: float, act: Callable[[], object]) -> None:
    """Call `act` so long after this run has begun a micro-batch, whatever the machine's load."""
    before = batches(checkpoint)

    def wait() -> None:
        while batches(checkpoint) == before:
            time.sleep(0.02)
        time.sleep(seconds)
        act()

    threading.Thread(target=wait, daemon=True).start()


def run(spark: SparkSession, orders: Orders) -> int:
    frame = spark.readStream.format("pykafka").options(**orders.source).load()
    value = failing(orders.seed, orders.rows_fail) if orders.rows_fail else None
    key = f"concat(partition, '-', int(string(value)) % {orders.keys})"
    # The rows of a key come from one task, so a shuffle keeps their order.
    keyed = frame.withColumn("key", expr(key)).repartition(orders.tasks, "key")
    rows = keyed.select("key", value("value").alias("value") if callable(value) else "value")
    writing = to_two_topics(rows, orders) if orders.second_topic else to_one_topic(rows, orders)
    query = (
        writing.option("checkpointLocation", orders.checkpoint).trigger(availableNow=True).start()
    )
    stopped = threading.Event()

    def stop() -> None:
        if query.isActive:
            stopped.set()
            query.stop()

    if orders.stops_after_seconds is not None:
        after_a_batch_began(orders.checkpoint, orders.stops_after_seconds, stop)
    try:
        query.awaitTermination()
    except Exception as error:
        print(str(error)[:4000], file=sys.stderr)
        return FAILED
    return STOPPED if stopped.is_set() else 0


def to_one_topic(rows: DataFrame, orders: Orders) -> DataStreamWriter:
    return rows.writeStream.format(orders.sink["format"]).options(**orders.sink_options)


def to_two_topics(rows: DataFrame, orders: Orders) -> DataStreamWriter:
    def save(frame: DataFrame, _: int) -> None:
        for half, topic in enumerate((orders.sink["topic"], orders.second_topic)):
            of_half = frame.where(f"crc32(key) % 2 = {half}")
            options = {**orders.sink_options, "topic": topic}
            of_half.write.format(orders.sink["format"]).options(**options).mode("append").save()

    return rows.writeStream.foreachBatch(save)


def main() -> None:
    spark = session(os.environ.get("SINK_MASTER", LOCAL))
    spark_kafka_source.register(spark)
    spark.dataSource.register(FaultyDataSource)
    status = 0
    for line in iter(sys.stdin.readline, ""):
        status = carry_out(spark, Orders(**json.loads(line)))
    spark.stop()
    os._exit(status)  # A kill that is still to come is none any more.


def carry_out(spark: SparkSession, orders: Orders) -> int:
    assert orders.sink["format"] in (FORMAT, "kafka")
    for seconds, sign in (
        (orders.dies_after_seconds, signal.SIGKILL),
        (orders.stands_still_after_seconds, signal.SIGSTOP),
    ):
        if seconds is not None:
            strike = partial(os.killpg, os.getpgrp(), sign)
            after_a_batch_began(orders.checkpoint, seconds, strike)
    status = run(spark, orders)
    if orders.report:
        Path(orders.report).write_text(f"{status}\n")
    return status


if __name__ == "__main__":
    main()
