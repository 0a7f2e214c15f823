"""A session of whichever Spark is installed, and topics on the oldest and the newest Kafka."""

import os
import sys
from collections.abc import Iterator

import pyspark
import pytest
from pyspark.sql import SparkSession

import spark_kafka_source
from spark_kafka_source.testing import LocalKafka
from tests.spark.traffic import Events

OLDEST_KAFKA = "3.9.2"
SPARK_WITH_PEER = "4.2.0"


@pytest.fixture(scope="session")
def session(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """A session as users have it; the one that all tests share where this Spark has the peer."""
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
    """A broker of the oldest Kafka that is supported."""
    with LocalKafka(version=OLDEST_KAFKA) as kafka:
        assert f"Kafka version: {OLDEST_KAFKA} " in kafka.broker(1).log.read_text()
        yield kafka


@pytest.fixture(params=["oldest_kafka", "kafka"])
def events(request: pytest.FixtureRequest, topic: str) -> Events:
    """A topic for the test to make, on either broker."""
    return Events(request.getfixturevalue(request.param), topic)
