"""A query on brokers of each generation of transactions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from spark_kafka_source.producer import Generation, PreparedTransaction
from spark_kafka_source.protocol import Request
from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.testing.memory import MemoryBroker
from spark_kafka_source.testing.memory.cluster import Pending
from spark_kafka_source.testing.memory.transactions import Transaction
from spark_kafka_source.topic_partition import TopicPartition
from tests.exactly_once.judge import Found, found_by_confluent, found_in_memory, judge
from tests.exactly_once.query import Query
from tests.matrix.conftest import OLDEST_KAFKA

PARTITIONS = 4
MARKERS_SECONDS = 150.0
"""Longer than the timeouts of transactions. A driver leaves to these what others have open, where
brokers do not tell it within five seconds what that is."""


PROPERTIES = {
    # What is out of time is aborted soon.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    # Some brokers set the largest number.
    "transaction.max.timeout.ms": "2147483647",
}


_ALONE = PROPERTIES | {
    # The only broker must lead its partitions also after it has stood still. Its coordinator writes
    # no marker to a partition without a leader: see `Cluster.skipped` in tests/reliability.
    "broker.session.timeout.ms": "60000",
}


@pytest.fixture(scope="package")
def second_generation() -> Iterator[LocalKafka]:
    """The newest Kafka with its defaults: `transaction.version` is 2."""
    with LocalKafka(properties=_ALONE) as kafka:
        yield kafka


@pytest.fixture(scope="package")
def first_generation() -> Iterator[LocalKafka]:
    """The newest Kafka with transactions as before KIP-890."""
    with LocalKafka(properties=_ALONE) as kafka:
        kafka.tool("features", "downgrade", "--feature", "transaction.version=1")
        yield kafka


@pytest.fixture(scope="package")
def oldest() -> Iterator[LocalKafka]:
    """The oldest supported Kafka, which also has the former group coordinator."""
    with LocalKafka(version=OLDEST_KAFKA, properties=_ALONE) as kafka:
        yield kafka


@dataclass
class Trial:
    """A query, and a judge of the rows that it has written."""

    query: Query
    find: Callable[[str, str, int], Found]

    def judge(self) -> None:
        """Check that each row is there once, and that no reader waits."""
        query = self.query
        found = self.find(query.servers, query.topic, query.partitions)
        verdict = judge(found, query.written)
        assert verdict.is_good, verdict


REAL_BROKERS = [
    pytest.param("second_generation", marks=pytest.mark.kafka),
    pytest.param("oldest", marks=[pytest.mark.kafka, pytest.mark.long]),
    # The oldest broker speaks the first generation, too.
    pytest.param("first_generation", marks=[pytest.mark.kafka, pytest.mark.reliability_full]),
]
BROKERS = ["in_memory", "in_memory_second", *REAL_BROKERS]


def for_each(*request_types: type[Request[Any]]) -> pytest.MarkDecorator:
    """Run a test once for each of these types of requests, with the argument `request_type`."""
    return pytest.mark.parametrize(
        "request_type", request_types, ids=lambda each: each.__name__.removesuffix("Request")
    )


def in_memory_trial(broker: MemoryBroker, topic: str) -> Trial:
    """A query on a broker in memory."""
    broker.create_topic(topic, PARTITIONS)
    query = Query(str(broker.address()), topic, PARTITIONS)
    query.settings = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 10}
    return Trial(query, partial(found_in_memory, broker))


def transaction_of(broker: MemoryBroker, prepared: PreparedTransaction) -> Transaction:
    """Return the coordinator's state of a transactional id."""
    found: Transaction = broker.cluster.transactions[prepared.transactional_id]
    return found


SECOND_LEVEL = {"transaction.version": 2}


@pytest.fixture(params=Generation, ids=lambda each: each.name.lower())
def broker(request: pytest.FixtureRequest) -> Iterator[MemoryBroker]:
    """Two nodes in memory, of each generation."""
    with MemoryBroker(2) as broker:
        if request.param is Generation.SECOND:
            broker.cluster.features.update(SECOND_LEVEL)
        yield broker


@pytest.fixture
def written(broker: MemoryBroker, topic: str) -> Trial:
    """A query on brokers in memory, of each generation. Its first micro-batch is written."""
    trial = in_memory_trial(broker, topic)
    run = trial.query.start()
    run.commit(0, run.write(0))
    return trial


def commit_offset(
    broker: MemoryBroker, group_id: str, where: TopicPartition, offset: int, metadata: str = ""
) -> None:
    """Commit an offset of a group, as any client may."""
    pending = Pending(offset, next(broker.cluster.commits), metadata)
    broker.cluster.commit(group_id, where, pending)


@pytest.fixture
def in_memory(topic: str) -> Iterator[Trial]:
    """A query on two nodes in memory, of the first generation."""
    with MemoryBroker(2) as broker:
        yield in_memory_trial(broker, topic)


@pytest.fixture
def in_memory_second(topic: str) -> Iterator[Trial]:
    """A query on two nodes in memory, of the second generation."""
    with MemoryBroker(2) as broker:
        broker.cluster.features.update(SECOND_LEVEL)
        yield in_memory_trial(broker, topic)


@pytest.fixture(params=BROKERS)
def trial(request: pytest.FixtureRequest, topic: str) -> Trial:
    """A query on brokers of each generation, and in memory."""
    kafka: LocalKafka | Trial = request.getfixturevalue(request.param)
    if isinstance(kafka, Trial):
        return kafka
    kafka.create_topic(topic, PARTITIONS)
    find = partial(found_by_confluent, patience_seconds=MARKERS_SECONDS)
    return Trial(Query(kafka.bootstrap_servers, topic, PARTITIONS), find)
