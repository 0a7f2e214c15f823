"""`make bench`: all benchmarks of reading. They take some 35 minutes and write their page.

    python -m tools.benchmarks [--page PAGE] [--only scans,curves] [--quick]

Each table goes into the page right after its measurement. The plots go into `docs/images`.
`--quick` runs everything with few rows and does not write the page. README.md in this folder
explains the figures.
"""

import argparse
import datetime
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.testing.jars import KAFKA_VERSION
from tools.benchmarks import (
    bars,
    clients,
    cold,
    distance,
    memory,
    planning,
    plots,
    processors,
    scan,
    trickle,
)
from tools.benchmarks.page import table
from tools.benchmarks.scan import Case
from tools.benchmarks.session import BROKER_JAVA_OPTIONS, broker, session
from tools.benchmarks.topics import CODECS
from tools.marks import Marks

DOCS = Path(__file__).parents[2] / "docs"
PLOTS = DOCS / "images"
CASES = (
    *(Case(codec) for codec in CODECS),
    Case("lz4", 20),
    Case("lz4", 2048, rows=1_000_000),
    Case("lz4", headers=2, rows=2_000_000),
    Case("lz4", streaming="whole"),
    Case("lz4", streaming="micro-batches"),
)
_CURVE_ROWS = 1_000_000
CURVES: Mapping[str, Sequence[tuple[int, Case]]] = {
    "rows": [(rows, Case("lz4", rows=rows)) for rows in (250_000, 1_000_000, 4_000_000)],
    "bytes of a value": [
        (size, Case("lz4", size, rows=_CURVE_ROWS)) for size in (20, 150, 600, 2048)
    ],
    "partitions": [
        (count, Case("lz4", rows=_CURVE_ROWS, partitions=count)) for count in (1, 4, 16, 64)
    ],
}
"""For each growing quantity: its values, and the scanned case of each value."""


def main() -> None:
    arguments = _arguments()
    spark = session()
    scale = 100 if arguments.quick else 1
    for name in arguments.only.split(","):
        text = "\n".join([_about(spark, name), "", *_SECTIONS[name](spark, scale)])
        print(text, flush=True)
        if not arguments.quick:
            marks(name).write(arguments.page, text)
            if name == "scans":
                bars.draw(arguments.page)
    spark.stop()


def marks(name: str) -> Marks:
    """Return the two lines around a section of the page."""
    return Marks(f"<!-- {name}: written by make bench -->", f"<!-- end of {name} -->")


def _about(spark: SparkSession, name: str) -> str:
    today = datetime.datetime.now(tz=datetime.UTC).date()
    return (
        f"*{today.day} {today:%B %Y}, `python -m tools.benchmarks --only {name}`: "
        f"Spark {spark.version}, Kafka {KAFKA_VERSION}, Python {platform.python_version()}, "
        f"pyarrow {version('pyarrow')}, numba {version('numba')}, {os.cpu_count()} cores "
        f"({platform.machine()}), load {os.getloadavg()[0]:.1f} at the start.*"
    )


def _smaller(case: Case, scale: int) -> Case:
    return replace(case, rows=case.rows // scale)


def _scans(spark: SparkSession, scale: int) -> Iterator[str]:
    cases = [_smaller(case, scale) for case in CASES]
    with broker() as kafka:
        found = {case: scan.measure(spark, kafka, case) for case in cases}
    yield from table(scan.HEAD, (scan.cells(case, each) for case, each in found.items()))


def _processors(spark: SparkSession, scale: int) -> Iterator[str]:
    rows: list[list[str]] = []
    with broker() as kafka:
        for case in (*map(Case, CODECS), Case("lz4", 2048, rows=1_000_000)):
            smaller = _smaller(case, scale)
            rows += processors.cells(smaller, processors.measure(spark, kafka, smaller))
    yield from table(processors.HEAD, rows)


def _clients(_: SparkSession, scale: int) -> Iterator[str]:
    cases = [
        _smaller(Case(codec, rows=2_000_000, partitions=1), scale)
        for codec in ("none", "lz4", "zstd")
    ]
    with broker() as kafka:
        found = [clients.cells(case, clients.measure(kafka, case)) for case in cases]
    yield from table(clients.HEAD, found)


def _curves(spark: SparkSession, scale: int) -> Iterator[str]:
    found: dict[str, list[plots.Point]] = {}
    with broker() as kafka:
        for name, points in CURVES.items():
            found[name] = [_point(spark, kafka, at, _smaller(case, scale)) for at, case in points]
    found["brokers"] = []
    for count in (1, 3):
        with LocalKafka(count, java_options=BROKER_JAVA_OPTIONS) as kafka:
            case = _smaller(Case("lz4", rows=_CURVE_ROWS, partitions=12), scale)
            found["brokers"].append(_point(spark, kafka, count, case))
    plots.curves(found, PLOTS / "curves.svg")
    rows = (point.cells(name) for name, points in found.items() for point in points)
    yield from table(plots.HEAD, rows)


def _point(spark: SparkSession, kafka: LocalKafka, at: int, case: Case) -> plots.Point:
    return plots.Point(at, case.rows, scan.measure(spark, kafka, case, runs=3))


def _trickle(spark: SparkSession, scale: int) -> Iterator[str]:
    counts = (4, 16) if scale > 1 else (4, 16, 64, 256)
    with broker() as kafka:
        found = {each: trickle.measure(spark, kafka, each) for each in counts}
    yield from table(trickle.HEAD, (trickle.cells(each, took) for each, took in found.items()))


def _distance(spark: SparkSession, scale: int) -> Iterator[str]:
    round_trips = [0.0, 20.0, 50.0]
    sizes = {"rows": 4_000_000 // scale, "peer_rows": 100_000 // scale}
    rates = distance.measure(spark, round_trips, **sizes)
    yield from table(distance.HEAD, (distance.cells(each, 0.0, rates) for each in round_trips))


def _alone(_: SparkSession, scale: int) -> Iterator[str]:
    rows = (4 << 30) // memory.VALUE_BYTES // scale
    most = max(memory.measure(rows, "lz4"))
    found = {"a task that reads 4 GiB of one partition, MiB above the start, the most": most}
    for name, value in planning.measure(10_000 // scale, 100).items():
        found[f"10,000 partitions on 100 brokers in memory: {name}"] = value
    for step, module in cold.STEPS.items():
        found[f"importing for {step}, ms over pyspark's own"] = median(cold.measure(module, 9))
    yield from table(("what", "figure"), ([name, f"{one:,.0f}"] for name, one in found.items()))


_SECTIONS: Mapping[str, Callable[[SparkSession, int], Iterator[str]]] = {
    "scans": _scans,
    "processors": _processors,
    "clients": _clients,
    "curves": _curves,
    "trickle": _trickle,
    "distance": _distance,
    "alone": _alone,
}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--page", type=Path, default=DOCS / "contributors" / "measured" / "reading-speed.md"
    )
    parser.add_argument("--only", default=",".join(_SECTIONS))
    parser.add_argument("--quick", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
