"""Processor time of a scan by process: the profile behind the ratios.

    python -m tools.benchmarks.processors [--codecs none,lz4] [--rows N] [--runs N]

Prints nanoseconds per row of the broker, of Spark's JVM and of its Python workers, their sum, and
the elapsed time. On a machine with all cores busy, the sum decides the elapsed time.
"""

import argparse
import statistics
from collections.abc import Callable, Mapping

import psutil
from pyspark.sql import SparkSession

from spark_kafka_source.testing import LocalKafka
from tools.benchmarks.costs import seconds, with_ended
from tools.benchmarks.interleaved import interleaved
from tools.benchmarks.scan import Case, ways
from tools.benchmarks.session import broker, session

HEAD = ("scan", "way", "broker ns", "JVM ns", "workers ns", "sum ns", "passed ns")

Nanoseconds = Mapping[str, list[float]]
"""Time per row in each column of `HEAD` from the third on, by way."""


def main() -> None:
    arguments = _arguments()
    spark = session()
    print("".join(f"{each:>16}" for each in HEAD))
    with broker() as kafka:
        for codec in arguments.codecs.split(","):
            case = Case(codec, rows=arguments.rows)
            for row in cells(case, measure(spark, kafka, case, arguments.runs)):
                print("".join(f"{each:>16}" for each in row), flush=True)
    spark.stop()


def measure(spark: SparkSession, kafka: LocalKafka, case: Case, runs: int = 3) -> Nanoseconds:
    """Return the medians of each way's runs."""
    with ways(spark, kafka, case) as runnable:
        return by_process(spark, kafka, runnable, case.rows, runs)


def by_process(
    spark: SparkSession,
    kafka: LocalKafka,
    runnable: Mapping[str, Callable[[], object]],
    rows: int,
    runs: int,
) -> Nanoseconds:
    """Run the ways in turn. Return the medians of each way's runs, per row."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    java = psutil.Process(gateway.proc.pid)
    server = psutil.Process(kafka.broker(1).pid)
    used: dict[str, list[list[float]]] = {name: [] for name in runnable}

    def now() -> list[float]:
        # The JVM's children are its Python workers.
        workers = sum(map(with_ended, java.children(recursive=True)))
        return [seconds(server), seconds(java), workers]

    def metered(name: str) -> None:
        before = now()
        runnable[name]()
        used[name].append([after - b for after, b in zip(now(), before, strict=True)])

    turns = {name: (lambda name=name: metered(name)) for name in runnable}
    passed = interleaved(turns, runs)
    found = {}
    for name, each in used.items():
        by_process = [statistics.median(column) for column in zip(*each[1:], strict=True)]
        all_of_it = [*by_process, sum(by_process), statistics.median(passed[name])]
        found[name] = [one / rows * 1e9 for one in all_of_it]
    return found


def cells(case: Case, found: Nanoseconds) -> list[list[str]]:
    """Return rows of the table, under `HEAD`."""
    return [[str(case), name, *(f"{one:.0f}" for one in each)] for name, each in found.items()]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--codecs", default="none,lz4")
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--runs", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
