"""Groups of a real broker: the same results and effects as with Kafka's own tool."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position

from spark_kafka_source import KafkaAdmin, Shift
from spark_kafka_source.admin import GroupNotEmptyError, GroupNotFoundError, PartitionLag
from spark_kafka_source.admin.reset_targets import Target
from spark_kafka_source.command_line.main import main
from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.topic_partition import TopicPartition
from tests.admin.tool import ConsumerGroupsTool, Row, consumer_groups_tool

pytestmark = [pytest.mark.kafka, pytest.mark.java]

TOPIC, OTHER = "groups-from-outside", "groups-from-outside-2"
T0, T1, T2 = (TopicPartition(TOPIC, partition) for partition in range(3))
U0 = TopicPartition(OTHER, 0)
PATIENCE_SECONDS = 60
LONG_AGO_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def tool(kafka: LocalKafka, kafka_jars: list[Path]) -> Iterator[ConsumerGroupsTool]:
    with consumer_groups_tool(kafka_jars, kafka.bootstrap_servers) as tool:
        yield tool


@pytest.fixture(scope="module")
def admin(kafka: LocalKafka) -> Iterator[KafkaAdmin]:
    with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        yield admin


@pytest.fixture(scope="module", autouse=True)
def topics(kafka: LocalKafka) -> None:
    """Write ten old records a second apart to each partition, then new ones. Delete two in T1."""
    kafka.create_topic(TOPIC, partitions=3)
    kafka.create_topic(OTHER)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for partition in range(3):
        for second in range(10):
            producer.produce(
                TOPIC, b"old", partition=partition, timestamp=LONG_AGO_MS + second * 1000
            )
        for _ in range(partition):
            producer.produce(TOPIC, b"new", partition=partition)
    producer.produce(OTHER, b"one")
    assert producer.flush(PATIENCE_SECONDS) == 0
    kafka.delete_records({T1: 2})


def commit(kafka: LocalKafka, group: str, offsets: dict[TopicPartition, int]) -> None:
    """Commit offsets without a member."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group})
    positions = [Position(*where, offset) for where, offset in offsets.items()]
    consumer.commit(offsets=positions, asynchronous=False)
    consumer.close()


@dataclass
class Members:
    """confluent-kafka's members of one group."""

    group: str
    consumers: list[Any] = field(default_factory=list)

    def poll(self) -> int:
        """Poll all members. Return how many partitions they have."""
        for consumer in self.consumers:
            consumer.poll(0.02)
        return sum(len(consumer.assignment()) for consumer in self.consumers)


@pytest.fixture(scope="module")
def active(kafka: LocalKafka) -> Iterator[dict[str, Members]]:
    """Run a group of each protocol, with members, and with offsets of unread partitions."""
    groups = {"classic": Members("active-classic"), "consumer": Members("active-consumer")}
    with ExitStack() as closing:
        for protocol, group in groups.items():
            commit(kafka, group.group, {T0: 4, T2: 12, U0: 1})
            for number in range(2 if protocol == "classic" else 1):
                settings = {
                    "bootstrap.servers": kafka.bootstrap_servers,
                    "group.id": group.group,
                    "group.protocol": protocol,
                    "client.id": f"{protocol}-{number}",
                    "enable.auto.commit": False,
                    # Nobody polls while the tests run.
                    "max.poll.interval.ms": 3_600_000,
                }
                if protocol == "classic":
                    settings["heartbeat.interval.ms"] = 200
                consumer = Consumer(settings)
                closing.callback(consumer.close)
                consumer.subscribe([TOPIC])
                group.consumers.append(consumer)
        until_seconds = time.monotonic() + PATIENCE_SECONDS
        classic, new = groups.values()
        # Both classic members must have partitions.
        while classic.poll() + new.poll() < 6 or not all(
            each.assignment() for each in classic.consumers
        ):
            assert time.monotonic() < until_seconds
        yield groups


def as_the_tool_has_it(row: PartitionLag) -> Row:
    cells = {
        "GROUP": row.group_id,
        "TOPIC": row.topic,
        "PARTITION": row.partition,
        "LEADER-EPOCH": row.leader_epoch,
        "CURRENT-OFFSET": row.committed_offset,
        "LOG-END-OFFSET": row.log_end_offset,
        "LAG": row.lag,
        "CONSUMER-ID": row.member_id,
        "HOST": row.host,
        "CLIENT-ID": row.client_id,
    }
    return {name: "-" if cell is None else str(cell) for name, cell in cells.items()}


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["TOPIC"], row["PARTITION"]))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_an_active_group_is_what_kafkas_tool_says(
    active: dict[str, Members], tool: ConsumerGroupsTool, admin: KafkaAdmin, protocol: str
) -> None:
    group = active[protocol].group
    lag = admin.group_lag(group)
    theirs = in_order(tool.rows("--describe", "--verbose", "--group", group))
    assert [as_the_tool_has_it(each) for each in lag] == theirs
    assert [(each.topic_partition, each.lag) for each in lag] == [
        (T0, 6),
        (T1, None),
        (T2, 0),
        (U0, 0),
    ]
    assert lag.to_arrow().column("lag").to_pylist() == [6, None, 0, 0]
    found = admin.describe_group(group)
    (state,) = tool.rows("--describe", "--state", "--group", group)
    assert state == {
        "GROUP": group,
        "COORDINATOR": str(found.coordinator.address),
        "ASSIGNMENT-STRATEGY": found.assignor,
        "STATE": found.state,
        "#MEMBERS": str(len(found.members)),
    }
    assert (found.type, found.state) == (protocol, "Stable")
    shown = tool.rows("--describe", "--members", "--group", group)
    assert {(row["CONSUMER-ID"], row["#PARTITIONS"]) for row in shown} == {
        (each.member_id, str(len(each.assignment))) for each in found.members
    }


def test_groups_are_listed(
    active: dict[str, Members], tool: ConsumerGroupsTool, admin: KafkaAdmin
) -> None:
    ours = {each.group_id: each for each in admin.list_groups()}
    theirs = {row["GROUP"]: row["STATE"] for row in tool.rows("--list", "--state")}
    for protocol, members in active.items():
        assert ours[members.group].type == protocol
        assert ours[members.group].state == theirs[members.group] == "Stable"
    only = admin.list_groups(states=["Stable"], types=["consumer"])
    assert active["consumer"].group in {each.group_id for each in only}
    assert {(each.state, each.type) for each in only} == {("Stable", "consumer")}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_an_active_group_keeps_its_offsets(
    active: dict[str, Members], tool: ConsumerGroupsTool, admin: KafkaAdmin, protocol: str
) -> None:
    group = active[protocol].group
    before = admin.list_group_offsets(group)
    with pytest.raises(GroupNotEmptyError, match=f"'{group}' is Stable: .*{protocol}-0 at /127"):
        admin.reset_offsets(group, "earliest", dry_run=False)
    reset = ("--reset-offsets", "--to-earliest", "--execute", "--all-topics")
    assert "current state is Stable" in tool.run(*reset, "--group", group)
    with pytest.raises(GroupNotEmptyError, match="can be deleted only while it has no members"):
        admin.delete_group(group)
    refused = admin.delete_offsets(group, [TOPIC])
    assert {str(error) for error in refused.values()} == {
        f"OffsetDelete of {where} for group '{group}': GROUP_SUBSCRIBED_TO_TOPIC (86)"
        for where in (T0, T2)
    }
    assert admin.list_group_offsets(group) == before


def test_a_group_that_is_not_there(admin: KafkaAdmin, tool: ConsumerGroupsTool) -> None:
    assert "Group no-such-group not found" in tool.run("--describe", "--group", "no-such-group")
    for call in (admin.describe_group, admin.group_lag, admin.delete_group):
        with pytest.raises(GroupNotFoundError, match="There is no group 'no-such-group'"):
            call("no-such-group")
    with pytest.raises(GroupNotFoundError):
        admin.delete_offsets("no-such-group", [T0])


SECOND_4 = "2023-11-14T22:13:24.000"
WAYS: dict[str, tuple[Target, list[str]]] = {
    "earliest": ("earliest", ["--to-earliest"]),
    "latest": ("latest", ["--to-latest"]),
    "current": ("current", ["--to-current"]),
    "datetime": (SECOND_4, ["--to-datetime", SECOND_4]),
    "zoned": ("2023-11-15T00:13:24.000+02:00", ["--to-datetime", "2023-11-15T00:13:24.000+02:00"]),
    "too-late": ("2100-01-01T00:00:00", ["--to-datetime", "2100-01-01T00:00:00.000"]),
    "duration": ("PT1H", ["--by-duration", "PT1H"]),
    "offset": (11, ["--to-offset", "11"]),
    "low-offset": (1, ["--to-offset", "1"]),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_reset_is_that_of_kafkas_tool(
    kafka: LocalKafka, admin: KafkaAdmin, tool: ConsumerGroupsTool, way: str
) -> None:
    to, arguments = WAYS[way]
    group = f"reset-{way}"
    commit(kafka, group, {T0: 4, T1: 3})
    every = ["--reset-offsets", "--group", group, "--topic", TOPIC, *arguments]
    theirs = {
        TopicPartition(row["TOPIC"], int(row["PARTITION"])): int(row["NEW-OFFSET"])
        for row in tool.rows(*every)
    }
    plan = admin.reset_offsets(group, to, [TOPIC])
    assert {each.topic_partition: each.new_offset for each in plan} == theirs
    assert {each.topic_partition: each.old_offset for each in plan} == {T0: 4, T1: 3, T2: None}
    assert {where: at.offset for where, at in admin.list_group_offsets(group).items()} == {
        T0: 4,
        T1: 3,
    }
    done = admin.reset_offsets(group, to, [TOPIC], dry_run=False)
    assert done.rows == plan.rows
    assert (plan.executed, done.executed) == (False, True)
    found = tool.rows("--describe", "--group", group)
    assert {
        TopicPartition(row["TOPIC"], int(row["PARTITION"])): int(row["CURRENT-OFFSET"])
        for row in found
    } == theirs


@pytest.mark.parametrize("by", [-3, 2, 100, -100])
def test_a_shift_is_that_of_kafkas_tool(
    kafka: LocalKafka, admin: KafkaAdmin, tool: ConsumerGroupsTool, by: int
) -> None:
    group = f"shift-{by}"
    commit(kafka, group, {T0: 4, T1: 5})
    every = ["--reset-offsets", "--group", group, "--all-topics", "--shift-by", str(by)]
    theirs = {int(row["PARTITION"]): int(row["NEW-OFFSET"]) for row in tool.rows(*every)}
    plan = admin.reset_offsets(group, Shift(by))
    assert {each.partition: each.new_offset for each in plan} == theirs
    assert all(bool(each.note) == (abs(by) == 100) for each in plan)


def test_a_new_group_begins_where_it_is_told(admin: KafkaAdmin) -> None:
    done = admin.reset_offsets("new-group", {T0: 7}, dry_run=False)
    assert (done.is_new, done.executed) == (True, True)
    assert admin.describe_group("new-group").state == "Empty"
    assert admin.group_lag("new-group").total == 3


def test_what_is_deleted_is_gone(
    kafka: LocalKafka, admin: KafkaAdmin, tool: ConsumerGroupsTool
) -> None:
    commit(kafka, "to-delete", {T0: 4, T1: 3, U0: 1})
    assert admin.delete_offsets("to-delete", [OTHER, T1]) == {T1: None, U0: None}
    shown = tool.rows("--describe", "--group", "to-delete")
    assert [(row["TOPIC"], row["PARTITION"]) for row in shown] == [(TOPIC, "0")]
    assert admin.delete_groups(["to-delete"]) == {"to-delete": None}
    assert "to-delete" not in tool.run("--list").splitlines()


def test_the_command_line(
    kafka: LocalKafka, active: dict[str, Members], capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str) -> int:
        return main([*words, "-b", kafka.bootstrap_servers])

    assert run("groups", "lag", "active-consumer", "--json") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["lag"] for row in rows] == [6, None, 0, 0]
    assert run("groups", "describe", "active-classic", "no-such-group") == 1
    shown = capsys.readouterr()
    assert "state:       Stable" in shown.out
    assert "no-such-group" in shown.err
    assert run("topics", TOPIC) == 0
    rows_of_partitions = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[-2:] for line in rows_of_partitions] == [
        ["0", "10"],
        ["2", "11"],
        ["0", "12"],
    ]
    assert run("tail", TOPIC, "-n", "4") == 0
    assert [line.split()[2:] for line in capsys.readouterr().out.splitlines()] == [
        ["null", "old"],
        *[["null", "new"]] * 3,
    ]
    # The group is at the end of partition 2. It has no offset for partition 1, which starts at 2.
    assert run("tail", TOPIC, "--group", "active-classic", "--json", "-n", "15") == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["partition"]: row["offset"] for row in reversed(found)} == {0: 4, 1: 2}
