"""`python -m spark_kafka_source.demo`: a real broker, a producer that keeps writing, and a query.

The query reads a topic and writes its rows to another one, exactly once. The demo shows the first
rows. Then it shows a line for each micro-batch, with its rows and the lag that is left. At the end
it shows what Kafka's own tool says of the group. It counts the rows: how many were produced, read
and written, and whether one of them was lost or doubled. It ends by itself, or by Ctrl-C: the
first one stops all in order, the second one ends it at once.
"""

import argparse
import contextlib
import json
import logging
import os
import random
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import spark_kafka_source
from spark_kafka_source.admin import KafkaAdmin
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.producer import KafkaProducer
from spark_kafka_source.testing import BrokerFailedError, LocalKafka, kafka_jars
from spark_kafka_source.testing.child import RemovedDirectory
from spark_kafka_source.testing.downloads import DownloadLine
from spark_kafka_source.testing.java import find_java
from spark_kafka_source.topic_partition import TopicPartition

_TOPIC, _COPY, _GROUP, _PARTITIONS = "events", "clicks", "demo", 4
_BACKLOG_ROWS, _ROWS_PER_SEND, _SENDS_PER_SECOND = 200_000, 500, 8
_ROWS_PER_BATCH = 25_000
_BAR_WIDTH = 40
_LOOK_SECONDS = 0.5
_STOP_SECONDS = 10
_ENDED_BY_CTRL_C = 130
_FAILURES = (KafkaError, PySparkException, Py4JError)
_COMMAND = "spark-kafka-source"


@dataclass
class _Written:
    """The events so far: each has the next number. Another thread counts what Kafka has taken."""

    count: int = 0
    acknowledged: int = 0

    def on_delivery(self, _: object, error: KafkaError | None) -> None:
        """Count a record that Kafka has."""
        self.acknowledged += error is None


@dataclass(frozen=True)
class _Found:
    """What is found in the end, to hold against what was written."""

    read: int
    """Rows that the query read, by Spark's progress."""
    batches: int
    lags: dict[TopicPartition, int | None]
    """End less committed offset, of each partition that the group has committed."""
    copies: int
    """Committed rows of the copy."""
    distinct: int
    """Different events among them, of those that were written."""


class _CtrlC:
    """Ctrl-C: the first one ends the demo in order, the second one at once."""

    def __init__(self) -> None:
        self._is_heard = False

    def listen(self) -> None:
        """Heed Ctrl-C from now on. Spark has a handler of its own, so call it after its start."""
        signal.signal(signal.SIGINT, self._hear)

    def _hear(self, *_: object) -> None:
        if self._is_heard:
            os._exit(_ENDED_BY_CTRL_C)  # The broker, the JVM and the checkpoint end with it.
        self._is_heard = True
        text = b"\nCtrl-C: the demo stops. Another one ends it at once.\n"
        with contextlib.suppress(OSError):  # Its reader may have ended, too.
            os.write(1, text)  # A `print` may be at work, and cannot be entered twice.
        logging.disable()  # Py4J logs a stack for a call that this breaks off.
        raise KeyboardInterrupt

    def check(self) -> None:
        """Raise `KeyboardInterrupt` if one came in a finalizer, where Python drops the error."""
        if self._is_heard:
            raise KeyboardInterrupt


def main() -> int:
    """Run the demo. Return 1 if something is not as it should be, else 0."""
    about = str(__doc__).partition("\n\n")[2]
    parser = argparse.ArgumentParser(prog="python -m spark_kafka_source.demo", description=about)
    parser.add_argument("--seconds", type=int, default=30, help="how long the producer writes")
    parser.add_argument("--keep", action="store_true", help="keep the broker until Ctrl-C")
    arguments = parser.parse_args()
    # Without this Spark would take another Python from the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        return int(not _run(arguments.seconds, keep=arguments.keep))
    except KeyboardInterrupt:
        return 0
    except _FAILURES as error:
        print(f"The demo cannot go on: {_reason(error)}", file=sys.stderr)
        return 1


def _reason(error: Exception) -> str:
    """Return the text of an error; one of Spark's has many lines, with the cause among them."""
    text = str(error)
    if isinstance(error, KafkaError):
        return text
    causes = re.findall(r"^(?:[\w.]+\.)?\w*(?:Error|Exception): .+", text, re.MULTILINE)
    return str([*text.splitlines()[:1], *causes][-1]) if text else type(error).__name__


def _run(seconds: int, *, keep: bool) -> bool:
    """Return whether all is as it should be."""
    ctrl_c = _CtrlC()
    ctrl_c.listen()
    find_java()  # Before a download.
    with DownloadLine("Kafka's jars", sys.stderr) as line:
        kafka_jars(progress=line)
    _say("Starting a real Kafka broker ...")
    with LocalKafka() as kafka:
        try:
            claims = _show(kafka, seconds, ctrl_c)
        except _FAILURES:
            _check_broker(kafka)  # Its end may be the cause.
            raise
        _say("\nWhat this run shows, counted:")
        for holds, text in claims:
            _say(f"  {'yes' if holds else 'NO '}  {text}")
        _say("\n" + _next(kafka.bootstrap_servers, keep=keep))
        if keep:
            while True:
                _look(kafka, ctrl_c)
    return all(holds for holds, _ in claims)


def _show(kafka: LocalKafka, seconds: int, ctrl_c: _CtrlC) -> list[tuple[bool, str]]:
    """Run the query, and return what it shows."""
    servers, written = kafka.bootstrap_servers, _Written()
    with _checkpoint() as checkpoint, _session() as spark:
        ctrl_c.listen()
        _say(f"Apache Kafka is up at {servers}, Spark {spark.version} with it.")
        for topic in (_TOPIC, _COPY):
            kafka.create_topic(topic, partitions=_PARTITIONS)
        with _writing(servers, seconds, written) as writer:
            _show_first_rows(spark, servers)
            query = _query(spark, servers, checkpoint)
            read, batches = _watch(query, writer, lambda: _look(kafka, ctrl_c))
            query.stop()
        _say(f"\nWhat kafka-consumer-groups says of group '{_GROUP}':")
        _say(kafka.tool("consumer-groups", "--describe", "--group", _GROUP))
        copies, distinct = _copies(spark, servers, written.count)
        found = _Found(read, batches, _lags(servers), copies, distinct)
        return _claims(written, found)


def _claims(written: _Written, found: _Found) -> list[tuple[bool, str]]:
    """Return what was counted, each with whether it is as it should be."""
    count, ends = written.count, [each for each in found.lags.values() if each == 0]
    lost, doubled = count - found.distinct, found.copies - found.distinct
    return [
        (
            written.acknowledged == count,
            f"produced: {count:,} events into '{_TOPIC}', {written.acknowledged:,} acknowledged",
        ),
        (found.read == count, f"read: {found.read:,} rows, in {found.batches} micro-batches"),
        (
            len(ends) == len(found.lags) == _PARTITIONS,
            f"committed: the end of {len(ends)} of {_PARTITIONS} partitions, by group '{_GROUP}'",
        ),
        (
            lost == doubled == 0,
            f"written: {found.copies:,} rows into '{_COPY}', exactly once: "
            f"{lost:,} events are lost, {doubled:,} are doubled",
        ),
    ]


def _next(servers: str, *, keep: bool) -> str:
    kept = [
        f"Kafka stays at {servers} until Ctrl-C. In another terminal:",
        f"  {_COMMAND} tail {_COPY} -b {servers}",
        f"  {_COMMAND} groups lag -b {servers}",
    ]
    tried = [
        "What to try next:",
        "  python -m spark_kafka_source.demo --keep    the same, and the broker stays",
        f"  {_COMMAND} local-broker             a broker for your own code",
        "  docs/first-query.md                         the same step by step, in ten minutes",
    ]
    return "\n".join(kept if keep else tried)


def _look(kafka: LocalKafka, ctrl_c: _CtrlC) -> None:
    """Wait a moment, then raise if the demo is to end: `KeyboardInterrupt`, `BrokerFailedError`."""
    time.sleep(_LOOK_SECONDS)
    ctrl_c.check()
    _check_broker(kafka)


def _check_broker(kafka: LocalKafka) -> None:
    if not kafka.broker(1).running:
        raise BrokerFailedError("The broker has ended", kafka.broker(1).log)


def _lags(servers: str) -> dict[TopicPartition, int | None]:
    """Return the lag of the group, which has committed its last offsets a moment ago."""
    with KafkaAdmin(bootstrap_servers=servers) as admin:
        return {each.topic_partition: each.lag for each in admin.group_lag(_GROUP)}


def _copies(spark: SparkSession, servers: str, count: int) -> tuple[int, int]:
    """Return the number of committed copies, and of the different events among them."""
    numbers = (
        spark.read.format("pykafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", _COPY)
        .option("kafka.isolation.level", "read_committed")
        .load()
        .selectExpr("CAST(get_json_object(CAST(value AS STRING), '$.number') AS BIGINT) AS number")
    )
    known = f"number BETWEEN 0 AND {count - 1}"
    found = numbers.selectExpr(
        "count(*)", f"count(DISTINCT CASE WHEN {known} THEN number END)"
    ).collect()[0]
    return int(found[0]), int(found[1])


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


def _watch(
    query: StreamingQuery, writer: threading.Thread, look: Callable[[], None]
) -> tuple[int, int]:
    """Show a line for each micro-batch until the producer has ended and all records are read.

    `look` waits a moment, and raises if the demo is to end.
    Return the number of rows that the query has read, and of its micro-batches.
    """
    shown, most, rows, batches = -1, 1, 0, 0
    while query.isActive:
        look()
        # One more trigger, without new records, commits the last micro-batch to the group.
        is_over = not writer.is_alive() and _is_at_end(query)
        if is_over:
            query.processAllAvailable()
        for progress in query.recentProgress:
            # An idle query tells its next micro-batch's number, without rows.
            if progress["batchId"] <= shown or not progress["numInputRows"]:
                continue
            shown = progress["batchId"]
            rows, batches = rows + progress["numInputRows"], batches + 1
            lag = _lag(progress["sources"][0])
            most = max(most, lag)
            _show_progress(progress, lag, most)
        if is_over:
            break
    if error := query.exception():
        raise error
    return rows, batches


def _is_at_end(query: StreamingQuery) -> bool:
    last = query.lastProgress
    return last is not None and _lag(last["sources"][0]) == 0


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
def _writing(servers: str, seconds: int, written: _Written) -> Iterator[threading.Thread]:
    """Write a backlog, then run a thread that keeps writing to the topic."""
    ended = threading.Event()
    with KafkaProducer(bootstrap_servers=servers, compression_type="lz4") as producer:
        for _ in range(_BACKLOG_ROWS // _ROWS_PER_SEND):
            _send(producer, written)
        arguments = (producer, seconds, written, ended)
        writer = threading.Thread(target=_keep_writing, args=arguments, daemon=True)
        writer.start()
        try:
            yield writer
        finally:
            ended.set()


def _keep_writing(
    producer: KafkaProducer, seconds: int, written: _Written, ended: threading.Event
) -> None:
    try:
        for _ in range(seconds * _SENDS_PER_SECOND):
            _send(producer, written)
            if ended.wait(1 / _SENDS_PER_SECOND):
                break
        producer.flush()
    except KafkaError as error:
        if not ended.is_set():
            _say(f"The producer cannot go on: {error}")


def _send(producer: KafkaProducer, written: _Written) -> None:
    for number in range(written.count, written.count + _ROWS_PER_SEND):
        amount, user = random.randrange(100), random.randrange(1000)
        value = b'{"number": %d, "action": "click", "amount": %d}' % (number, amount)
        producer.send(_TOPIC, value, key=b"user-%d" % user, on_delivery=written.on_delivery)
    written.count += _ROWS_PER_SEND


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
        _stop(spark)


def _stop(spark: SparkSession) -> None:
    """Stop the queries and Spark, within some seconds: the JVM ends with this process anyhow.

    It does so in a thread, which has a connection to the JVM of its own. On the main thread's,
    Ctrl-C may have broken off a call, and the next call would take that call's answer.
    """

    def stop() -> None:
        with contextlib.suppress(*_FAILURES):
            for each in spark.streams.active:
                each.stop()
            spark.stop()

    thread = threading.Thread(target=stop, daemon=True)
    thread.start()
    thread.join(_STOP_SECONDS)


@contextlib.contextmanager
def _checkpoint() -> Iterator[str]:
    """Make a directory that is removed at the end, however this process ends."""
    directory = RemovedDirectory(Path(tempfile.mkdtemp()))
    try:
        yield str(directory.path)
    finally:
        directory.close()


def _quiet(start: Callable[[], SparkSession]) -> SparkSession:
    """Start Spark with its standard error in a file, which is shown only if Spark does not start.

    Ctrl-C and the end of a session make Spark print stacks that mean nothing.
    """
    ours = os.dup(sys.stderr.fileno())
    with tempfile.TemporaryFile() as log, os.fdopen(ours, "wb") as kept:
        os.dup2(log.fileno(), sys.stderr.fileno())
        try:
            return start()
        except Exception:
            log.seek(0)
            kept.write(log.read())
            raise
        finally:
            os.dup2(ours, sys.stderr.fileno())


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
