"""Position of a bound in each log: by offset, by timestamp, by a group's committed offset."""

import json
from typing import Any

import pytest

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.protocol.messages.list_offsets import ListOffsetsRequest
from spark_kafka_source.records import Record
from spark_kafka_source.spark.conditions import DataLossError, OffsetMismatchError
from spark_kafka_source.spark.source.batch import KafkaBatchReader
from spark_kafka_source.spark.source.bounds import Extreme, NamedBound, ending_bound
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.spark.source.planner import OffsetPlanner
from spark_kafka_source.spark.source.tasks import KafkaInputPartition
from spark_kafka_source.testing.memory import MemoryBroker, PartitionLog
from tests.spark.settings import A0, A1, B0, Plan

pytestmark = pytest.mark.memory(nodes=2)

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
    named = ending_bound(Settings({"endingtimestamp": "1300"}))
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


# -- committed offsets of a group ------------------------------------------------------------------


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


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize("fails", ["true", "false"])
def test_a_group_may_have_read_on_since_the_ends_were_looked_up(
    broker: MemoryBroker, plan: Plan, fails: str
) -> None:
    broker.cluster.committed["g"] = {A0: 5, A1: 3}
    planner = plan(startingOffsets="committed", kafka_group_id="g", failOnDataLoss=fails)
    assert resolved(planner, {A0: 4, A1: 3}) == {A0: 5, A1: 3}


@pytest.mark.parametrize("fails", ["true", "false"])
def test_a_batch_has_nothing_to_read_where_its_group_has_read_on(
    broker: MemoryBroker,
    logs: list[PartitionLog],
    plan: Plan,
    monkeypatch: pytest.MonkeyPatch,
    fails: str,
) -> None:
    look_up = OffsetPlanner.log_ends

    def looked_up(planner: OffsetPlanner) -> Any:
        ends = look_up(planner)
        logs[0].append(b"more")
        broker.cluster.committed["g"] = {A0: logs[0].end_offset, A1: 0}
        return ends

    monkeypatch.setattr(OffsetPlanner, "log_ends", looked_up)
    options = {"startingOffsets": "committed", "kafka_group_id": "g", "failOnDataLoss": fails}
    tasks = KafkaBatchReader(plan(**options)._options).partitions()
    ranges = [
        each for task in tasks if isinstance(task, KafkaInputPartition) for each in task.ranges
    ]
    assert [(each.topic_partition, each.start, each.end) for each in ranges] == [(A1, 0, 3)]


def test_bounds_of_no_partitions_ask_nothing(broker: MemoryBroker, plan: Plan) -> None:
    assert plan().resolve(NamedBound("startingOffsets", Extreme.EARLIEST), {}) == {}
    assert broker.seen == []
