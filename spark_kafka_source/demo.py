"""`python -m spark_kafka_source.demo`: a real broker, a producer that keeps writing, and a query.

The query reads a topic and writes its rows to another one, exactly once. The demo shows the first
rows. Then it shows a line for each micro-batch, with its rows and the lag that is left. At the end
it shows what Kafka's own tool says of the group, and how many rows each topic has. It ends by
itself, or by Ctrl-C.
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
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import spark_kafka_source
from spark_kafka_source.producer import KafkaProducer
from spark_kafka_source.testing import LocalKafka

_TOPIC, _COPY, _GROUP, _PARTITIONS = "events", "clicks", "demo", 4
_BACKLOG_ROWS, _ROWS_PER_SEND, _SENDS_PER_SECOND = 200_000, 500, 8
_ROWS_PER_BATCH = 25_000
_BAR_WIDTH = 40


def main() -> None:
    """Run the demo. The producer writes for `--seconds` (default 30)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=30, help="how long the producer writes")
    seconds = parser.parse_args().seconds
    # Without this Spark would take another Python from the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with contextlib.suppress(KeyboardInterrupt):
        _run(seconds)


def _run(seconds: int) -> None:
    _say("Starting a real Kafka broker (the first time, its jars are downloaded: a minute) ...")
    with LocalKafka() as kafka, _session() as spark, tempfile.TemporaryDirectory() as checkpoint:
        interrupted = _interrupted()
        _say(f"Apache Kafka is up at {kafka.bootstrap_servers}, Spark {spark.version} with it.")
        for topic in (_TOPIC, _COPY):
            kafka.create_topic(topic, partitions=_PARTITIONS)
        with _writing(kafka.bootstrap_servers, seconds) as writer:
            _show_first_rows(spark, kafka.bootstrap_servers)
            query = _query(spark, kafka.bootstrap_servers, checkpoint)
            _watch(query, writer, interrupted)
            query.stop()
        if not interrupted.is_set():
            _say(f"\nWhat kafka-consumer-groups says of group '{_GROUP}':")
            _say(kafka.tool("consumer-groups", "--describe", "--group", _GROUP))
            for topic in (_TOPIC, _COPY):
                _say(f"Rows in {topic!r}: {_rows(spark, kafka.bootstrap_servers, topic)}")


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
    return (
        events.select("key", "value")
        .writeStream.format("pykafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("topic", _COPY)
        .option("deliveryGuarantee", "exactly-once")
        .option("kafka.compression.type", "lz4")
        .option("checkpointLocation", checkpoint)
        .start()
    )


def _rows(spark: SparkSession, bootstrap_servers: str, topic: str) -> int:
    """Return the number of committed rows."""
    return (
        spark.read.format("pykafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", topic)
        .option("kafka.isolation.level", "read_committed")
        .load()
        .count()
    )


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
    """Return an event that Ctrl-C sets. Otherwise Ctrl-C could break off a call to the JVM."""
    interrupted = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    return interrupted


def _watch(query: StreamingQuery, writer: threading.Thread, interrupted: threading.Event) -> None:
    """Show a line for each micro-batch until the producer has ended and all records are read."""
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
            # One more trigger, without new records, commits the last micro-batch to the group.
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
    """Write a backlog, then run a thread that keeps writing to the topic."""
    ended = threading.Event()
    with KafkaProducer(bootstrap_servers=bootstrap_servers, compression_type="lz4") as producer:
        for _ in range(_BACKLOG_ROWS // _ROWS_PER_SEND):
            _send(producer)
        writer = threading.Thread(target=_keep_writing, args=(producer, seconds, ended))
        writer.start()
        try:
            yield writer
        finally:
            ended.set()
            writer.join()


def _keep_writing(producer: KafkaProducer, seconds: int, ended: threading.Event) -> None:
    for _ in range(seconds * _SENDS_PER_SECOND):
        _send(producer)
        if ended.wait(1 / _SENDS_PER_SECOND):
            return


def _send(producer: KafkaProducer) -> None:
    for _ in range(_ROWS_PER_SEND):
        value = b'{"action": "click", "amount": %d}' % random.randrange(100)
        producer.send(_TOPIC, value, key=b"user-%d" % random.randrange(1000))


@contextlib.contextmanager
def _session() -> Iterator[SparkSession]:
    spark = _quiet(
        SparkSession.builder.master("local[2]")
        .appName("spark_kafka_source demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        # Makes small tasks cheap; see docs/tuning.md.
        .config("spark.python.unix.domain.socket.enabled", "true")
        .getOrCreate
    )
    spark_kafka_source.register(spark)
    try:
        yield spark
    finally:
        spark.stop()


def _quiet(start: Callable[[], SparkSession]) -> SparkSession:
    """Start Spark with its standard error in a file, which is shown only if Spark does not start.

    Ctrl-C and the end of a session make Spark print stacks that mean nothing.
    """
    ours = os.dup(sys.stderr.fileno())
    with tempfile.TemporaryFile() as log, os.fdopen(ours, "wb") as kept:
        os.dup2(log.fileno(), sys.stderr.fileno())
        try:
            return start()
        except BaseException:
            log.seek(0)
            kept.write(log.read())
            raise
        finally:
            os.dup2(ours, sys.stderr.fileno())


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
