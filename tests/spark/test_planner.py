"""What a driver finds out from brokers: which partitions there are, and where a bound lies."""

import json
import time
from collections.abc import Callable, Iterator
from uuid import UUID

import pytest

from spark_kafka_source.errors import BrokerError, ConfigurationError, error_named
from spark_kafka_source.protocol import (
    ZERO_UUID,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetForLeaderEpochRequest,
)
from spark_kafka_source.records import Record
from spark_kafka_source.spark.bounds import Extreme, NamedBound, ending_bound
from spark_kafka_source.spark.conditions import DataLossError, OffsetMismatchError
from spark_kafka_source.spark.offsets import Offsets
from spark_kafka_source.spark.options import parse_options
from spark_kafka_source.spark.planner import LogEnds, OffsetPlanner
from tests.memory_broker import KAFKA_2_1, MemoryBroker, PartitionLog
from tests.spark.settings import A0, A1, A2, B0, parsed

Plan = Callable[..., OffsetPlanner]
ID = UUID(int=7)
UNKNOWN = error_named("UNKNOWN_TOPIC_OR_PARTITION")


@pytest.fixture
def broker() -> Iterator[MemoryBroker]:
    with MemoryBroker(2) as broker:
        yield broker


@pytest.fixture
def logs(broker: MemoryBroker) -> list[PartitionLog]:
    """Of topic `a`: a-0 has offsets 2 to 5, a-1 has 0 to 3."""
    logs = broker.create_topic("a", 2, topic_id=ID)
    for log, count in zip(logs, (5, 3), strict=True):
        log.append(*(Record(timestamp_ms=1_000 + 100 * offset) for offset in range(count)))
    logs[0].log_start_offset = 2
    return logs


@pytest.fixture
def plan(broker: MemoryBroker) -> Iterator[Plan]:
    """A planner that is not patient, unless the options make it so."""
    made = []

    def plan(**options: str) -> OffsetPlanner:
        settings = {
            "kafka.bootstrap.servers": str(broker.address()),
            "kafka.retry.backoff.ms": "0",
            "fetchOffset.numRetries": "0",
        }
        made.append(OffsetPlanner(parsed(**settings | options)))
        return made[-1]

    yield plan
    for planner in made:
        planner.close()


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses taken instead of being waited for."""
    taken: list[float] = []
    monkeypatch.setattr(time, "sleep", taken.append)
    return taken


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
    assigned = OffsetPlanner(parse_options(settings | {"assign": '{"a":[1]}'}))
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


# -- topics that are not there ---------------------------------------------------------------------


def test_an_unknown_topic_is_named_with_the_option(plan: Plan) -> None:
    with pytest.raises(ConfigurationError, match=r"'subscribe': topic 'a' does not exist"):
        plan().log_ends()


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
    """Else a partition would be taken for new, and read again from its start."""
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


def test_what_stays_short_or_gone_is_believed_and_waited_for_once(
    broker: MemoryBroker, logs: list[PartitionLog], plan: Plan, pauses: list[float]
) -> None:
    quick = {"fetchOffset.numRetries": "1", "fetchOffset.retryIntervalMs": "30"}
    planner = plan(subscribe="a,b", failOnDataLoss="false", **quick)
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


# -- where a bound lies ----------------------------------------------------------------------------

LATEST: Offsets = {A0: 5, A1: 3}


def resolved(planner: OffsetPlanner, latest: Offsets = LATEST) -> Offsets:
    named = planner._options.starting
    assert named
    return planner.resolve(named, latest)


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize(
    ("starting_offsets", "expected"),
    [
        ("earliest", {A0: 2, A1: 0}),
        ("latest", {A0: 5, A1: 3}),
        ('{"a":{"0":-2,"1":-1}}', {A0: 2, A1: 3}),
        ('{"a":{"0":2,"1":3}}', {A0: 2, A1: 3}),
        ('{"a":{"0":5,"1":0}}', {A0: 5, A1: 0}),
    ],
)
def test_offsets(plan: Plan, starting_offsets: str, expected: Offsets) -> None:
    assert resolved(plan(startingOffsets=starting_offsets)) == expected


@pytest.mark.usefixtures("logs")
def test_the_latest_is_what_was_seen_and_not_asked_for_again(
    broker: MemoryBroker, plan: Plan
) -> None:
    assert resolved(plan(startingOffsets="latest"), {A0: 4, A1: 1}) == {A0: 4, A1: 1}
    assert broker.requests(ListOffsetsRequest) == []


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize(
    ("offsets", "expected"), [((1, 3), {A0: 2, A1: 3}), ((6, 4), {A0: 5, A1: 3})]
)
def test_an_offset_that_its_log_does_not_have_is_data_loss_or_the_nearest_is_taken(
    plan: Plan, offsets: tuple[int, int], expected: Offsets
) -> None:
    text = json.dumps({"a": dict(enumerate(offsets))})
    with pytest.raises(DataLossError, match=r"START_OFFSET_RESET.*a-0 .* offsets 2 to 5"):
        resolved(plan(startingOffsets=text))
    assert resolved(plan(startingOffsets=text, failOnDataLoss="false")) == expected


@pytest.mark.parametrize("offsets", ['{"a":{"0":2}}', '{"a":{"0":2,"1":0,"2":0}}'])
def test_offsets_name_each_partition_and_no_other(plan: Plan, offsets: str) -> None:
    with pytest.raises(OffsetMismatchError, match="KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED"):
        resolved(plan(startingOffsets=offsets))
    with pytest.raises(OffsetMismatchError, match="KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSI"):
        resolved(plan(startingOffsetsByTimestamp=offsets))


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingTimestamp": "1150"}, {A0: 2, A1: 2}),
        ({"startingTimestamp": "1200"}, {A0: 2, A1: 2}),
        ({"startingTimestamp": "0"}, {A0: 2, A1: 0}),
        ({"startingOffsetsByTimestamp": '{"a":{"0":1350,"1":1000}}'}, {A0: 4, A1: 0}),
    ],
)
def test_a_time_is_the_first_record_at_or_after_it_that_is_still_there(
    plan: Plan, options: dict[str, str], expected: Offsets
) -> None:
    assert resolved(plan(**options)) == expected


@pytest.mark.usefixtures("logs")
def test_where_no_record_is_so_late_the_strategy_says_what_holds(plan: Plan) -> None:
    with pytest.raises(ConfigurationError) as refused:
        resolved(plan(startingTimestamp="1300"))
    assert refused.value.option == "startingTimestamp"
    assert "(a-1: 1300)" in str(refused.value)
    assert "'startingOffsetsByTimestampStrategy' as 'latest'" in str(refused.value)
    strategy = {"startingOffsetsByTimestampStrategy": "latest"}
    assert resolved(plan(startingTimestamp="1300", **strategy)) == {A0: 3, A1: 3}


@pytest.mark.usefixtures("logs")
def test_at_the_end_no_record_so_late_is_the_latest(plan: Plan) -> None:
    named = ending_bound({"endingtimestamp": "1300"})
    assert named
    assert plan().resolve(named, LATEST) == {A0: 3, A1: 3}


@pytest.mark.parametrize("fails", ["true", "false"])
def test_a_record_that_came_after_the_latest_was_seen_is_no_data_loss(
    logs: list[PartitionLog], plan: Plan, fails: str
) -> None:
    for log in logs:
        log.append(Record(timestamp_ms=9_000))
    assert resolved(plan(startingTimestamp="5000", failOnDataLoss=fails)) == LATEST


@pytest.mark.usefixtures("logs")
def test_an_open_transaction_is_not_found_by_its_time(broker: MemoryBroker, plan: Plan) -> None:
    resolved(plan(startingTimestamp="0", kafka_isolation_level="read_committed"))
    asked = [request.isolation_level for request in broker.requests(ListOffsetsRequest)]
    assert 1 in asked


# -- what a group has committed --------------------------------------------------------------------


@pytest.mark.usefixtures("logs")
def test_a_start_at_what_the_group_has_committed(broker: MemoryBroker, plan: Plan) -> None:
    broker.cluster.committed["g"] = {A0: 4, A1: 0, B0: 9}
    assert resolved(plan(startingOffsets="committed", kafka_group_id="g")) == {A0: 4, A1: 0}


@pytest.mark.usefixtures("logs")
def test_where_nothing_is_committed_the_strategy_says_what_holds(
    broker: MemoryBroker, plan: Plan
) -> None:
    broker.cluster.committed["g"] = {A1: 1}
    with pytest.raises(ConfigurationError) as refused:
        resolved(plan(startingOffsets="committed", kafka_group_id="g"))
    assert "group 'g' has committed no offset of a-0." in str(refused.value)
    assert "'startingOffsetsCommittedStrategy'" in str(refused.value)
    for strategy, expected in (("earliest", 2), ("latest", 5)):
        options = {"startingOffsets": "committed", "startingOffsetsCommittedStrategy": strategy}
        assert resolved(plan(kafka_group_id="g", **options)) == {A0: expected, A1: 1}


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize(("committed", "nearest"), [(1, 2), (9, 5)])
def test_a_committed_offset_that_its_log_does_not_have_is_data_loss_or_the_nearest_is_taken(
    broker: MemoryBroker, plan: Plan, committed: int, nearest: int
) -> None:
    broker.cluster.committed["g"] = {A0: committed, A1: 0}
    options = {"startingOffsets": "committed", "kafka_group_id": "g"}
    with pytest.raises(DataLossError, match=rf"START_OFFSET_RESET.*offset {committed} of a-0"):
        resolved(plan(**options))
    assert resolved(plan(**options, failOnDataLoss="false")) == {A0: nearest, A1: 0}


def test_bounds_of_no_partitions_ask_nothing(broker: MemoryBroker, plan: Plan) -> None:
    assert plan().resolve(NamedBound("startingOffsets", Extreme.EARLIEST), {}) == {}
    assert broker.seen == []
