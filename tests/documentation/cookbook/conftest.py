"""A session for the recipes, and a runner for each test with topics of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import spark_kafka_source
from spark_kafka_source.testing import LocalKafka
from tests.documentation.running import Runner


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """Session of a file's recipes. No other test sees its registrations."""
    session = spark.newSession()
    spark_kafka_source.register(session)
    yield session
    # `createDataFrame` makes its session active in the thread. Spark looks up formats there.
    spark.createDataFrame([], "number int")


@pytest.fixture
def runner(
    session: SparkSession, kafka: LocalKafka, topic: str, tmp_path: Path
) -> Iterator[Runner]:
    """Runner of a recipe's blocks. The test creates the topics that it wants."""
    texts = {"localhost:9092": kafka.bootstrap_servers, "/data/": f"{tmp_path}/"}
    yield Runner(session, topic[-8:], texts)
    for query in session.streams.active:
        query.stop()
