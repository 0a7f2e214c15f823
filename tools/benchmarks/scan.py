"""Batch scans and AvailableNow runs of a topic into the noop sink, with all ways in turn.

    python -m tools.benchmarks.scan [--rows N] [--runs N] [--codecs none,lz4] [--value-bytes N]
                                    [--headers N] [--partitions N] [--default-settings]
                                    [--streaming whole|micro-batches]

Prints for each codec the median seconds of each way. Prints how many times as fast as the peer this
source is, without and with the extra `fast`, and how much longer than ready-made batches it takes:
median (least-most) of the turns. Compare ratios only: the machine's speed drifts for all ways.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Literal

from pyspark.sql import SparkSession

from spark_kafka_source.testing import LocalKafka
from tools.benchmarks.interleaved import Ratio, Seconds, interleaved, medians
from tools.benchmarks.session import broker, session
from tools.benchmarks.sources import CEILING, FAST, PEER, PLAIN
from tools.benchmarks.topics import CODECS, PARTITIONS, fill

WAYS = (PEER, PLAIN, FAST, CEILING)
HEAD = ("scan", "peer s", "plain s", "fast s", "ready s", "plain x", "fast x", "fast/ready")


@dataclass(frozen=True, slots=True)
class Case:
    """A topic, and the way of its scan."""

    codec: str
    value_bytes: int = 150
    rows: int = 4_000_000
    headers: int = 0
    partitions: int = PARTITIONS
    streaming: Literal["", "whole", "micro-batches"] = ""
    """Timed part of an AvailableNow run: the whole run, or only its micro-batches."""

    def __str__(self) -> str:
        headers = f", {self.headers} headers" if self.headers else ""
        streaming = f", stream ({self.streaming})" if self.streaming else ""
        return f"{self.codec}, {self.value_bytes} B{headers}{streaming}"


def main() -> None:
    arguments = _arguments()
    spark = session(recommended=not arguments.default_settings)
    print(f"Spark {spark.version}, {arguments.rows} rows in {arguments.partitions} partitions")
    print(f"{HEAD[0]:24}" + "".join(f"{each:>18}" for each in HEAD[1:]))
    with broker() as kafka:
        for codec in arguments.codecs.split(","):
            case = Case(
                codec,
                arguments.value_bytes,
                arguments.rows,
                headers=arguments.headers,
                partitions=arguments.partitions,
                streaming=arguments.streaming,
            )
            name, *row = cells(case, measure(spark, kafka, case, arguments.runs))
            print(f"{name:24}" + "".join(f"{each:>18}" for each in row), flush=True)
    spark.stop()


def measure(spark: SparkSession, kafka: LocalKafka, case: Case, runs: int = 5) -> Seconds:
    """Run each way. Return the seconds of its runs."""
    with ways(spark, kafka, case) as runnable:
        return interleaved(runnable, runs)


@contextmanager
def ways(
    spark: SparkSession, kafka: LocalKafka, case: Case
) -> Iterator[Mapping[str, Callable[[], float | None]]]:
    """Yield the function of each way. The topic exists until the context ends."""
    run = {"": _scan, "whole": _stream, "micro-batches": _micro_batches}[case.streaming]
    with filled(kafka, case) as topic:
        ours: dict[str, object] = {
            "kafka.bootstrap.servers": kafka.bootstrap_servers,
            "subscribe": topic,
            "startingOffsets": "earliest",
            "includeHeaders": bool(case.headers),
        }
        ready: dict[str, object] = {
            "rows": case.rows,
            "partitions": case.partitions,
            "valueBytes": case.value_bytes,
            "headers": case.headers,
        }
        # A stream of ready-made batches has no end.
        names = [name for name in WAYS if not (case.streaming and name == CEILING)]
        yield {
            name: partial(run, spark, name, ready if name == CEILING else ours) for name in names
        }


@contextmanager
def filled(kafka: LocalKafka, case: Case) -> Iterator[str]:
    """Create and fill the case's topic. It exists until the context ends."""
    topic = f"scan-{case.codec}-{case.value_bytes}-{case.headers}-{case.rows}-{case.partitions}"
    kafka.create_topic(topic, partitions=case.partitions)
    try:
        fill(
            kafka.bootstrap_servers,
            topic,
            rows=case.rows,
            value_bytes=case.value_bytes,
            codec=case.codec,
            headers=case.headers,
            partitions=case.partitions,
        )
        yield topic
    finally:
        kafka.delete_topic(topic)


def cells(case: Case, seconds: Seconds) -> list[str]:
    """Return one row of the table, under `HEAD`."""
    took = medians(seconds)
    return [
        str(case),
        *(f"{took[name]:.2f}" if name in took else "-" for name in WAYS),
        str(Ratio.of(seconds, PEER, PLAIN)),
        str(Ratio.of(seconds, PEER, FAST)),
        str(Ratio.of(seconds, FAST, CEILING)) if CEILING in seconds else "-",
    ]


def _scan(spark: SparkSession, name: str, options: dict[str, object]) -> None:
    rows = spark.read.format(name).options(**options).load()  # type: ignore[arg-type]  # any value
    rows.write.format("noop").mode("overwrite").save()


def _stream(spark: SparkSession, name: str, options: dict[str, object]) -> None:
    _micro_batches(spark, name, options)


def _micro_batches(spark: SparkSession, name: str, options: dict[str, object]) -> float:
    """Run a query. Return the seconds of its micro-batches."""
    rows = spark.readStream.format(name).options(**options).load()  # type: ignore[arg-type]  # any value
    with tempfile.TemporaryDirectory() as checkpoint:
        writing = rows.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writing.trigger(availableNow=True).start()
        assert query.awaitTermination(600)
        took_ms = [each["durationMs"]["triggerExecution"] for each in query.recentProgress]
    return float(sum(took_ms)) / 1000


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--value-bytes", type=int, default=150)
    parser.add_argument("--headers", type=int, default=0, help="headers in each record")
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--codecs", default=",".join(CODECS))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--streaming", choices=["whole", "micro-batches"], default="")
    parser.add_argument("--default-settings", action="store_true", help="Spark's own defaults")
    return parser.parse_args()


if __name__ == "__main__":
    main()
