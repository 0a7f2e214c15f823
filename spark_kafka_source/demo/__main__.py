"""`python -m spark_kafka_source.demo`: a real broker, a producer that keeps writing, and a query.

The query reads a topic and writes its rows to another one, exactly once. The demo shows the first
rows. Then it shows a line for each micro-batch, with its rows and the lag that is left. At the end
it shows the group as Kafka's own tool describes it. It counts the rows: how many were produced,
read and written, and whether one of them was lost or doubled. It ends by itself, or by Ctrl-C: the
first one stops all in order, the second one ends it at once.
"""

import argparse
import contextlib
import json
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_kafka_source.admin import KafkaAdmin
from spark_kafka_source.demo.events import Written, send
from spark_kafka_source.demo.running import (
    Claim,
    Stage,
    exit_status,
    folder,
    python,
    say,
    session,
)
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.producer import KafkaProducer
from spark_kafka_source.topic_partition import TopicPartition

_TOPIC, _COPY, _GROUP, _PARTITIONS = "events", "clicks", "demo", 4
_BACKLOG_ROWS, _ROWS_PER_SEND, _SENDS_PER_SECOND = 200_000, 500, 8
_ROWS_PER_BATCH = 25_000
_WIDEST_BAR, _NARROWEST_SCREEN = 40, 80
_LOOK_SECONDS = 0.5
# Kafka's tool has columns for the members of a group. A query is no member.
_COLUMNS_SHOWN = 6


@dataclass(frozen=True)
class _Outcome:
    """The rows, lags and copies at the end, to compare with the rows that were written."""

    read: int
    """Rows that the query read, by Spark's progress."""
    batches: int
    lags: dict[TopicPartition, int | None]
    """End less committed offset, of each partition that the group has committed."""
    copies: int
    """Committed rows of the copy."""
    distinct: int
    """Different events among them, of those that were written."""


def main() -> int:
    """Run the demo. Return 1 if something is not as it should be, else 0."""
    about = str(__doc__).partition("\n\n")[2]
    parser = argparse.ArgumentParser(prog="python -m spark_kafka_source.demo", description=about)
    parser.add_argument("--seconds", type=int, default=30, help="how long the producer writes")
    parser.add_argument("--keep", action="store_true", help="keep the broker until Ctrl-C")
    arguments = parser.parse_args()
    return exit_status(partial(_show, arguments.seconds), _keep if arguments.keep else _invite)


def _show(seconds: int, stage: Stage) -> list[Claim]:
    """Run the query, and return what it shows."""
    servers, written = stage.servers, Written()
    with folder() as checkpoint, session("spark_kafka_source demo") as spark:
        stage.ctrl_c.listen()
        say(
            f"{stage.what_runs()}\n"
            f"A producer writes events into '{_TOPIC}'. Its first rows, read in batch:\n"
        )
        for topic in (_TOPIC, _COPY):
            stage.kafka.create_topic(topic, partitions=_PARTITIONS)
        with _writing(servers, seconds, written) as writer:
            _show_first_rows(spark, servers)
            say(f"A query copies them into '{_COPY}', exactly once, until none is left:\n")
            query = _query(spark, servers, str(checkpoint))
            pause_and_check = partial(stage.pause, _LOOK_SECONDS)
            read, batches = _watch(query, writer, written, pause_and_check)
            query.stop()
        say(f"\nWhat kafka-consumer-groups says of group '{_GROUP}':\n")
        said = stage.kafka.tool("consumer-groups", "--describe", "--group", _GROUP)
        say(_columns(said, _COLUMNS_SHOWN))
        copies, distinct = _copies(spark, servers, written.count)
        outcome = _Outcome(read, batches, _lags(servers), copies, distinct)
        return _claims(written, outcome)


def _claims(written: Written, outcome: _Outcome) -> list[Claim]:
    """Return what was counted, each with whether it is as it should be."""
    count, ends = written.count, [lag for lag in outcome.lags.values() if lag == 0]
    lost, doubled = count - outcome.distinct, outcome.copies - outcome.distinct
    return [
        (
            written.acknowledged == count,
            f"produced: {count:,} events into '{_TOPIC}', {written.acknowledged:,} acknowledged",
        ),
        (outcome.read == count, f"read: {outcome.read:,} rows, in {outcome.batches} micro-batches"),
        (
            len(ends) == len(outcome.lags) == _PARTITIONS,
            f"committed: the end of {len(ends)} of {_PARTITIONS} partitions, by group '{_GROUP}'",
        ),
        (
            lost == doubled == 0,
            f"written: {outcome.copies:,} rows into '{_COPY}', exactly once:\n"
            f"       {lost:,} events are lost, {doubled:,} are doubled",
        ),
    ]


def _invite(_: Stage) -> None:
    """Say what to try next."""
    say(
        "\nWhat to try next:\n"
        f"  {python()} -m spark_kafka_source.demo.exactly_once\n"
        "      kills a query again and again, and counts its rows\n"
        f"  {python()} -m spark_kafka_source.demo --keep\n"
        "      the same, and the broker stays: with lines to paste into a notebook\n"
        "  docs/cookbook/index.md\n"
        "      a recipe for each task: a backfill, dead letters, a topic into pandas"
    )


def _keep(stage: Stage) -> None:
    """Keep the broker until Ctrl-C, and say what can be done with it."""
    servers, command = stage.servers, f"{python()} -m spark_kafka_source"
    say(
        f"\nKafka stays at {servers} until Ctrl-C. Paste this into a notebook:\n\n"
        "  from spark_kafka_source import read_topic\n"
        f'  read_topic("{_COPY}", bootstrap_servers="{servers}")\n\n'
        "where there is a SparkSession, also this:\n\n"
        '  rows = (spark.read.format("pykafka")\n'
        f'      .option("kafka.bootstrap.servers", "{servers}")\n'
        f'      .option("subscribe", "{_COPY}").load())\n\n'
        "and these into another terminal:\n\n"
        f"  {command} tail {_COPY} -b {servers}\n"
        f"  {command} groups lag -b {servers}"
    )
    while True:
        stage.pause(_LOOK_SECONDS)


def _columns(table: str, count: int) -> str:
    """Return the first columns of a table of Kafka's tools, which is wider than most screens."""
    rows = [line.split() for line in table.splitlines() if line.strip()]
    if len(rows) < 2 or len({len(row) for row in rows}) > 1:
        return table  # It is no table but words.
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = ("  ".join(map(str.ljust, row[:count], widths)).rstrip() for row in rows)
    return "\n".join(f"  {line}" for line in padded)


def _lags(servers: str) -> dict[TopicPartition, int | None]:
    """Return the lag of the group, which has committed its last offsets a moment ago."""
    with KafkaAdmin(bootstrap_servers=servers) as admin:
        return {lag.topic_partition: lag.lag for lag in admin.group_lag(_GROUP)}


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
    counts = numbers.selectExpr(
        "count(*)", f"count(DISTINCT CASE WHEN {known} THEN number END)"
    ).collect()[0]
    return int(counts[0]), int(counts[1])


def _query(spark: SparkSession, servers: str, checkpoint: str) -> StreamingQuery:
    events = (
        spark.readStream.format("pykafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", _TOPIC)
        .option("startingOffsets", "earliest")
        .option("kafka.group.id", _GROUP)
        .option("maxOffsetsPerTrigger", _ROWS_PER_BATCH)
        .load()
    )
    return (
        events.select("key", "value")
        .writeStream.format("pykafka")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", _COPY)
        .option("deliveryGuarantee", "exactly-once")
        .option("kafka.compression.type", "lz4")
        .option("checkpointLocation", checkpoint)
        .start()
    )


def _show_first_rows(spark: SparkSession, servers: str) -> None:
    two_of_each = {_TOPIC: {str(partition): 2 for partition in range(_PARTITIONS)}}
    first = (
        spark.read.format("pykafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", _TOPIC)
        .option("endingOffsets", json.dumps(two_of_each))
        .load()
    )
    text = "CAST(key AS STRING)", "CAST(value AS STRING)"
    first.selectExpr(*text, "partition", "offset").show(truncate=False)


def _watch(
    query: StreamingQuery,
    writer: threading.Thread,
    written: Written,
    pause_and_check: Callable[[], None],
) -> tuple[int, int]:
    """Show a line for each micro-batch until the producer has ended and all records are read.

    `pause_and_check` raises if the demo is to end.
    Return the number of rows that the query has read, and of its micro-batches.
    """
    last_batch_id, most_lag, rows, batches = -1, 1, 0, 0
    while query.isActive:
        pause_and_check()
        # One more trigger, without new records, commits the last micro-batch to the group.
        # A query that finds no more is over, too: the count then tells what is missing.
        has_more = rows < written.count and query.status["isDataAvailable"]
        is_over = not writer.is_alive() and not has_more
        if is_over:
            query.processAllAvailable()
        for progress in query.recentProgress:
            # An idle query tells its next micro-batch's number, without rows.
            if progress["batchId"] <= last_batch_id or not progress["numInputRows"]:
                continue
            last_batch_id = progress["batchId"]
            rows, batches = rows + progress["numInputRows"], batches + 1
            # Spark 4.0 and 4.1 do not tell the end of the topic.
            lag = max(0, written.count - rows)
            most_lag = max(most_lag, lag)
            _show_progress(progress, lag, most_lag)
        if is_over:
            break
    if error := query.exception():
        raise error
    return rows, batches


def _show_progress(progress: Any, lag: int, most: int) -> None:
    line = (
        f"batch {progress['batchId']:3}: {progress['numInputRows']:6} rows, "
        f"{progress['processedRowsPerSecond'] or 0:8.0f} rows/s, lag {lag:6} "
    )
    columns = shutil.get_terminal_size((_NARROWEST_SCREEN, 0)).columns
    widest = max(0, min(_WIDEST_BAR, columns - len(line) - 1))
    say(line + "#" * (widest * lag // most))


@contextlib.contextmanager
def _writing(servers: str, seconds: int, written: Written) -> Iterator[threading.Thread]:
    """Write a backlog, then run a thread that keeps writing to the topic."""
    ended = threading.Event()
    with KafkaProducer(bootstrap_servers=servers, compression_type="lz4") as producer:
        send(producer, _TOPIC, _BACKLOG_ROWS, written)
        arguments = (producer, seconds, written, ended)
        writer = threading.Thread(target=_keep_writing, args=arguments, daemon=True)
        writer.start()
        try:
            yield writer
        finally:
            ended.set()


def _keep_writing(
    producer: KafkaProducer, seconds: int, written: Written, ended: threading.Event
) -> None:
    try:
        for _ in range(seconds * _SENDS_PER_SECOND):
            send(producer, _TOPIC, _ROWS_PER_SEND, written)
            if ended.wait(1 / _SENDS_PER_SECOND):
                break
        producer.flush()
    except KafkaError as error:
        if not ended.is_set():
            say(f"The producer cannot go on: {error}")


if __name__ == "__main__":
    sys.exit(main())
