"""Decided transactions that leaders and coordinators tell otherwise: somebody's tool, or a race."""

import pytest

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import error_named
from spark_kafka_source.exactly_once.decision import Outcome
from spark_kafka_source.exactly_once.errors import NothingSeenError
from spark_kafka_source.exactly_once.repair import finish, last_outcomes
from spark_kafka_source.producer import PreparedTransaction
from spark_kafka_source.protocol.messages.describe_producers import DescribeProducersRequest
from spark_kafka_source.testing.memory import Action, MemoryBroker
from tests.exactly_once.conftest import Trial, in_memory_trial, transaction_of
from tests.exactly_once.dying import decided
from tests.exactly_once.query import client_of


@pytest.fixture
def trial(broker: MemoryBroker, topic: str) -> Trial:
    return in_memory_trial(broker, topic)


def abort_in_part(broker: MemoryBroker, prepared: PreparedTransaction) -> None:
    """As `kafka-transactions.sh abort` does, in a partition that does not have the place."""
    assert prepared.place is not None
    partitions = transaction_of(broker, prepared).partitions
    where = next(each for each in sorted(partitions) if each != prepared.place.topic_partition)
    log = broker.cluster.log(*where)
    assert log is not None
    log.append_marker(prepared.producer.producer_id, commit=False)
    log.producers[prepared.producer.producer_id].transaction_start = None


def test_what_a_tool_has_ended_in_part_is_not_finished_without_a_word(
    broker: MemoryBroker, trial: Trial
) -> None:
    """Its place would tell that it is committed. The query itself loses nothing."""
    query = trial.query
    winners = decided(query.start())
    abort_in_part(broker, winners[0])
    with client_of(query.servers) as client:
        with pytest.raises(NothingSeenError):
            finish(client, query.names)
        assert outcomes(client, trial) == {Outcome.BROKEN, Outcome.OPEN}
    run = query.start()
    run.commit(0, run.write(0))
    trial.judge()


def outcomes(client: KafkaClient, trial: Trial) -> set[Outcome]:
    return {
        each
        for found in last_outcomes(client, trial.query.names)
        for each in found.outcomes.values()
    }


def test_a_commit_between_the_two_looks_is_no_end_by_a_tool(
    broker: MemoryBroker, trial: Trial
) -> None:
    """Else the rest would be aborted, and decided rows lost."""
    query = trial.query
    winners = decided(query.start())

    def commit(_: DescribeProducersRequest) -> Action:
        transaction_of(broker, winners[0]).end(broker.cluster, commit=True)
        return Action.HANDLE

    broker.control(DescribeProducersRequest, commit, times=1)
    with client_of(query.servers) as client:
        found = outcomes(client, trial)
    assert found == {Outcome.COMMITTED, Outcome.OPEN}
    run = query.start()
    run.commit(0, run.write(0))
    trial.judge()


def test_a_leader_that_is_away_keeps_no_decided_rows_from_their_commit(
    broker: MemoryBroker, trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit needs the coordinator alone, and must come before the timeout."""
    monkeypatch.setattr("spark_kafka_source.exactly_once.endings._SWEEP_MS", 200)
    query = trial.query
    winners = decided(query.start())
    broker.control(DescribeProducersRequest, error_named("LEADER_NOT_AVAILABLE"), times=None)
    run = query.start()
    run.commit(0, run.write(0))
    assert {transaction_of(broker, each).state for each in winners} == {"CompleteCommit"}
    trial.judge()
