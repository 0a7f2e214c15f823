"""Transactions and random answers: readers see the committed transactions in full.

EXAMPLES=2000 in the environment runs more examples than the default.
"""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_kafka_source.errors import KafkaError, error_named
from spark_kafka_source.producer import KafkaProducer
from spark_kafka_source.protocol.messages.produce import InitProducerIdRequest, ProduceRequest
from spark_kafka_source.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
)
from spark_kafka_source.testing.memory import Action, MemoryBroker
from tests.producer.test_producer_model import (
    EXAMPLES,
    PARTITIONS,
    answers,
    batch_sizes,
    in_flight,
    is_written,
)
from tests.producer.writing import IN_TIME, committed_values, producing

pytestmark = pytest.mark.memory(topics={"t": 1})

COORDINATORS = (AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest)

healing = st.one_of(
    st.just(Action.HANDLE),
    st.sampled_from([Action.LOSE, Action.CLOSE]),
    st.sampled_from(
        ["CONCURRENT_TRANSACTIONS", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"]
    ).map(error_named),
)
# The number of records, whether to wait for all, and whether to commit.
transactions = st.tuples(st.integers(0, 8), st.booleans(), st.booleans())


def popping(drawn: list[Any]) -> Callable[[Any], Any]:
    return lambda _: drawn.pop() if drawn else Action.HANDLE


def leader_of(broker: MemoryBroker, drawn: list[Any]) -> Callable[[ProduceRequest], Any]:
    """Answer with the next drawn answer, or truly where the drawn one would be false."""

    def respond(request: ProduceRequest) -> Any:
        answer = drawn.pop() if drawn else Action.HANDLE
        is_lie = not isinstance(answer, Action) and is_written(broker, request)
        return Action.HANDLE if is_lie else answer

    return respond


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(
    st.lists(transactions, min_size=1, max_size=8),
    st.lists(answers, max_size=20),
    st.lists(healing, max_size=12),
    batch_sizes,
    in_flight,
)
def test_readers_see_what_was_committed_and_nothing_else(
    taken: list[tuple[int, bool, bool]],
    of_leaders: list[Any],
    of_coordinators: list[Any],
    batch_size: int,
    most_in_flight: int,
) -> None:
    expected: dict[int, list[bytes]] = {each: [] for each in range(PARTITIONS)}
    with MemoryBroker(2) as broker:
        logs = broker.create_topic("t", PARTITIONS)
        broker.control(ProduceRequest, leader_of(broker, of_leaders), times=None)
        for each in COORDINATORS:
            broker.control(each, popping(of_coordinators), times=None)
        with producing(
            broker,
            transactional_id="x",
            batch_size=batch_size,
            max_in_flight_requests_per_connection=most_in_flight,
        ) as producer:
            producer.init_transactions()
            for number, (count, waits, commits) in enumerate(taken):
                producer.begin_transaction()
                sent = [(each % PARTITIONS, b"%d %d" % (number, each)) for each in range(count)]
                if ended(producer, sent, waits=waits, commits=commits):
                    for partition, value in sent:
                        expected[partition].append(value)
        for partition, log in enumerate(logs):
            assert committed_values(log) == expected[partition]
        assert broker.cluster.transactions["x"].state != "Ongoing"


def ended(
    producer: KafkaProducer, sent: list[tuple[int, bytes]], *, waits: bool, commits: bool
) -> bool:
    """Return whether the transaction was committed."""
    try:
        futures = [producer.send("t", value, partition=partition) for partition, value in sent]
        if waits:
            producer.flush(IN_TIME)
        if commits:
            producer.commit_transaction()
            assert all(each.exception(0) is None for each in futures)
            return True
    except KafkaError:
        pass
    producer.abort_transaction()
    return False
