"""Batch scans and AvailableNow runs of a topic into the noop sink, all ways in turn.

    python -m tests.benchmarks.scan [--rows N] [--runs N] [--codecs none,lz4] [--value-bytes N]
                                    [--headers N] [--streaming] [--default-settings]

Prints, for each codec, the median seconds of each way, and how many times as fast as the peer ours
is without and with the extra `fast`, and how much longer than ready-made batches it takes: median
(least-most) of the turns. Only ratios mean much: the machine's speed drifts, but for all alike.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from pyspark.sql import SparkSession

from spark_kafka_source.testing import LocalKafka
from tests.benchmarks.interleaved import Ratio, Seconds, interleaved, medians
from tests.benchmarks.session import broker, session
from tests.benchmarks.sources import CEILING, FAST, PEER, PLAIN
from tests.benchmarks.topics import CODECS, PARTITIONS, fill

WAYS = (PEER, PLAIN, FAST, CEILING)
HEAD = (
    "codec", "value B", "headers", "peer s", "plain s", "fast s", "ready s",
    "plain x", "fast x", "fast/ready",
)  # fmt: skip


def main() -> None:
    arguments = _arguments()
    spark = session(recommended=not arguments.default_settings)
    print(f"Spark {spark.version}, {arguments.rows} rows in {PARTITIONS} partitions, medians")
    print("".join(f"{each:>18}" for each in HEAD))
    with broker() as kafka:
        for codec in arguments.codecs.split(","):
            seconds = measure(
                spark,
                kafka,
                codec=codec,
                rows=arguments.rows,
                value_bytes=arguments.value_bytes,
                headers=arguments.headers,
                runs=arguments.runs,
                streaming=arguments.streaming,
            )
            row = cells(codec, arguments.value_bytes, arguments.headers, seconds)
            print("".join(f"{each:>18}" for each in row), flush=True)
    spark.stop()


def measure(
    spark: SparkSession,
    kafka: LocalKafka,
    *,
    codec: str,
    rows: int,
    value_bytes: int,
    headers: int = 0,
    runs: int = 5,
    streaming: bool = False,
) -> Seconds:
    """Seconds of each way's runs over a topic that is made for it."""
    with filled(kafka, codec, rows, value_bytes, headers) as topic:
        options: dict[str, dict[str, object]] = {
            PEER: _kafka_options(kafka, topic, headers),
            PLAIN: _kafka_options(kafka, topic, headers),
            FAST: _kafka_options(kafka, topic, headers),
            CEILING: {
                "rows": rows,
                "partitions": PARTITIONS,
                "valueBytes": value_bytes,
                "headers": headers,
            },
        }
        # Ready-made batches have no end that a stream could come to.
        names = [name for name in WAYS if not (streaming and name == CEILING)]
        run = _stream if streaming else _scan
        ways: dict[str, Callable[[], object]] = {
            name: partial(run, spark, name, options[name]) for name in names
        }
        return interleaved(ways, runs)


@contextmanager
def filled(
    kafka: LocalKafka, codec: str, rows: int, value_bytes: int, headers: int
) -> Iterator[str]:
    """A topic with so many rows, for as long as the context lasts."""
    topic = f"scan-{codec}-{value_bytes}-{headers}"
    kafka.create_topic(topic, partitions=PARTITIONS)
    try:
        fill(
            kafka.bootstrap_servers,
            topic,
            rows=rows,
            value_bytes=value_bytes,
            codec=codec,
            headers=headers,
        )
        yield topic
    finally:
        kafka.delete_topic(topic)


def cells(codec: str, value_bytes: int, headers: int, seconds: Seconds) -> list[str]:
    """One row of the table, under `HEAD`."""
    took = medians(seconds)
    return [
        codec,
        str(value_bytes),
        str(headers),
        *(f"{took[name]:.2f}" if name in took else "-" for name in WAYS),
        str(Ratio.of(seconds, PEER, PLAIN)),
        str(Ratio.of(seconds, PEER, FAST)),
        str(Ratio.of(seconds, FAST, CEILING)) if CEILING in seconds else "-",
    ]


def _kafka_options(kafka: LocalKafka, topic: str, headers: int) -> dict[str, object]:
    return {
        "kafka.bootstrap.servers": kafka.bootstrap_servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "includeHeaders": bool(headers),
    }


def _scan(spark: SparkSession, name: str, options: dict[str, object]) -> None:
    rows = spark.read.format(name).options(**options).load()  # type: ignore[arg-type]  # any value
    rows.write.format("noop").mode("overwrite").save()


def _stream(spark: SparkSession, name: str, options: dict[str, object]) -> None:
    rows = spark.readStream.format(name).options(**options).load()  # type: ignore[arg-type]  # any value
    with tempfile.TemporaryDirectory() as checkpoint:
        writing = rows.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writing.trigger(availableNow=True).start()
        assert query.awaitTermination(600)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--value-bytes", type=int, default=150)
    parser.add_argument("--headers", type=int, default=0, help="headers in each record")
    parser.add_argument("--codecs", default=",".join(CODECS))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--streaming", action="store_true", help="AvailableNow, not batch")
    parser.add_argument("--default-settings", action="store_true", help="Spark's own defaults")
    return parser.parse_args()


if __name__ == "__main__":
    main()
