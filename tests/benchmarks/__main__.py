"""`make bench`: all benchmarks one after the other, as tables and a plot; some 25 minutes.

    python -m tests.benchmarks [--directory build] [--quick]

Writes `bench.md` and `bench.svg` there. `--quick` tries everything with few rows, for no figures.
See README.md beside this file for how to read them.
"""

import argparse
import datetime
import os
import platform
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from spark_kafka_source.testing import LocalKafka
from tests.benchmarks import cold, distance, memory, planning, scan, trickle
from tests.benchmarks.interleaved import Ratio, Seconds
from tests.benchmarks.session import broker, session
from tests.benchmarks.sources import CEILING, FAST, PEER, PLAIN
from tests.benchmarks.topics import CODECS


@dataclass(frozen=True, slots=True)
class Case:
    """A topic that is scanned."""

    codec: str
    value_bytes: int
    headers: int = 0
    streaming: bool = False

    @property
    def label(self) -> str:
        """As the plot names it."""
        more = (" + headers" if self.headers else "") + (", stream" if self.streaming else "")
        return f"{self.codec} {self.value_bytes} B{more}"


CASES = (
    *(Case(codec, 150) for codec in CODECS),
    Case("lz4", 20),
    Case("lz4", 2048),
    Case("lz4", 150, headers=2),
    Case("lz4", 150, streaming=True),
)


def main() -> None:
    arguments = _arguments()
    directory: Path = arguments.directory
    directory.mkdir(parents=True, exist_ok=True)
    scale = 100 if arguments.quick else 1
    spark = session()
    with (directory / "bench.md").open("w") as report:
        for line in _report(spark, scale, directory):
            print(line, flush=True)
            print(line, file=report, flush=True)
    spark.stop()


def _report(spark: SparkSession, scale: int, directory: Path) -> Iterator[str]:
    yield _machine(spark)
    with broker() as kafka:
        scans = {case: _scan(spark, kafka, case, scale) for case in CASES}
        yield from _table(
            scan.HEAD,
            (scan.cells(_name(case), case.value_bytes, case.headers, found)
             for case, found in scans.items()),
        )  # fmt: skip
        _plot(scans, directory / "bench.svg")
        partitions = (4, 16) if scale > 1 else (4, 16, 64, 256)
        yield from _table(
            trickle.HEAD,
            (trickle.cells(each, trickle.measure(spark, kafka, each)) for each in partitions),
        )
    round_trips = [0.0, 20.0, 50.0]
    rates = distance.measure(
        spark, round_trips, rows=4_000_000 // scale, peer_rows=200_000 // scale
    )
    yield from _table(distance.HEAD, (distance.cells(each, 0.0, rates) for each in round_trips))
    task = memory.measure(4_300_000 // scale, "lz4")
    yield f"memory of a task that reads 4 GiB, MiB above the start: most {max(task):.0f}"
    for name, value in planning.measure(10_000 // scale, 100).items():
        yield f"10,000 partitions on 100 brokers, {name}: {value:,.0f}"
    yield f"import over pyspark's, ms: {sorted(cold.measure(9))[4]:.0f}"


def _scan(spark: SparkSession, kafka: LocalKafka, case: Case, scale: int) -> Seconds:
    rows = 4_000_000 if case.value_bytes <= 150 else 1_000_000
    return scan.measure(
        spark,
        kafka,
        codec=case.codec,
        rows=rows // scale,
        value_bytes=case.value_bytes,
        headers=case.headers,
        streaming=case.streaming,
    )


def _name(case: Case) -> str:
    return case.codec + (", stream" if case.streaming else "")


def _machine(spark: SparkSession) -> str:
    today = datetime.datetime.now(tz=datetime.UTC).date()
    return (
        f"{today:%d %B %Y}, {os.cpu_count()} cores ({platform.machine()}), "
        f"Spark {spark.version}, Python {platform.python_version()}, pyarrow {pa.__version__}"
    )


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    head = list(head)
    yield ""
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def _plot(scans: dict[Case, Seconds], path: Path) -> None:
    import matplotlib as mpl  # noqa: PLC0415 - of the extra `bench`

    mpl.use("svg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    bars = [("plain", PLAIN, "#8fb8de"), ("fast", FAST, "#2f6fab"), ("ready-made", CEILING, "#ccc")]
    for index, (label, name, colour) in enumerate(bars):
        drawn = [(at, found) for at, found in enumerate(scans.values()) if name in found]
        ratios = [Ratio.of(found, PEER, name) for _, found in drawn]
        axes.bar(
            [at + 0.27 * (index - 1) for at, _ in drawn],
            [each.median for each in ratios],
            width=0.25,
            label=label,
            color=colour,
            yerr=[
                [each.median - each.least for each in ratios],
                [each.most - each.median for each in ratios],
            ],
        )
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xticks(range(len(scans)), [case.label for case in scans], rotation=30, ha="right")
    axes.set_ylabel("times as fast as Spark's own connector")
    axes.legend()
    figure.savefig(path)
    plt.close(figure)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, default=Path("build"))
    parser.add_argument("--quick", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
