"""A driver that is killed: `python -m spark_kafka_source.demo.copying SERVERS TOPIC FOLDER`.

It runs two queries that copy the topic, one for each guarantee. Each has a checkpoint of its own in
the folder. A line on standard input ends it in order, once all events are copied. If standard input
ends without a line, then the demo has ended, and this process and its JVM end at once.
"""

import os
import signal
import sys
import threading
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_kafka_source.demo.running import FAILURES, reason, say, session
from spark_kafka_source.testing.java import QUICK_START

EXACTLY_ONCE, AT_LEAST_ONCE = "exactly-once", "at-least-once"
ROWS_PER_BATCH = 1_200
# Partition 1 takes a millisecond a row, partition 2 two of them: tasks are not equally fast, as in
# life. They sleep, and so take no core's time.
_SLOWLY = "reflect('java.lang.Thread', 'sleep', CAST(partition AS BIGINT)) IS NOT NULL"
_LOOK_SECONDS = 0.2


def copy_of(topic: str, guarantee: str) -> str:
    """Return the topic that the query with this guarantee writes to."""
    return f"{topic}-{guarantee}"


def main() -> int:
    """Copy until a line comes. Return 1 if a query fails."""
    servers, topic, folder = sys.argv[1:]
    is_told = threading.Event()
    threading.Thread(target=_listen, args=[is_told], daemon=True).start()
    try:
        with session("a driver", _settings(folder)) as spark:
            queries = [
                _query(spark, servers, topic, guarantee, folder)
                for guarantee in (EXACTLY_ONCE, AT_LEAST_ONCE)
            ]
            while not is_told.wait(_LOOK_SECONDS):
                for query in queries:
                    _check(query)
            for query in queries:
                query.processAllAvailable()
                query.stop()
    except FAILURES as error:
        say(reason(error))
        return 1
    return 0


def _settings(folder: str) -> dict[str, str]:
    """Return settings for a quick start, and so that a JVM that is killed leaves no file."""
    options = (*QUICK_START, f"-Djava.io.tmpdir={folder}")
    return {
        "spark.driver.extraJavaOptions": " ".join(options),
        # The path of such a socket may be too long in a folder.
        "spark.python.unix.domain.socket.enabled": "false",
    }


def _listen(is_told: threading.Event) -> None:
    if not sys.stdin.readline():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    is_told.set()


def _query(
    spark: SparkSession, servers: str, topic: str, guarantee: str, folder: str
) -> StreamingQuery:
    return (
        spark.readStream.format("pykafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", ROWS_PER_BATCH)
        .load()
        .where(_SLOWLY)
        .select("key", "value")
        .writeStream.format("pykafka")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", copy_of(topic, guarantee))
        .option("deliveryGuarantee", guarantee)
        .option("checkpointLocation", str(Path(folder, guarantee)))
        .start()
    )


def _check(query: StreamingQuery) -> None:
    if error := query.exception():
        raise error


if __name__ == "__main__":
    sys.exit(main())
