"""The Spark session and the broker that benchmarks run in."""

import os
import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession

from spark_kafka_source.testing import LocalKafka, peer_jars
from spark_kafka_source.testing.jars import resolve
from tests.benchmarks import sources

# Without what makes the JVM start quickly and run slowly.
BROKER_JAVA_OPTIONS = ("-Xmx1g",)


def session(
    *, recommended: bool = True, cores: int = 2, more_jars: Sequence[str] = ()
) -> SparkSession:
    """With the peer and all sources at hand; in the settings of docs/tuning.md, or Spark's own."""
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
    """A broker with a JVM as servers have it."""
    return LocalKafka(java_options=BROKER_JAVA_OPTIONS, **values)  # type: ignore[arg-type]  # its own
