"""Brokers of each generation of transactions, and a query on each."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from spark_kafka_source.testing import LocalKafka
from tests.exactly_once.judge import judge
from tests.exactly_once.query import Query
from tests.matrix.conftest import OLDEST_KAFKA

PARTITIONS = 4
# What is out of time is aborted soon.
PROPERTIES = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}


@pytest.fixture(scope="package")
def second_generation() -> Iterator[LocalKafka]:
    """The newest Kafka, as it comes: `transaction.version` is 2."""
    with LocalKafka(properties=PROPERTIES) as kafka:
        yield kafka


@pytest.fixture(scope="package")
def first_generation() -> Iterator[LocalKafka]:
    """The newest Kafka with the transactions of before KIP-890."""
    with LocalKafka(properties=PROPERTIES) as kafka:
        kafka.tool("features", "downgrade", "--feature", "transaction.version=1")
        yield kafka


@pytest.fixture(scope="package")
def oldest() -> Iterator[LocalKafka]:
    """The oldest Kafka that is supported, which has the former coordinator of groups, too."""
    with LocalKafka(version=OLDEST_KAFKA, properties=PROPERTIES) as kafka:
        yield kafka


@dataclass
class Trial:
    """A query, and the judge of what it has written."""

    kafka: LocalKafka
    query: Query

    def judge(self) -> None:
        """Each row is there once, and no reader waits."""
        query = self.query
        verdict = judge(query.servers, query.topic, query.partitions, query.written)
        assert verdict.is_good, verdict


@pytest.fixture(params=["second_generation", "first_generation", "oldest"])
def trial(request: pytest.FixtureRequest, topic: str) -> Trial:
    """A query on brokers of each generation."""
    kafka: LocalKafka = request.getfixturevalue(request.param)
    kafka.create_topic(topic, PARTITIONS)
    return Trial(kafka, Query(kafka.bootstrap_servers, topic, PARTITIONS))
