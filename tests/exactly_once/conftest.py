"""Brokers of each generation of transactions, and a query on each."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pytest

from spark_kafka_source.producer import PreparedTransaction
from spark_kafka_source.testing import LocalKafka
from tests.exactly_once.judge import Found, found_by_confluent, found_in_memory, judge
from tests.exactly_once.query import Query
from tests.matrix.conftest import OLDEST_KAFKA
from tests.memory_broker import MemoryBroker
from tests.memory_broker.transactions import Transaction

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

    query: Query
    find: Callable[[str, str, int], Found]

    def judge(self) -> None:
        """Each row is there once, and no reader waits."""
        query = self.query
        found = self.find(query.servers, query.topic, query.partitions)
        verdict = judge(found, query.written)
        assert verdict.is_good, verdict


REAL_BROKERS = [
    pytest.param(name, marks=[pytest.mark.kafka, pytest.mark.slow])
    for name in ("second_generation", "first_generation", "oldest")
]
BROKERS = ["in_memory", *REAL_BROKERS]


def in_memory_trial(broker: MemoryBroker, topic: str) -> Trial:
    """A query on a broker in memory."""
    broker.create_topic(topic, PARTITIONS)
    query = Query(str(broker.address()), topic, PARTITIONS)
    query.settings = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 10}
    return Trial(query, partial(found_in_memory, broker))


def transaction_of(broker: MemoryBroker, prepared: PreparedTransaction) -> Transaction:
    """What the coordinator keeps of it."""
    found: Transaction = broker.cluster.transactions[prepared.transactional_id]
    return found


@pytest.fixture
def in_memory(topic: str) -> Iterator[Trial]:
    """A query on two nodes in memory."""
    with MemoryBroker(2) as broker:
        yield in_memory_trial(broker, topic)


@pytest.fixture(params=BROKERS)
def trial(request: pytest.FixtureRequest, topic: str) -> Trial:
    """A query on brokers of each generation, and in memory."""
    kafka: LocalKafka | Trial = request.getfixturevalue(request.param)
    if isinstance(kafka, Trial):
        return kafka
    kafka.create_topic(topic, PARTITIONS)
    return Trial(Query(kafka.bootstrap_servers, topic, PARTITIONS), found_by_confluent)
