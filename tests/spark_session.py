"""One SparkSession for all tests of `spark` and `parity`, and queries that end with their test."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

import spark_kafka_source
from spark_kafka_source.testing import LocalKafka, peer_jars
from tests.spark.traffic import TIMEOUT_SECONDS, Batches, Events

Start = Callable[..., StreamingQuery]
Run = Callable[[DataFrame, Batches], StreamingQuery]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with the data source registered and the peer at hand; small and silent."""
    directory = tmp_path_factory.mktemp("spark")
    # Spark would else take the python3 on the PATH, which need not have what the tests have.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "OFF")
        .config("spark.jars", ",".join(map(str, peer_jars())))
        .config("spark.python.unix.domain.socket.enabled", "true")
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
    """Starts a query on the test's own checkpoint; those that still run end with the test."""
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
    """Runs a stream on the test's checkpoint up to what is there now, and waits for its end."""

    def run(frame: DataFrame, sink: Batches) -> StreamingQuery:
        query = start(frame.writeStream.foreachBatch(sink).trigger(availableNow=True))
        assert query.awaitTermination(TIMEOUT_SECONDS)
        return query

    return run


@pytest.fixture
def events(kafka: LocalKafka, topic: str) -> Events:
    """A topic of the shared broker, for the test to make."""
    return Events(kafka, topic)
