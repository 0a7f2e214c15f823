"""A session of the installed Spark, and topics on brokers of three versions of Kafka."""

import os
import sys
from collections.abc import Iterator

import pyspark
import pytest
from pyspark.sql import SparkSession

import spark_kafka_source
from spark_kafka_source.testing import LocalKafka
from tests.spark_session import SPARK_WITH_PEER
from tools.traffic import Events

OLDEST_KAFKA, FORMER_KAFKA = "3.9.2", "4.3.1"


@pytest.fixture(scope="session")
def session(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """Return a user's session: the shared one if this Spark has Spark's own Kafka source."""
    if pyspark.__version__ == SPARK_WITH_PEER:
        yield request.getfixturevalue("spark")
        return
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    spark_kafka_source.register(session)
    yield session
    session.stop()


@pytest.fixture(scope="package")
def oldest_kafka() -> Iterator[LocalKafka]:
    """Run a broker of the oldest supported Kafka."""
    with LocalKafka(version=OLDEST_KAFKA) as kafka:
        assert f"Kafka version: {OLDEST_KAFKA} " in kafka.broker(1).log.read_text()
        yield kafka


@pytest.fixture(scope="package")
def former_kafka() -> Iterator[LocalKafka]:
    """Run a broker of the Kafka before the newest."""
    with LocalKafka(version=FORMER_KAFKA) as kafka:
        yield kafka


@pytest.fixture(params=["oldest_kafka", "former_kafka", "kafka"])
def events(request: pytest.FixtureRequest, topic: str) -> Events:
    """Return a topic that the test creates, on each broker."""
    return Events(request.getfixturevalue(request.param), topic)
