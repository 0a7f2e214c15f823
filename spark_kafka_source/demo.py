"""`python -m spark_kafka_source.demo`: a real broker, a producer that keeps writing, and a query.

Shows the first rows, then a line for each micro-batch with its rows and the lag that is left, and
at the end what Kafka's own tool says of the group. Ends by itself, or by Ctrl-C.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import spark_kafka_source
from spark_kafka_source.records import Codec, Record
from spark_kafka_source.testing import LocalKafka, Producer

_TOPIC, _GROUP, _PARTITIONS = "events", "demo", 4
_BACKLOG_ROWS, _ROWS_PER_SEND, _SENDS_PER_SECOND = 200_000, 500, 8
_ROWS_PER_BATCH = 25_000
_BAR_WIDTH = 40


def main() -> None:
    """Runs the demo; `--seconds` (30 unless given) is how long the producer writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=30, help="how long the producer writes")
    seconds = parser.parse_args().seconds
    # Without it Spark would look for another Python on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with contextlib.suppress(KeyboardInterrupt):
        _run(seconds)


def _run(seconds: int) -> None:
    _say("Starting a real Kafka broker (the first time, its jars are downloaded: a minute) ...")
    with LocalKafka() as kafka, _session() as spark, tempfile.TemporaryDirectory() as checkpoint:
        interrupted = _interrupted()
        _say(f"Apache Kafka is up at {kafka.bootstrap_servers}, Spark {spark.version} with it.")
        kafka.create_topic(_TOPIC, partitions=_PARTITIONS)
        with _writing(kafka.bootstrap_servers, seconds) as writer:
            _show_first_rows(spark, kafka.bootstrap_servers)
            query = _query(spark, kafka.bootstrap_servers, checkpoint)
            _watch(query, writer, interrupted)
            query.stop()
        if not interrupted.is_set():
            _say(f"\nWhat kafka-consumer-groups says of group '{_GROUP}':")
            _say(kafka.tool("consumer-groups", "--describe", "--group", _GROUP))


def _query(spark: SparkSession, bootstrap_servers: str, checkpoint: str) -> StreamingQuery:
    events = (
        spark.readStream.format("pykafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", _TOPIC)
        .option("startingOffsets", "earliest")
        .option("kafka.group.id", _GROUP)
        .option("maxOffsetsPerTrigger", _ROWS_PER_BATCH)
        .load()
    )
    writer = events.writeStream.format("noop").option("checkpointLocation", checkpoint)
    return writer.start()


def _show_first_rows(spark: SparkSession, bootstrap_servers: str) -> None:
    two_of_each = {_TOPIC: {str(partition): 2 for partition in range(_PARTITIONS)}}
    first = (
        spark.read.format("pykafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", _TOPIC)
        .option("endingOffsets", json.dumps(two_of_each))
        .load()
    )
    text = "CAST(key AS STRING)", "CAST(value AS STRING)"
    first.selectExpr(*text, "partition", "offset", "timestamp").show(truncate=False)


def _interrupted() -> threading.Event:
    """Is set by Ctrl-C from now on, which Spark would take in the middle of a call to the JVM."""
    interrupted = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    return interrupted


def _watch(query: StreamingQuery, writer: threading.Thread, interrupted: threading.Event) -> None:
    """A line for each micro-batch, until the producer has ended and everything is read."""
    shown, most = -1, 1
    while query.isActive and not interrupted.wait(0.2):
        for progress in query.recentProgress:
            if progress["batchId"] <= shown:
                continue
            shown = progress["batchId"]
            lag = _lag(progress["sources"][0])
            most = max(most, lag)
            _show_progress(progress, lag, most)
        last = query.lastProgress
        if not writer.is_alive() and last and _lag(last["sources"][0]) == 0:
            # One more trigger, with nothing new, commits the last micro-batch to the group.
            query.processAllAvailable()
            return
    if error := query.exception():
        raise error


def _show_progress(progress: Any, lag: int, most: int) -> None:
    bar = "#" * (_BAR_WIDTH * lag // most)
    _say(
        f"batch {progress['batchId']:3}: {progress['numInputRows']:6} rows, "
        f"{progress['processedRowsPerSecond'] or 0:8.0f} rows/s, lag {lag:6} {bar}"
    )


def _lag(source: Any) -> int:
    latest, end = (json.loads(source[name])["offsets"] for name in ("latestOffset", "endOffset"))
    return int(sum(latest[_TOPIC].values()) - sum(end.get(_TOPIC, {}).values()))


@contextlib.contextmanager
def _writing(bootstrap_servers: str, seconds: int) -> Iterator[threading.Thread]:
    """A backlog, and then a thread that keeps writing to the topic."""
    ended = threading.Event()
    with Producer(bootstrap_servers) as producer:
        for _ in range(_BACKLOG_ROWS // _ROWS_PER_SEND):
            _send(producer)
        writer = threading.Thread(target=_keep_writing, args=(producer, seconds, ended))
        writer.start()
        try:
            yield writer
        finally:
            ended.set()
            writer.join()


def _keep_writing(producer: Producer, seconds: int, ended: threading.Event) -> None:
    for _ in range(seconds * _SENDS_PER_SECOND):
        _send(producer)
        if ended.wait(1 / _SENDS_PER_SECOND):
            return


def _send(producer: Producer) -> None:
    now_ms = int(time.time() * 1000)
    records = [
        Record(
            timestamp_ms=now_ms,
            key=b"user-%d" % random.randrange(1000),
            value=b'{"action": "click", "amount": %d}' % random.randrange(100),
        )
        for _ in range(_ROWS_PER_SEND)
    ]
    producer.send(_TOPIC, random.randrange(_PARTITIONS), records, Codec.LZ4)


@contextlib.contextmanager
def _session() -> Iterator[SparkSession]:
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("spark_kafka_source demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        # Makes small tasks cheap; see the README.
        .config("spark.python.unix.domain.socket.enabled", "true")
        .getOrCreate()
    )
    spark_kafka_source.register(spark)
    try:
        yield spark
    finally:
        spark.stop()


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
