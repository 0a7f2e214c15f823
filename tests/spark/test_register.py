"""Registration of the source in a session: automatic or explicit, without a warning."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.settings import BOOTSTRAP_SERVERS
from tools.traffic import Events

GIVEN = BOOTSTRAP_SERVERS | {"subscribe": "a"}
PROJECT = Path(__file__).parents[2]
REGISTERING = """
import sys
from pyspark.sql import SparkSession
import spark_kafka_source
from spark_kafka_source import KafkaDataSource

class Other(KafkaDataSource):
    pass

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()

def step(name, register, *arguments):
    sys.stderr.write(f"step {name}\\n")
    register(*arguments)
    frame = spark.read.format("pykafka").option("kafka.bootstrap.servers", "a:1")
    print(name, len(frame.option("subscribe", "a").load().columns))

step("found", spark_kafka_source.register, spark)
step("again", spark_kafka_source.register, spark)
step("other", spark.dataSource.register, Other)
step("back", spark_kafka_source.register, spark)
step("last", spark_kafka_source.register, spark)
"""


@pytest.mark.long
@pytest.mark.spark
def test_what_is_known_already_is_not_registered_again() -> None:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "PYSPARK_PYTHON": sys.executable}
    ended = subprocess.run(
        [sys.executable, "-c", REGISTERING],
        env=environment,
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    said = {}
    for step in ended.stderr.split("step ")[1:]:
        name, _, lines = step.partition("\n")
        said[name] = "replaced a" in lines
    # Spark warns if another class replaces the source. So the test can tell the steps apart.
    assert said == {"found": False, "again": False, "other": True, "back": True, "last": False}
    assert ended.stdout.splitlines() == [f"{name} 7" for name in said]


@pytest.mark.spark
def test_a_misspelt_option_is_an_error_on_the_driver_at_load(spark: SparkSession) -> None:
    reader = spark.read.format("pykafka").options(**GIVEN).option("startingOffset", "earliest")
    with pytest.raises(Exception, match=r"Did you mean 'startingOffsets'\?"):
        reader.load()
    assert reader.option("unknownOptions", "warn").load().columns


@pytest.mark.spark
@pytest.mark.kafka
def test_a_table_names_the_ways_that_work(spark: SparkSession, events: Events) -> None:
    """Spark stores a table's options, and hands none of them to a Python data source."""
    events.fill(3)
    address = events.kafka.bootstrap_servers
    spark.sql(
        f"CREATE TABLE t USING pykafka OPTIONS (`kafka.bootstrap.servers` '{address}', "
        f"subscribe '{events.name}')"
    )
    try:
        with pytest.raises(Exception, match="CREATE TEMPORARY VIEW") as failed:
            spark.table("t").collect()
        with pytest.raises(Exception, match="CREATE TEMPORARY VIEW"):
            spark.sql("INSERT INTO t SELECT * FROM t")
        ways = (
            str(failed.value).replace("host:port", address).replace("'events'", f"'{events.name}'")
        )
        view = re.search(r"CREATE TEMPORARY VIEW .*?\)", ways)
        query = re.search(r"SELECT \* FROM t WITH \(.*?\)", ways)
        assert view is not None
        assert query is not None
        spark.sql(view[0])
        assert spark.table("v").count() == 3
        assert spark.sql(query[0]).count() == 3
    finally:
        spark.sql("DROP TABLE t")
        spark.catalog.dropTempView("v")


@pytest.mark.spark
def test_what_spark_adds_to_the_options_is_no_error(spark: SparkSession) -> None:
    names = {**GIVEN, "startingOffsetsByTimestampStrategy": "latest", "failOnDataLoss": "false"}
    given = ", ".join(f"`{name}` '{value}'" for name, value in names.items())
    assert spark.read.format("pykafka").options(**GIVEN).load(["x", "y"]).columns
    spark.sql(f"CREATE TABLE of_kafka USING pykafka OPTIONS ({given}) COMMENT 'x'")
    try:
        assert spark.table("of_kafka").columns
    finally:
        spark.sql("DROP TABLE of_kafka")
