"""Cost of a round trip between executors and brokers: a scan through a delaying proxy.

    python -m tools.benchmarks.distance [--rows N] [--peer-rows N] [--runs N]
                                        [--round-trips 0,20,50]

Prints rows per second of each way at each round trip, and their share of the rate without delay:
median (least-most) of the turns. All scans go through the proxy, also those without delay.
"""

import argparse
import statistics
import time
from collections.abc import Mapping

from pyspark.sql import SparkSession

from spark_kafka_source.testing.ports import free_ports
from tools.benchmarks.delay import delayed
from tools.benchmarks.session import broker, session
from tools.benchmarks.sources import PEER, PLAIN
from tools.benchmarks.topics import PARTITIONS, fill

HEAD = ("round trip ms", "peer rows/s", "ours rows/s", "peer part", "ours part")
CODEC, VALUE_BYTES = "lz4", 150

Rates = Mapping[tuple[str, float], list[float]]
"""Rows per second of each run, by way and round trip in ms."""


def main() -> None:
    arguments = _arguments()
    spark = session()
    round_trips = [float(each) for each in arguments.round_trips.split(",")]
    found = measure(
        spark,
        round_trips,
        rows=arguments.rows,
        peer_rows=arguments.peer_rows,
        runs=arguments.runs,
    )
    print("".join(f"{each:>18}" for each in HEAD))
    for round_trip in round_trips:
        print("".join(f"{each:>18}" for each in cells(round_trip, round_trips[0], found)))
    spark.stop()


def measure(
    spark: SparkSession, round_trips: list[float], *, rows: int, peer_rows: int, runs: int = 3
) -> Rates:
    """Run all ways at all round trips in turn. The peer reads fewer rows, to save minutes."""
    (port,) = free_ports(1)
    found: dict[tuple[str, float], list[float]] = {}
    with broker(advertised_ports=(port,)) as kafka:
        target = kafka.broker(1).node.client_port
        sizes = {PEER: peer_rows, PLAIN: rows}
        with delayed(port, target, 0):
            for name, count in sizes.items():
                kafka.create_topic(name, partitions=PARTITIONS)
                fill(f"127.0.0.1:{port}", name, rows=count, value_bytes=VALUE_BYTES, codec=CODEC)
        for turn in range(runs + 1):
            for round_trip in round_trips:
                with delayed(port, target, round_trip):
                    for name, count in sizes.items():
                        seconds = _scan_seconds(spark, name, port)
                        if turn:
                            found.setdefault((name, round_trip), []).append(count / seconds)
    return found


def cells(round_trip: float, undelayed: float, found: Rates) -> list[str]:
    """Return one row of the table, under `HEAD`."""
    rates = [f"{statistics.median(found[name, round_trip]):,.0f}" for name in (PEER, PLAIN)]
    return [
        f"{round_trip:g}",
        *rates,
        *(part(found, name, round_trip, undelayed) for name in (PEER, PLAIN)),
    ]


def part(found: Rates, name: str, round_trip: float, undelayed: float) -> str:
    """Return the delayed rate divided by the undelayed rate, turn by turn."""
    pairs = zip(found[name, round_trip], found[name, undelayed], strict=True)
    parts = [delayed / fast for delayed, fast in pairs]
    return f"{statistics.median(parts):.2f} ({min(parts):.2f}-{max(parts):.2f})"


def _scan_seconds(spark: SparkSession, name: str, port: int) -> float:
    rows = (
        spark.read.format(name)
        .option("kafka.bootstrap.servers", f"127.0.0.1:{port}")
        .option("subscribe", name)
        .load()
    )
    started = time.perf_counter()
    rows.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - started


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--peer-rows", type=int, default=200_000)
    parser.add_argument("--round-trips", default="0,20,50", help="in ms; the first undelayed")
    parser.add_argument("--runs", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
