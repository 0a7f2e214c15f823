"""Changes of a group's committed offsets, as `kafka-consumer-groups --reset-offsets` makes them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from spark_kafka_source.admin.committed import Committed, all_committed
from spark_kafka_source.admin.errors import (
    GroupNotEmptyError,
    GroupNotFoundError,
    typed,
    unless_error,
)
from spark_kafka_source.admin.group_descriptions import describe_groups, list_groups
from spark_kafka_source.admin.reset_targets import Shift, Target, timestamp_of
from spark_kafka_source.admin.topics import LogRange, log_ranges, partitions_named
from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import BrokerError, LocalError, error_named
from spark_kafka_source.fetch import NO_OFFSET, list_offsets
from spark_kafka_source.groups import commit_offsets
from spark_kafka_source.topic_partition import TopicPartition

_WHAT = "its offsets can be reset"
_EMPTY = "Empty"


@dataclass(frozen=True, slots=True)
class OffsetReset:
    """One partition: its old committed offset (None: there was none) and its new one.

    `note` says why the new offset is not the requested one: the log does not have it.
    """

    topic: str
    partition: int
    old_offset: int | None
    new_offset: int
    note: str | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        """Topic and partition."""
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class OffsetResets:
    """Result of a reset, with a row for each partition. `executed` is false after a dry run.

    `is_new` is true if the group did not exist. Its name may be mistyped, or it is to begin
    somewhere.
    """

    group_id: str
    executed: bool
    is_new: bool
    rows: tuple[OffsetReset, ...]

    def __iter__(self) -> Iterator[OffsetReset]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


async def reset_offsets(
    client: KafkaClient,
    group_id: str,
    to: Target,
    topics: Iterable[str | TopicPartition] | None,
    *,
    dry_run: bool,
) -> OffsetResets:
    """See `KafkaAdmin.reset_offsets`."""
    timestamp = timestamp_of(to)
    is_new = await _check_inactive(client, group_id)
    committed = unless_error((await all_committed(client, [group_id]))[group_id])
    partitions = await _partitions(client, to, topics, committed)
    requested = await _requested(client, to, timestamp, partitions, committed)
    ranges = await log_ranges(client, partitions)
    rows = tuple(
        _row(where, committed, requested.get(where), ranges[where]) for where in sorted(partitions)
    )
    if rows and not dry_run:
        offsets = {row.topic_partition: row.new_offset for row in rows}
        try:
            await commit_offsets(client, group_id, offsets)
        except BrokerError as error:  # A member has joined meanwhile.
            raise typed(error, group_id, _WHAT) from error
    return OffsetResets(group_id, bool(rows) and not dry_run, is_new, rows)


async def _check_inactive(client: KafkaClient, group_id: str) -> bool:
    """Return whether the group is new. Raises `GroupNotEmptyError` if it has members."""
    described = (await describe_groups(client, [group_id]))[group_id]
    if isinstance(described, GroupNotFoundError):
        # The description and the offsets of a share or streams group are of another kind.
        for listing in await list_groups(client):
            if listing.group_id == group_id and not listing.has_offsets:
                what = f"Group {group_id!r} is a {listing.type} group"
                raise LocalError(f"{what}; {_WHAT} by Kafka's tools")
        return True
    group = unless_error(described)
    if group.members or group.state != _EMPTY:
        members = [str(member) for member in group.members]
        raise GroupNotEmptyError(group_id, _WHAT, group.state, members)
    return False


async def _partitions(
    client: KafkaClient,
    to: Target,
    topics: Iterable[str | TopicPartition] | None,
    committed: Committed,
) -> list[TopicPartition]:
    if isinstance(to, Mapping):
        if topics is not None:
            raise LocalError("Give offsets by partition, or topics, but not both")
        return await partitions_named(client, [TopicPartition(*partition) for partition in to])
    return await partitions_named(client, list(committed) if topics is None else topics)


async def _requested(
    client: KafkaClient,
    to: Target,
    timestamp: int | None,
    partitions: list[TopicPartition],
    committed: Committed,
) -> dict[TopicPartition, int]:
    """Return the requested offsets, in the log or not. A partition without one goes to its end."""
    if timestamp is not None:
        offsets = await list_offsets(client, dict.fromkeys(partitions, timestamp))
        return {where: at.offset for where, at in offsets.items() if at.offset != NO_OFFSET}
    if isinstance(to, Mapping):
        return {TopicPartition(*where): at for where, at in to.items()}
    if isinstance(to, int):
        return dict.fromkeys(partitions, to)
    if isinstance(to, Shift):
        return {where: _shifted(where, to, committed) for where in partitions}
    return {where: committed[where].offset for where in partitions if where in committed}


def _shifted(where: TopicPartition, shift: Shift, committed: Committed) -> int:
    if where not in committed:
        raise LocalError(f"{where}: the group has committed no offset there to shift")
    return committed[where].offset + shift.by


def _row(
    where: TopicPartition, committed: Committed, requested: int | None, reach: LogRange
) -> OffsetReset:
    if reach.start is None or reach.end is None:
        raise BrokerError(error_named(reach.error or "LEADER_NOT_AVAILABLE"), f"Offsets of {where}")
    old = committed[where].offset if where in committed else None
    if requested is None:
        return OffsetReset(*where, old, reach.end, "there is no such offset: the end of the log")
    if requested > reach.end:
        return OffsetReset(*where, old, reach.end, f"{requested} is after the end of the log")
    if requested < reach.start:
        return OffsetReset(*where, old, reach.start, f"{requested} is before the start of the log")
    return OffsetReset(*where, old, requested)
