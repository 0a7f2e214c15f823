"""Resets of offsets: targets, the limits of the log, and no reset of a group with members."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from spark_kafka_source import KafkaAdmin, Shift
from spark_kafka_source.admin import GroupNotEmptyError
from spark_kafka_source.admin.reset_targets import timestamp_of
from spark_kafka_source.errors import BrokerError, ConfigurationError, LocalError, error_named
from spark_kafka_source.protocol.messages.group_admin import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from spark_kafka_source.protocol.messages.groups import OffsetCommitRequest
from spark_kafka_source.records import Record
from spark_kafka_source.testing.memory import MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition
from tests.admin.conftest import T0, T1, U0

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp() * 1000)


def new(admin: KafkaAdmin, to: Any, topics: Any = ("t",), **how: Any) -> dict[int, int]:
    return {each.partition: each.new_offset for each in admin.reset_offsets("g", to, topics, **how)}


def test_a_dry_run_commits_nothing(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    assert new(admin, "latest") == {0: 3, 1: 5}
    assert not broker.requests(OffsetCommitRequest)
    assert new(admin, "latest", dry_run=False) == {0: 3, 1: 5}
    assert broker.cluster.committed["g"] == {T0: 3, T1: 5, U0: 1}


def test_the_ends_and_what_there_is(admin: KafkaAdmin) -> None:
    assert new(admin, "earliest") == {0: 0, 1: 0}
    assert new(admin, " Current ") == {0: 1, 1: 5}
    assert new(admin, 2) == {0: 2, 1: 2}
    assert new(admin, Shift(1), None) == {0: 1}
    assert new(admin, {T0: 2, T1: 1}, None) == {0: 2, 1: 1}
    assert new(admin, "earliest", T1) == {1: 0}
    assert new(admin, "earliest", "t") == {0: 0, 1: 0}


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        (NOON, 3),
        ("2026-05-04T12:00:00", 3),
        ("2026-05-04T14:00:00.000+02:00", 3),
        (NOON + timedelta(milliseconds=1), 4),
        (datetime(2026, 5, 4, 12), 3),
        (datetime(1969, 1, 1, tzinfo=UTC), 0),
        ("2100-01-01", 5),
        (timedelta(0), 5),
        ("PT0S", 5),
        (timedelta(days=36_500), 0),
    ],
)
def test_times(broker: MemoryBroker, admin: KafkaAdmin, to: Any, expected: int) -> None:
    (log,) = broker.create_topic("timed")
    for record in range(5):
        # The record at offset 3 has the time of noon.
        log.append(Record(value=b"x", timestamp_ms=NOON_MS + (record - 3) * 60_000))
    (row,) = admin.reset_offsets("g", to, ["timed"])
    assert row.new_offset == expected
    assert bool(row.note) == (expected == 5)


def test_a_log_has_bounds(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    broker.cluster.topics["t"].logs[1].log_start_offset = 2
    rows = {each.partition: each for each in admin.reset_offsets("g", 4, ["t"])}
    assert (rows[0].new_offset, rows[0].note) == (3, "4 is after the end of the log")
    assert (rows[1].new_offset, rows[1].note) == (4, None)
    (row,) = admin.reset_offsets("g", {T1: -5})
    assert (row.new_offset, row.note) == (2, "-5 is before the start of the log")


@pytest.mark.parametrize(
    "to", ["yesterday", "P", "PT", "2026-13-01", "", "PT1X", "9" * 18, "9" * 5000]
)
def test_what_is_no_target_is_refused(broker: MemoryBroker, admin: KafkaAdmin, to: str) -> None:
    with pytest.raises(ConfigurationError, match=r"Option 'to': found .* Give 'earliest'"):
        admin.reset_offsets("g", to, ["t"])
    assert not broker.seen


@pytest.mark.parametrize(
    ("number", "meant"),
    [(NOON_MS, NOON_MS), (NOON_MS // 1000, NOON_MS), (20260504, NOON_MS - 12 * 3_600_000)],
)
def test_what_is_advised_for_a_number_is_the_time_that_it_means(
    admin: KafkaAdmin, number: int, meant: int
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        admin.reset_offsets("g", str(number), ["t"])
    (advised,) = re.findall(r"write '(.+?)'", str(refused.value))
    assert timestamp_of(advised) == meant
    assert new(admin, advised)


def test_partitions_that_are_not_there(admin: KafkaAdmin) -> None:
    with pytest.raises(BrokerError, match=r"There is no topic 'nope'"):
        admin.reset_offsets("g", "latest", ["nope"])
    with pytest.raises(
        BrokerError, match=r"t-7: UNKNOWN_TOPIC_OR_PARTITION .3.: topic 't' has 0 to 1"
    ):
        admin.reset_offsets("g", "latest", [TopicPartition("t", 7)])
    with pytest.raises(LocalError, match="not both"):
        admin.reset_offsets("g", {T0: 1}, ["t"])
    with pytest.raises(LocalError, match="t-1: the group has committed no offset there to shift"):
        admin.reset_offsets("g", Shift(1), ["t"])


def test_partitions_without_a_leader(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    broker.stop(broker.cluster.topics["t"].logs[1].leader_id)
    broker.cluster.coordinators["g"] = 0
    with pytest.raises(BrokerError, match="Offsets of t-1: LEADER_NOT_AVAILABLE"):
        admin.reset_offsets("g", 1, ["t"], dry_run=False)
    assert not broker.requests(OffsetCommitRequest)


def test_one_who_joins_meanwhile_keeps_its_offsets(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    broker.control(OffsetCommitRequest, error_named("UNKNOWN_MEMBER_ID"))
    with pytest.raises(GroupNotEmptyError, match="'g' is active: its offsets can be reset only"):
        admin.reset_offsets("g", "latest", dry_run=False)


def test_a_group_that_is_not_there_is_made_but_said_to_be_new(admin: KafkaAdmin) -> None:
    found = admin.reset_offsets("brand-new", "earliest", ["t"])
    assert (found.is_new, found.executed, len(found)) == (True, False, 2)
    nothing = admin.reset_offsets("brand-new", "earliest", dry_run=False)
    assert (nothing.executed, len(nothing)) == (False, 0)


def test_a_share_group_is_left_alone(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    groups = ListGroupsResponse(groups=[ListedGroup("s", "share", "Empty", "share")])
    broker.control(ListGroupsRequest, groups, node_id=0)
    with pytest.raises(LocalError, match="'s' is a share group"):
        admin.reset_offsets("s", "earliest", ["t"], dry_run=False)
    assert not broker.requests(OffsetCommitRequest)
