"""The IO of steps: answers and errors, and the brokers' time."""

from types import SimpleNamespace
from typing import Any

import pytest

from spark_kafka_source.admin.transactions import TransactionDescription
from spark_kafka_source.errors import BrokerError, error_named
from spark_kafka_source.exactly_once import step_runner
from spark_kafka_source.exactly_once.requests import (
    DescribeTransactions,
    EndTxn,
    InitProducerId,
    ListTransactions,
    Steps,
    ask,
    end_each,
)
from spark_kafka_source.exactly_once.step_runner import Clock, StepRunner
from spark_kafka_source.producer import Generation, ProducerFencedError, ProducerId
from spark_kafka_source.protocol.messages.transactions import EndTxnRequest
from spark_kafka_source.testing.memory import MemoryBroker
from tests.exactly_once.conftest import Trial, in_memory_trial
from tests.exactly_once.query import client_of

FIRST, SECOND = Generation.FIRST, Generation.SECOND
BOTH = pytest.mark.parametrize("generation", Generation, ids=lambda each: each.name.lower())


@pytest.fixture
def trial(broker: MemoryBroker, topic: str) -> Trial:
    return in_memory_trial(broker, topic)


def told(trial: Trial, steps: Steps[Any], generation: Generation = SECOND) -> Any:
    with client_of(trial.query.servers, **trial.query.settings) as client:
        return StepRunner(client, trial.query.names, generation).run(steps)


def test_requests_go_out_at_once_and_are_answered_in_their_order(trial: Trial) -> None:
    (prepared,) = trial.query.start().write(0, 1)
    control_id = trial.query.names.control_id

    def steps() -> Steps[Any]:
        looks = DescribeTransactions((prepared.transactional_id, control_id))
        heard = yield (ListTransactions(), looks, ListTransactions(committed=True))
        return heard.answers

    listed, found, committed = told(trial, steps())
    assert (listed, committed) == ({prepared.transactional_id}, set())
    assert found[prepared.transactional_id].producer == prepared.producer
    assert found[control_id] is None


def test_an_error_is_raised_where_the_story_waits(broker: MemoryBroker, trial: Trial) -> None:
    broker.cluster.refusal = error_named("CLUSTER_AUTHORIZATION_FAILED").code

    def steps() -> Steps[str]:
        try:
            yield from ask(InitProducerId(trial.query.names.control_id))
        except BrokerError as error:
            return error.error.name
        return "no error"

    assert told(trial, steps()) == "CLUSTER_AUTHORIZATION_FAILED"


def test_an_error_of_an_end_is_its_answer(broker: MemoryBroker, trial: Trial) -> None:
    first, second = trial.query.start().write(0)
    ends = [(first.transactional_id, ProducerId(first.producer[0], 99)), second[:2]]
    wrong, right = told(trial, end_each(ends, commit=True))
    assert isinstance(wrong, ProducerFencedError)
    assert right == second.producer.bumped()


def test_an_end_without_an_answer_is_tried_again(broker: MemoryBroker, trial: Trial) -> None:
    (prepared,) = trial.query.start().write(0, 1)
    broker.control(EndTxnRequest, error_named("CONCURRENT_TRANSACTIONS"), times=3)

    def steps() -> Steps[Any]:
        return (yield from ask(EndTxn(*prepared[:2], commit=True)))

    assert told(trial, steps()) == prepared.producer.bumped()


# -- the time --------------------------------------------------------------------------------------

CONTROL = ProducerId(5, 3)


def control(epoch: int, started_at_ms: int, producer_id: int = 5) -> TransactionDescription:
    producer = ProducerId(producer_id, epoch)
    return TransactionDescription("p.control", "", producer, 60_000, started_at_ms, (), 0)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """This machine's clocks: 1,000 s since it started, and 2,000 s since 1970."""
    found = SimpleNamespace(seconds=1_000.0)
    clock = SimpleNamespace(monotonic=lambda: found.seconds, time_ns=lambda: 2_000 * 10**9)
    monkeypatch.setattr(step_runner, "time", clock)
    return found


def test_until_a_start_is_known_the_clock_of_the_machine_counts(now: SimpleNamespace) -> None:
    clock = Clock()
    for unknown in (None, control(9, -1)):
        clock.learn(999.0, unknown)
        assert clock.now_ms() == 2_000_000


def test_the_time_is_the_start_and_what_has_passed_since_the_request(now: SimpleNamespace) -> None:
    clock = Clock()
    clock.learn(999.0, control(4, 77_000))
    assert clock.now_ms() == 78_000
    now.seconds += 10
    assert clock.now_ms() == 88_000
    clock.learn(1_009.0, control(9, 90_000))
    assert clock.now_ms() == 91_000
