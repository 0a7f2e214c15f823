"""A declarative pipeline that reads and writes topics, run as users do: `spark-pipelines run`."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pyspark
import pytest

from spark_kafka_source.testing import LocalKafka
from tests.matrix.test_smoke import FROM_SPARK_4_2, committed, exactly
from tests.spark.sink.written import texts
from tools.traffic import Events

for each in ("pandas", "grpc_status"):
    pytest.importorskip(each, reason="Spark Connect needs it: see the extra `matrix`")

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.skipif(
        pyspark.__version__.startswith("4.0."), reason="Spark has pipelines since 4.1"
    ),
]

# No `register`: Spark finds the format by itself.
PIPELINE = """
from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()

@dp.table
def events() -> DataFrame:
    return spark.readStream.format("pykafka").options(**{source}).load()

@dp.materialized_view
def totals() -> DataFrame:
    rows = spark.read.format("pykafka").options(**{batch}).load()
    return rows.groupBy("partition").count()

dp.create_sink("copy", "pykafka", {copy})

@dp.append_flow(target="copy")
def copied() -> DataFrame:
    return spark.readStream.table("events").select("value")
"""
SPECIFICATION = """
name: of-the-test
storage: {storage}
libraries:
  - glob:
      include: transformations/**
"""
CONFIGURATION = {
    # Another catalog forgets the tables of the first run.
    "spark.sql.catalogImplementation": "hive",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def run(project: Path) -> None:
    """Run the pipeline of this directory up to the present end of its topics."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [str(Path(pyspark.__file__).with_name("bin") / "spark-pipelines"), "run"]
    for name, value in CONFIGURATION.items():
        command += ["--conf", f"{name}={value}"]
    done = subprocess.run(
        command,
        env=environment,
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def totals(project: Path) -> dict[int, int]:
    """Return the rows of each partition, as the materialized view has them."""
    table = pyarrow.parquet.read_table(project / "spark-warehouse" / "totals")
    return {row["partition"]: row["count"] for row in table.to_pylist()}


def test_a_pipeline_reads_and_writes_topics_and_goes_on(
    kafka: LocalKafka, topic: str, tmp_path: Path
) -> None:
    events = Events(kafka, topic)
    events.fill(3, 2)
    copy = events.another("copy")
    copy.create(2)
    source = events.options() | {"kafka.group.id": events.name}
    sink = {name: str(value) for name, value in exactly(copy).items()}  # It takes texts alone.
    (tmp_path / "transformations").mkdir()
    (tmp_path / "transformations" / "topics.py").write_text(
        PIPELINE.format(source=source, batch=events.options(), copy=sink)
    )
    (tmp_path / "spark-pipeline.yml").write_text(
        SPECIFICATION.format(storage=(tmp_path / "storage").as_uri())
    )
    run(tmp_path)
    rows = ["0:0", "0:1", "0:2", "1:0", "1:1"]
    assert texts(copy) == rows
    assert totals(tmp_path) == {0: 3, 1: 2}
    if FROM_SPARK_4_2:  # Before 4.2, Spark reports a micro-batch when it plans the next one.
        assert committed(events) == [3, 2]
    events.write(["later"], 1)
    run(tmp_path)
    assert texts(copy) == [*rows, "later"]
    assert totals(tmp_path) == {0: 3, 1: 3}
