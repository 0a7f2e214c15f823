"""Spark session and broker of the benchmarks."""

import os
import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession

from spark_kafka_source.testing import LocalKafka, peer_jars
from spark_kafka_source.testing.jars import resolve
from tools.benchmarks import sources

# Without the options that make the JVM start quickly and run slowly.
BROKER_JAVA_OPTIONS = ("-Xmx1g",)


def session(
    *, recommended: bool = True, cores: int = 2, more_jars: Sequence[str] = ()
) -> SparkSession:
    """Start a session with the peer and all sources, with docs/tuning.md's or Spark's settings."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    jars = [*peer_jars(), *(resolve(more_jars, transitive=False) if more_jars else ())]
    spark = (
        SparkSession.builder.master(f"local[{cores}]")
        .appName("benchmarks")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.memory", "4g")
        .config("spark.jars", ",".join(map(str, jars)))
        .config("spark.python.unix.domain.socket.enabled", str(recommended).lower())
        .getOrCreate()
    )
    sources.register(spark)
    return spark


def broker(**values: object) -> LocalKafka:
    """Start a broker. Its JVM has a server's settings."""
    return LocalKafka(java_options=BROKER_JAVA_OPTIONS, **values)  # type: ignore[arg-type]  # its own
