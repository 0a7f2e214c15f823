"""The commands `groups list`, `describe`, `lag`, `reset` and `delete`."""

import argparse
from collections.abc import Iterable, Sequence

from spark_kafka_source.admin import (
    GroupDescription,
    GroupLag,
    GroupListing,
    KafkaAdmin,
    MemberDescription,
    OffsetReset,
    OffsetResets,
    Shift,
)
from spark_kafka_source.admin.committed import groups_with_decisions, is_decision
from spark_kafka_source.admin.reset_targets import Target
from spark_kafka_source.command_line.configuration import configuration
from spark_kafka_source.command_line.output import Output
from spark_kafka_source.errors import ConfigurationError, KafkaError
from spark_kafka_source.secret import printable
from spark_kafka_source.topic_partition import TopicPartition

_LAG = ("topic", "partition", "committed", "end", "lag", "client", "host", "note")
_MEMBERS = ("client", "host", "instance", "epoch", "partitions", "member")
_DELETED_GROUPS = ("group", "deleted", "error")
_DELETED = ("group", "topic", "partition", "deleted", "error")
_KEEPER = "keeps the decisions of an exactly-once query"
_DECISION = "no lag: 'committed' is a micro-batch that an exactly-once query has decided"
_RESET = ("topic", "partition", "old", "new", "change", "note")


def list_groups(arguments: argparse.Namespace, output: Output) -> int:
    """Show all groups."""
    with KafkaAdmin(**configuration(arguments)) as admin:
        groups = admin.list_groups(states=arguments.state, types=arguments.type)
        keepers = _with_decisions(admin, groups, output)
    rows = [
        {
            "group": listing.group_id,
            "type": listing.type,
            "state": listing.state,
            "protocol": listing.protocol_type,
            "note": _KEEPER if listing.group_id in keepers else None,
        }
        for listing in groups
    ]
    filters = arguments.state or arguments.type
    none = "There is no group of such a state and type" if filters else "There are no groups"
    output.rows(rows, ("group", "type", "state", "protocol", "note"), none)
    return 0


def _with_decisions(admin: KafkaAdmin, groups: Sequence[GroupListing], output: Output) -> set[str]:
    try:
        return admin.client.run(groups_with_decisions(admin.client, groups))
    except KafkaError as error:
        output.note(f"Which groups keep decisions of exactly-once queries is not known: {error}")
        return set()


def describe(arguments: argparse.Namespace, output: Output) -> int:
    """Describe one group after the other. A missing group does not hide the others."""
    failures = 0
    with KafkaAdmin(**configuration(arguments)) as admin:
        for place, group_id in enumerate(arguments.groups):
            try:
                group = admin.describe_group(group_id)
                lag = admin.group_lag(group)
            except KafkaError as error:
                output.note(str(error))
                failures += 1
                continue
            if output.as_json:
                output.document(_description(group, lag))
            else:
                _show(output, group, lag, is_first=not place)
    return min(failures, 1)


def _show(output: Output, group: GroupDescription, lag: GroupLag, *, is_first: bool) -> None:
    if not is_first:
        output.line("")
    at = group.coordinator
    facts = {
        "group": group.group_id,
        "type": group.type,
        "state": group.state,
        "assignor": group.assignor,
        "coordinator": f"{at.node_id} ({at.address})",
        "members": str(len(group.members)),
        "lag": "" if lag.total is None else str(lag.total),
    }
    for name, value in facts.items():
        output.line(f"{name + ':':13}{printable(value) or '-'}")
    for rows, columns in (
        ([_member(member) for member in group.members], _MEMBERS),
        (_lag_rows(lag), _LAG),
    ):
        if rows:
            output.line("")
            output.rows(rows, columns)


def _member(member: MemberDescription) -> dict[str, object]:
    return {
        "client": member.client_id,
        "host": member.host,
        "instance": member.group_instance_id,
        "epoch": member.epoch,
        "partitions": _shown_partitions(member.assignment),
        "member": member.member_id,
    }


def _shown_partitions(partitions: Sequence[TopicPartition]) -> str:
    """Return partitions in the syntax of `--topic`: `events:0,1 clicks:3`."""
    by_topic: dict[str, list[str]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(str(partition))
    return " ".join(f"{topic}:{','.join(numbers)}" for topic, numbers in by_topic.items())


def _description(group: GroupDescription, lag: GroupLag) -> dict[str, object]:
    at = group.coordinator
    return {
        "group": group.group_id,
        "type": group.type,
        "state": group.state,
        "protocol": group.protocol_type,
        "assignor": group.assignor,
        "coordinator": {"id": at.node_id, "host": at.address.host, "port": at.address.port},
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "members": [
            _member(member)
            | {
                "partitions": _partitions(member.assignment),
                "target": _partitions(member.target_assignment),
            }
            for member in group.members
        ],
        "lag": lag.total,
        "partitions": _lag_rows(lag),
    }


def _partitions(partitions: Iterable[TopicPartition] | None) -> list[dict[str, object]] | None:
    return None if partitions is None else [partition._asdict() for partition in partitions]


def lag(arguments: argparse.Namespace, output: Output) -> int:
    """Show a row for each partition of these groups (default: all groups).

    A missing group does not hide the others.
    """
    groups, failures = list(dict.fromkeys(arguments.groups)), 0
    rows: list[dict[str, object]] = []
    with KafkaAdmin(**configuration(arguments)) as admin:
        if not groups:
            rows = _lag_rows(admin.group_lag())
        for group_id in sorted(groups):
            try:
                rows += _lag_rows(admin.group_lag(group_id))
            except KafkaError as error:
                output.note(str(error))
                failures += 1
    several = failures or len({row["group"] for row in rows}) > 1
    none = "These groups have committed nothing" if groups else "No group has offsets"
    if not failures or failures < len(groups):
        output.rows(rows, ("group", *_LAG) if several else _LAG, none)
    return min(failures, 1)


def _lag_rows(lag: GroupLag) -> list[dict[str, object]]:
    return [
        {
            "group": row.group_id,
            "topic": row.topic,
            "partition": row.partition,
            "committed": row.committed_offset,
            "start": row.log_start_offset,
            "end": row.log_end_offset,
            "lag": row.lag,
            "leader_epoch": row.leader_epoch,
            "metadata": row.metadata,
            "member": row.member_id,
            "instance": row.group_instance_id,
            "client": row.client_id,
            "host": row.host,
            "keeps_decision": row.keeps_decision,
            "note": _DECISION if row.keeps_decision else row.error,
        }
        for row in lag
    ]


def reset(arguments: argparse.Namespace, output: Output) -> int:
    """Show old and new offsets. Commit the new offsets only with `--execute`."""
    topics = _topics(arguments.topic)
    with KafkaAdmin(**configuration(arguments)) as admin:
        resets = admin.reset_offsets(
            arguments.group, _target(arguments), topics, dry_run=not arguments.execute
        )
        committed = {} if resets.executed else admin.list_group_offsets(arguments.group)
    output.rows([_reset_row(resets, row) for row in resets], _RESET)
    if not resets:
        output.note("Nothing to reset: the group has committed nothing; name topics by --topic")
        return 1
    if resets.is_new:
        output.note(f"There was no group {resets.group_id!r}")
    if any(is_decision(offset.metadata) for offset in committed.values()):
        output.note(f"This group {_KEEPER}, which would lose them and refuse to start")
    if not resets.executed:
        output.note("Nothing was committed: this was a dry run; add --execute")
    return 0


def _target(arguments: argparse.Namespace) -> Target:
    if arguments.to_offset is not None:
        offset: int = arguments.to_offset
        return offset
    if arguments.shift_by is not None:
        return Shift(arguments.shift_by)
    named: str = arguments.to or arguments.ago
    return named


def _reset_row(resets: OffsetResets, row: OffsetReset) -> dict[str, object]:
    return {
        "group": resets.group_id,
        "topic": row.topic,
        "partition": row.partition,
        "old": row.old_offset,
        "new": row.new_offset,
        "change": None if row.old_offset is None else row.new_offset - row.old_offset,
        "note": row.note,
        "executed": resets.executed,
    }


def delete(arguments: argparse.Namespace, output: Output) -> int:
    """Delete groups, or with `--topic` only their committed offsets of these topics."""
    topics = _topics(arguments.topic)
    rows: list[dict[str, object]] = []
    with KafkaAdmin(**configuration(arguments)) as admin:
        if topics is None:
            for group_id, error in admin.delete_groups(arguments.groups).items():
                rows.append({"group": group_id, **_outcome(error)})
        else:
            for group_id in arguments.groups:
                rows += _deleted_offsets(admin, group_id, topics)
    output.rows(rows, _DELETED if topics else _DELETED_GROUPS)
    return int(not all(row["deleted"] for row in rows))


def _deleted_offsets(
    admin: KafkaAdmin, group_id: str, topics: Sequence[str | TopicPartition]
) -> list[dict[str, object]]:
    try:
        errors = admin.delete_offsets(group_id, topics)
    except KafkaError as error:
        return [{"group": group_id, "topic": None, "partition": None, **_outcome(error)}]
    return [
        {"group": group_id, **where._asdict(), **_outcome(error)} for where, error in errors.items()
    ]


def _outcome(error: KafkaError | None) -> dict[str, object]:
    return {"deleted": error is None, "error": None if error is None else str(error)}


def _topics(given: Sequence[str] | None) -> list[str | TopicPartition] | None:
    """Return topics (`events`) or their partitions (`events:0,1`). A topic's name has no colon."""
    if given is None:
        return None
    topics: list[str | TopicPartition] = []
    for text in given:
        topic, colon, numbers = text.partition(":")
        if not colon:
            topics.append(topic)
            continue
        try:
            topics += [TopicPartition(topic, int(number)) for number in numbers.split(",")]
        except ValueError:
            expected = "Give a topic, or partitions as 'events:0,1'"
            raise ConfigurationError("--topic", "found {}", expected, text) from None
    return topics
