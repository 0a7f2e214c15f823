"""Changes of the topics since the last micro-batch, and where to go on after them."""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from uuid import UUID

from spark_kafka_source.spark.conditions import (
    DataLoss,
    added_partition_not_from_zero,
    available_now_end_lost,
    available_now_end_shrunk,
    cannot_read_range,
    log_truncated,
    not_copied,
    partition_offset_changed,
    partitions_deleted,
    partitions_left_out,
    topics_recreated,
)
from spark_kafka_source.spark.source.offset_arithmetic import LogEnds, only
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.spark.source.planner import OffsetPlanner
from spark_kafka_source.spark.source.source_offset import SourceOffset
from spark_kafka_source.topic_partition import TopicPartition

Gone = Mapping[TopicPartition, tuple[int, UUID | None]]
"""Partitions that are gone, with the query's offset and their topic's id."""


def new_starts(
    position: SourceOffset,
    ends: LogEnds,
    planner: OffsetPlanner,
    data_loss: DataLoss,
    known_gone: Gone = MappingProxyType({}),
) -> Offsets:
    """Return the starts of the partitions that do not go on from `position`.

    Added partitions, and those of a topic made anew, begin at their start. A truncated log goes on
    where it was cut. A partition that is `known_gone` and comes back with the same topic id goes on
    from the query's offset: it was hidden, for instance while access was denied. Each loss is
    reported, with `failOnDataLoss=true` as `DataLossError`.
    """
    recreated = _recreated_topics(position, ends)
    if recreated:
        # An older checkpoint does not say which cluster it is of.
        data_loss.report(
            topics_recreated(recreated, "" if position.cluster_id else ends.cluster_id)
        )
    gone = position.offsets.keys() - ends.offsets.keys() - known_gone.keys()
    left_out = {partition for partition in gone if not planner.reads(partition)}
    if gone - left_out:
        data_loss.report(partitions_deleted(gone - left_out))
    if left_out:
        data_loss.report(partitions_left_out(left_out))
    anew = [partition for partition in ends.offsets if partition.topic in recreated]
    added = ends.offsets.keys() - position.offsets.keys() - set(anew)
    back = {
        partition: known_gone[partition][0]
        for partition in added & known_gone.keys()
        if known_gone[partition][1]
        and known_gone[partition][1] == ends.topic_ids.get(partition.topic)
    }
    kept = {
        partition: offset
        for partition, offset in position.offsets.items()
        if partition in ends.offsets and partition.topic not in recreated
    }
    return {
        **_truncated(kept, position.leader_epochs, ends, planner, data_loss),
        **planner.earliest(anew),
        **_added_starts(added - back.keys(), planner, data_loss),
        **back,
    }


def moved_starts(
    position: SourceOffset, ends: LogEnds, planner: OffsetPlanner, data_loss: DataLoss
) -> Offsets:
    """Return the starts of all partitions after the topics moved to another cluster.

    The offsets of `position` count there. Its topic ids and leader epochs do not.
    """
    read = only(position.offsets, ends.offsets)
    for partition in sorted(read):
        end = ends.offsets[partition]
        if end < read[partition]:
            data_loss.report(not_copied(partition, read[partition], end))
            read[partition] = end
    moved = SourceOffset({**position.offsets, **read})
    return {**read, **new_starts(moved, ends, planner, data_loss)}


def aged_out(begin: Offsets, ends: LogEnds, planner: OffsetPlanner, data_loss: DataLoss) -> Offsets:
    """Return the earliest offsets of the partitions whose next records were deleted.

    Otherwise a stream with a limit would pass the deleted offsets in many micro-batches.
    """
    waiting = [partition for partition, end in ends.offsets.items() if begin[partition] < end]
    starts = {}
    for partition, earliest in planner.earliest(waiting).items():
        if begin[partition] < earliest:
            lost = f"{partition}: offsets {begin[partition]} to {earliest}"
            data_loss.report(cannot_read_range(f"{lost} were deleted before they were read"))
            starts[partition] = min(earliest, ends.offsets[partition])
    return starts


def gone_from(position: SourceOffset, ends: LogEnds) -> Gone:
    """Return the partitions of `position` that are gone."""
    return {
        partition: (offset, position.topic_ids.get(partition.topic))
        for partition, offset in position.offsets.items()
        if partition not in ends.offsets
    }


def _added_starts(
    added: Collection[TopicPartition], planner: OffsetPlanner, data_loss: DataLoss
) -> Offsets:
    """Return the starts of added partitions. A start after 0 means that records were lost."""
    starts = planner.earliest(added)
    late = {partition: offset for partition, offset in starts.items() if offset}
    if late:
        data_loss.report(added_partition_not_from_zero(late))
    return starts


def check_pinned_end(pinned: Offsets, latest: Offsets) -> None:
    """Raise `OffsetMismatchError` if a topic no longer reaches its pinned end.

    A run with `Trigger.AvailableNow` ends where it was pinned, or not at all.
    """
    gone = pinned.keys() - latest.keys()
    if gone:
        raise available_now_end_lost(gone)
    for partition in sorted(pinned):
        if pinned[partition] > latest[partition]:
            raise available_now_end_shrunk(partition, pinned[partition], latest[partition])


def _recreated_topics(position: SourceOffset, ends: LogEnds) -> set[str]:
    return {
        name
        for name, topic_id in position.topic_ids.items()
        if ends.topic_ids.get(name, topic_id) != topic_id
    }


def _truncated(
    read: Offsets,
    leader_epochs: Mapping[TopicPartition, int],
    ends: LogEnds,
    planner: OffsetPlanner,
    data_loss: DataLoss,
) -> Offsets:
    """Return the ends of truncated logs: by leader epoch (KIP-320), or if logs are shorter.

    The leader epoch under which an offset was read must still reach this offset.
    """
    changed = {
        partition: leader_epochs[partition]
        for partition in read
        if partition in leader_epochs
        and ends.leader_epochs.get(partition, leader_epochs[partition]) != leader_epochs[partition]
    }
    starts = {}
    for partition, end in planner.epoch_ends(changed).items():
        if 0 <= end < read[partition]:
            data_loss.report(log_truncated(partition, read[partition], end))
            starts[partition] = min(end, ends.offsets[partition])
    for partition in sorted(read.keys() - starts.keys()):
        end = ends.offsets[partition]
        if end < read[partition]:
            data_loss.report(partition_offset_changed(partition, read[partition], end))
            starts[partition] = end
    return starts
