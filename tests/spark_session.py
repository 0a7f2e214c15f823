"""One SparkSession for all tests of `spark` and `parity`. Queries end with their test."""

import logging
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

import spark_kafka_source
from spark_kafka_source.testing import LocalKafka, peer_jars
from tools.traffic import TIMEOUT_SECONDS, Batches, Events

SPARK_WITH_PEER = "4.2.0"
"""The newest Spark whose own Kafka connector is published."""

Start = Callable[..., StreamingQuery]
Run = Callable[[DataFrame, Batches], StreamingQuery]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Run a small, silent session with our data source, and Spark's own Kafka source if it fits."""
    # A function of a query may fail after its test has stopped it. What the thread that called it
    # says of that must not be in the log of the next test.
    logging.getLogger("py4j").propagate = False
    directory = tmp_path_factory.mktemp("spark")
    # Otherwise Spark would use the python3 on the PATH, which may lack the tests' packages.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    peer = peer_jars() if pyspark.__version__ == SPARK_WITH_PEER else []
    session = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "OFF")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.jars", ",".join(map(str, peer)))
        .config("spark.python.unix.domain.socket.enabled", "true")
        # By default Python has 15 seconds to fetch the rows of `collect`, also on a busy machine.
        .config("spark.python.authenticate.socketTimeout", "10m")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
        .config("spark.sql.streaming.checkpointLocation", str(directory / "checkpoints"))
        .getOrCreate()
    )
    spark_kafka_source.register(session)
    yield session
    session.stop()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts a query on the test's checkpoint. The test's end stops it."""
    started: list[StreamingQuery] = []

    def start(writer: DataStreamWriter, checkpoint: str = "checkpoint") -> StreamingQuery:
        query = writer.option("checkpointLocation", str(tmp_path / checkpoint)).start()
        started.append(query)
        return query

    yield start
    for query in started:
        query.stop()


@pytest.fixture
def run(start: Start) -> Run:
    """Return a function that runs a stream on the test's checkpoint up to the present end."""

    def run(frame: DataFrame, sink: Batches) -> StreamingQuery:
        query = start(frame.writeStream.foreachBatch(sink).trigger(availableNow=True))
        assert query.awaitTermination(TIMEOUT_SECONDS)
        return query

    return run


@pytest.fixture
def events(kafka: LocalKafka, topic: str) -> Events:
    """Return a topic of the shared broker that the test creates."""
    return Events(kafka, topic)
