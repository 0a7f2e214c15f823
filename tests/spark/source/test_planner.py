"""Partitions, and ends of their logs, that a driver asks brokers for."""

import time
from uuid import UUID

import pytest

from spark_kafka_source.errors import BrokerError, ConfigurationError, error_named
from spark_kafka_source.protocol import ZERO_UUID
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from spark_kafka_source.spark.options import parse_source_options
from spark_kafka_source.spark.source.offset_arithmetic import LogEnds
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.spark.source.planner import OffsetPlanner
from spark_kafka_source.testing.memory import KAFKA_2_1, MemoryBroker, PartitionLog
from tests.spark.settings import A0, A1, A2, B0, Plan, parsed, pauses_taken

pytestmark = pytest.mark.memory(nodes=2)

ID = UUID(int=7)
UNKNOWN = error_named("UNKNOWN_TOPIC_OR_PARTITION")


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses of the planner. The test does not wait for them."""
    return pauses_taken(monkeypatch)


# -- the ends of the logs --------------------------------------------------------------------------


def test_the_ends_their_leader_epochs_and_the_topics_ids(
    logs: list[PartitionLog], plan: Plan
) -> None:
    logs[1].leader_epoch = 4
    assert plan().log_ends() == LogEnds({A0: 5, A1: 3}, {A0: 0, A1: 4}, {"a": ID})


def test_an_open_transaction_ends_what_is_committed(logs: list[PartitionLog], plan: Plan) -> None:
    logs[0].fixed_last_stable_offset = 3
    assert plan().log_ends().offsets == {A0: 5, A1: 3}
    committed = plan(kafka_isolation_level="read_committed")
    assert committed.log_ends().offsets == {A0: 3, A1: 3}


@pytest.mark.usefixtures("logs")
def test_only_what_is_subscribed_to(broker: MemoryBroker, plan: Plan) -> None:
    broker.create_topic("b", topic_id=UUID(int=8))
    assert plan(subscribe="b").log_ends().topic_ids == {"b": UUID(int=8)}
    settings = {"kafka.bootstrap.servers": str(broker.address())}
    assigned = OffsetPlanner(parse_source_options(settings | {"assign": '{"a":[1]}'}))
    assert assigned.log_ends() == LogEnds({A1: 3}, {A1: 0}, {"a": ID})
    assigned.close()


def test_a_topic_from_before_ids_has_none(broker: MemoryBroker, plan: Plan) -> None:
    broker.create_topic("a", topic_id=ZERO_UUID)
    assert plan().log_ends() == LogEnds({A0: 0}, {A0: 0}, {})


def test_the_oldest_broker_tells_as_much_as_it_knows() -> None:
    with MemoryBroker(versions=KAFKA_2_1) as broker:
        (log,) = broker.create_topic("a", topic_id=ZERO_UUID)
        log.append(b"x", b"y")
        options = parsed(**{"kafka.bootstrap.servers": str(broker.address())})
        planner = OffsetPlanner(options)
        assert planner.log_ends() == LogEnds({A0: 2}, {A0: 0}, {})
        log.leader_epoch = 1
        assert planner.epoch_ends({A0: 0}) == {A0: 2}
        planner.close()


def test_each_question_asks_afresh(
    broker: MemoryBroker, logs: list[PartitionLog], plan: Plan
) -> None:
    planner = plan()
    planner.log_ends()
    logs[0].append(b"one more")
    logs.append(PartitionLog(leader_id=0))
    broker.cluster.topics["a"].logs = logs
    assert planner.log_ends({A0: 5, A1: 3}).offsets == {A0: 6, A1: 3, A2: 0}


def test_an_epoch_that_ends_before_what_was_read_shows_a_cut(
    broker: MemoryBroker, logs: list[PartitionLog], plan: Plan
) -> None:
    logs[1].truncate(0)
    broker.move_leader(A1, 0)
    logs[1].append(*[b"other"] * 9)
    planner = plan()
    assert planner.log_ends().leader_epochs == {A0: 0, A1: 1}
    assert planner.epoch_ends({A0: 0, A1: 0}) == {A0: 5, A1: 0}
    assert planner.epoch_ends({}) == {}
    assert len(broker.requests(OffsetForLeaderEpochRequest)) == 1


# -- missing topics --------------------------------------------------------------------------------


def test_an_unknown_topic_is_named_with_the_option(plan: Plan) -> None:
    with pytest.raises(ConfigurationError) as raised:
        plan().log_ends()
    text = str(raised.value)
    assert "'subscribe': topic 'a' does not exist. Create it" in text
    assert text.endswith("Or name one that exists")


@pytest.mark.usefixtures("logs")
def test_a_topic_that_brokers_have_not_heard_of_yet_is_waited_for(
    broker: MemoryBroker, plan: Plan
) -> None:
    broker.control(MetadataRequest, UNKNOWN, times=3)
    assert plan(**{"fetchOffset.numRetries": "30"}).log_ends().offsets == {A0: 5, A1: 3}


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize("fails", ["true", "false"])
def test_a_topic_that_was_read_may_be_gone_and_a_new_one_may_not(
    broker: MemoryBroker, plan: Plan, fails: str
) -> None:
    planner = plan(subscribe="a,b", failOnDataLoss=fails)
    assert planner.log_ends({A0: 5, B0: 4}).offsets == {A0: 5, A1: 3}
    with pytest.raises(ConfigurationError, match="topic 'b' does not exist"):
        planner.log_ends()


@pytest.mark.usefixtures("logs")
def test_a_query_that_goes_on_does_so_though_the_topic_was_gone_the_last_time_too(
    plan: Plan,
) -> None:
    going_on = plan(subscribe="a,b", failOnDataLoss="false")
    assert going_on.log_ends({A0: 5, A1: 3}).offsets == {A0: 5, A1: 3}
    failing = plan(subscribe="a,b", failOnDataLoss="true")
    with pytest.raises(ConfigurationError, match="topic 'b' does not exist"):
        failing.log_ends({A0: 5, A1: 3})


@pytest.mark.parametrize("subscribed", ["a", "a,b"])
@pytest.mark.parametrize("fails", ["true", "false"])
def test_all_topics_that_were_read_may_be_gone(plan: Plan, subscribed: str, fails: str) -> None:
    planner = plan(subscribe=subscribed, failOnDataLoss=fails)
    assert planner.log_ends({A0: 5, B0: 1}) == LogEnds({})


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize(
    ("error", "raised"),
    [
        ("TOPIC_AUTHORIZATION_FAILED", BrokerError),
        ("INVALID_TOPIC_EXCEPTION", ConfigurationError),
    ],
)
def test_what_cannot_heal_is_told_with_the_topic(
    broker: MemoryBroker, plan: Plan, error: str, raised: type[Exception]
) -> None:
    broker.control(MetadataRequest, error_named(error))
    with pytest.raises(raised, match="'a'"):
        plan().log_ends()


# -- ends that fall back, for a moment or for good -------------------------------------------------


@pytest.fixture
def patient(plan: Plan) -> OffsetPlanner:
    return plan(subscribe="a,b", failOnDataLoss="false", **{"fetchOffset.numRetries": "30"})


@pytest.fixture
def b_log(broker: MemoryBroker) -> PartitionLog:
    (log,) = broker.create_topic("b")
    log.append(b"x")
    return log


READ: Offsets = {A0: 5, A1: 3, B0: 1}


@pytest.mark.usefixtures("b_log")
def test_a_new_leader_that_does_not_know_its_end_yet_is_asked_again(
    logs: list[PartitionLog], patient: OffsetPlanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def catch_up(_: float) -> None:
        logs[0].fixed_high_watermark = None

    logs[0].fixed_high_watermark = 4
    monkeypatch.setattr(time, "sleep", catch_up)
    assert patient.log_ends(READ).offsets == READ


@pytest.mark.usefixtures("b_log", "logs")
def test_a_broker_that_lags_behind_is_asked_again_for_topics_and_partitions(
    broker: MemoryBroker, patient: OffsetPlanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the planner takes a partition for new, and reads it again from its start."""
    topics = dict(broker.cluster.topics)
    a_logs = topics["a"].logs

    def catch_up(_: float) -> None:
        broker.cluster.topics.update(topics)
        topics["a"].logs = a_logs

    topics["a"].logs = a_logs[:1]
    del broker.cluster.topics["b"]
    monkeypatch.setattr(time, "sleep", catch_up)
    assert patient.log_ends(READ).offsets == READ


def test_what_is_as_far_as_was_read_is_asked_for_once(
    broker: MemoryBroker,
    logs: list[PartitionLog],
    b_log: PartitionLog,
    patient: OffsetPlanner,
    pauses: list[float],
) -> None:
    assert patient.log_ends(READ).offsets == READ
    for log in (*logs, b_log):
        log.append(b"more")
    patient.log_ends(READ)
    assert not pauses
    assert len(broker.requests(MetadataRequest)) == 2


class OnePause:
    """The patience of a planner. It ends with the first pause, however long an answer takes."""

    def __init__(self, pauses: list[float]) -> None:
        self._pauses, self._before = pauses, len(pauses)

    @property
    def expired(self) -> bool:
        return len(self._pauses) > self._before

    def remaining_seconds(self) -> float:
        return 30.0


def test_what_stays_short_or_gone_is_believed_and_waited_for_once(
    broker: MemoryBroker,
    logs: list[PartitionLog],
    plan: Plan,
    pauses: list[float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(OffsetPlanner, "_patience", lambda _: OnePause(pauses))
    planner = plan(subscribe="a,b", failOnDataLoss="false")
    logs[0].truncate(0)
    assert planner.log_ends(READ).offsets == {A0: 2, A1: 3}
    assert pauses
    pauses.clear()
    broker.forget()
    assert planner.log_ends(READ).offsets == {A0: 2, A1: 3}
    assert not pauses
    assert len(broker.requests(MetadataRequest)) == 1
    logs[1].fixed_high_watermark = 1
    planner.log_ends(READ)
    assert pauses
