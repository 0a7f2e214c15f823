"""The lag of groups behind the ends of their partitions."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from itertools import chain

import pyarrow as pa

from spark_kafka_source.admin.committed import Committed, all_committed, is_decision
from spark_kafka_source.admin.errors import unless_error
from spark_kafka_source.admin.group_descriptions import (
    GroupDescription,
    MemberDescription,
    describe_groups,
    list_groups,
)
from spark_kafka_source.admin.topics import LogRange, log_ranges
from spark_kafka_source.client import KafkaClient
from spark_kafka_source.topic_partition import TopicPartition

Owners = Mapping[TopicPartition, MemberDescription]
"""The members of a group, by the partitions that they read."""


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """Position of one group in one partition. None means unknown or missing.

    `committed_offset` is the offset of the next record to read. `log_end_offset` is the high
    watermark. `lag` is `log_end_offset` less `committed_offset`. It is negative if the log is
    shorter than what was committed. `error` is Kafka's name for why the log's offsets are not
    known. With `keeps_decision`, an exactly-once query keeps a decision in this offset: then
    `committed_offset` is the number of a micro-batch, and there is no `lag`.
    """

    group_id: str
    topic: str
    partition: int
    committed_offset: int | None
    log_start_offset: int | None
    log_end_offset: int | None
    lag: int | None
    leader_epoch: int | None
    metadata: str | None
    member_id: str | None
    group_instance_id: str | None
    client_id: str | None
    host: str | None
    error: str | None
    keeps_decision: bool = False

    @property
    def topic_partition(self) -> TopicPartition:
        """Topic and partition."""
        return TopicPartition(self.topic, self.partition)


_ARROW_TYPES = {
    "partition": pa.int32(),
    "committed_offset": pa.int64(),
    "log_start_offset": pa.int64(),
    "log_end_offset": pa.int64(),
    "lag": pa.int64(),
    "leader_epoch": pa.int32(),
    "keeps_decision": pa.bool_(),
}
_SCHEMA = pa.schema(
    [(column.name, _ARROW_TYPES.get(column.name, pa.string())) for column in fields(PartitionLag)]
)


@dataclass(frozen=True, slots=True)
class GroupLag:
    """A row for each partition that a group has committed or a member reads, in order."""

    rows: tuple[PartitionLag, ...]

    def __iter__(self) -> Iterator[PartitionLag]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def total(self) -> int | None:
        """Sum of the lags that are known; None if there is none, as where decisions are kept."""
        known = [row.lag for row in self.rows if row.lag is not None]
        return sum(known) if known else None

    def to_arrow(self) -> pa.Table:
        """Return the rows as a table with the fields of `PartitionLag` as columns."""
        return pa.Table.from_pylist([asdict(row) for row in self.rows], schema=_SCHEMA)


async def group_lag(client: KafkaClient, groups: Collection[str | GroupDescription]) -> GroupLag:
    """Return the lag of these groups, or of all groups of consumers if none is given.

    Raises `GroupNotFoundError` and `BrokerError`.
    """
    if groups:
        described = [group for group in groups if isinstance(group, GroupDescription)]
        named = [group for group in groups if isinstance(group, str)]
        outcomes = await describe_groups(client, named)
        described += map(unless_error, outcomes.values())
    else:
        listed = [group.group_id for group in await list_groups(client) if group.has_offsets]
        outcomes = await describe_groups(client, listed)
        # One that has ended meanwhile, or may not be described, is left out.
        described = [group for group in outcomes.values() if isinstance(group, GroupDescription)]
    return await _lag_of(client, {group.group_id: _owners(group) for group in described})


async def _lag_of(client: KafkaClient, owners: Mapping[str, Owners]) -> GroupLag:
    committed = await all_committed(client, owners)
    offsets = {group_id: unless_error(answer) for group_id, answer in committed.items()}
    partitions_of = {group: sorted({*owners[group], *offsets[group]}) for group in sorted(owners)}
    ranges = await log_ranges(client, chain.from_iterable(partitions_of.values()))
    return GroupLag(
        tuple(
            _row(group, where, offsets[group], owners[group], ranges[where])
            for group, partitions in partitions_of.items()
            for where in partitions
        )
    )


def _owners(group: GroupDescription) -> Owners:
    return {where: member for member in group.members for where in member.assignment}


def _row(
    group_id: str,
    where: TopicPartition,
    offsets: Committed,
    owners: Owners,
    reach: LogRange,
) -> PartitionLag:
    at, owner = offsets.get(where), owners.get(where)
    keeps_decision = at is not None and is_decision(at.metadata)
    return PartitionLag(
        group_id,
        *where,
        at.offset if at else None,
        reach.start,
        reach.end,
        reach.end - at.offset if at and reach.end is not None and not keeps_decision else None,
        at.leader_epoch if at and at.leader_epoch >= 0 else None,
        at.metadata if at else None,
        owner.member_id if owner else None,
        owner.group_instance_id if owner else None,
        owner.client_id if owner else None,
        owner.host if owner else None,
        reach.error,
        keeps_decision,
    )
