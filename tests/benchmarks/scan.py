"""`make bench`: seconds to scan a topic into the noop sink, ours and Spark's own connector in turn.

    python -m tests.benchmarks.scan [--rows N] [--value-bytes N] [--codecs none,lz4] [--runs N]
                                    [--default-settings]

Prints, for each codec, the medians, and the ratio of the peer's time to ours pair by pair: median,
least and most. Only the ratio means much: the machine's speed drifts, but for both alike.
"""

import argparse
import os
import statistics
import sys
import time

from pyspark.sql import SparkSession

import spark_kafka_source
from spark_kafka_source.testing import LocalKafka, peer_jars
from tests.benchmarks.topics import CODECS, PARTITIONS, fill

_FORMATS = ("kafka", "pykafka")
# Without what makes the JVM start quickly and run slowly.
_BROKER_JAVA_OPTIONS = ("-Xmx1g",)


def main() -> None:
    arguments = _arguments()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = _session(recommended=not arguments.default_settings)
    with LocalKafka(java_options=_BROKER_JAVA_OPTIONS) as kafka:
        print(
            f"Spark {spark.version}, {arguments.rows} rows of {arguments.value_bytes} B in "
            f"{PARTITIONS} partitions, {arguments.runs} runs of each in turn, medians"
        )
        print(f"{'codec':8} {'peer s':>8} {'ours s':>8} {'ratio':>8} {'least':>8} {'most':>8}")
        for codec in arguments.codecs.split(","):
            topic = f"scan-{codec}"
            kafka.create_topic(topic, partitions=PARTITIONS)
            fill(
                kafka.bootstrap_servers,
                topic,
                rows=arguments.rows,
                value_bytes=arguments.value_bytes,
                codec=codec,
            )
            _print_row(codec, _measure(spark, kafka.bootstrap_servers, topic, arguments.runs))
            kafka.delete_topic(topic)
    spark.stop()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--value-bytes", type=int, default=150)
    parser.add_argument("--codecs", default=",".join(CODECS))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--default-settings", action="store_true", help="Spark's own defaults")
    return parser.parse_args()


def _session(*, recommended: bool) -> SparkSession:
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("scan")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.memory", "4g")
        .config("spark.jars", ",".join(map(str, peer_jars())))
        .config("spark.python.unix.domain.socket.enabled", str(recommended).lower())
        .getOrCreate()
    )
    spark_kafka_source.register(spark)
    return spark


def _measure(
    spark: SparkSession, bootstrap_servers: str, topic: str, runs: int
) -> dict[str, list[float]]:
    """Seconds of each run by format; one run of each first, not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in _FORMATS}
    for run in range(runs + 1):
        for name in _FORMATS:
            taken = _scan_seconds(spark, name, bootstrap_servers, topic)
            if run:
                seconds[name].append(taken)
    return seconds


def _scan_seconds(spark: SparkSession, name: str, bootstrap_servers: str, topic: str) -> float:
    rows = (
        spark.read.format(name)
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", topic)
        .load()
    )
    started = time.perf_counter()
    rows.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - started


def _print_row(codec: str, seconds: dict[str, list[float]]) -> None:
    peer, ours = seconds["kafka"], seconds["pykafka"]
    ratios = [theirs / own for theirs, own in zip(peer, ours, strict=True)]
    print(
        f"{codec:8} {statistics.median(peer):8.2f} {statistics.median(ours):8.2f} "
        f"{statistics.median(ratios):8.2f} {min(ratios):8.2f} {max(ratios):8.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
