"""Changes of the topics since the last micro-batch, and where to go on after them."""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from uuid import UUID

from spark_kafka_source.spark.conditions import (
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
from spark_kafka_source.spark.source.data_loss import DataLoss
from spark_kafka_source.spark.source.log_ends import LogEnds
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
    left_out = {each for each in gone if not planner.reads(each)}
    if gone - left_out:
        data_loss.report(partitions_deleted(gone - left_out))
    if left_out:
        data_loss.report(partitions_left_out(left_out))
    anew = [each for each in ends.offsets if each.topic in recreated]
    added = ends.offsets.keys() - position.offsets.keys() - set(anew)
    back = {
        each: known_gone[each][0]
        for each in added & known_gone.keys()
        if known_gone[each][1] and known_gone[each][1] == ends.topic_ids.get(each.topic)
    }
    kept = {
        each: offset
        for each, offset in position.offsets.items()
        if each in ends.offsets and each.topic not in recreated
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
    read = {each: at for each, at in position.offsets.items() if each in ends.offsets}
    for each in sorted(read):
        if ends.offsets[each] < read[each]:
            data_loss.report(not_copied(each, read[each], ends.offsets[each]))
            read[each] = ends.offsets[each]
    here = SourceOffset({**position.offsets, **read})
    return {**read, **new_starts(here, ends, planner, data_loss)}


def aged_out(begin: Offsets, ends: LogEnds, planner: OffsetPlanner, data_loss: DataLoss) -> Offsets:
    """Return the earliest offsets of the partitions whose next records were deleted.

    Otherwise a stream with a limit would pass the deleted offsets in many micro-batches.
    """
    waiting = [each for each, end in ends.offsets.items() if begin[each] < end]
    starts = {}
    for each, earliest in planner.earliest(waiting).items():
        if begin[each] < earliest:
            what = f"{each}: offsets {begin[each]} to {earliest} were deleted before they were read"
            data_loss.report(cannot_read_range(what))
            starts[each] = min(earliest, ends.offsets[each])
    return starts


def gone_from(position: SourceOffset, ends: LogEnds) -> Gone:
    """Return the partitions of `position` that are gone."""
    return {
        each: (offset, position.topic_ids.get(each.topic))
        for each, offset in position.offsets.items()
        if each not in ends.offsets
    }


def _added_starts(
    added: Collection[TopicPartition], planner: OffsetPlanner, data_loss: DataLoss
) -> Offsets:
    """Return the starts of added partitions. A start after 0 means that records were lost."""
    starts = planner.earliest(added)
    late = {each: offset for each, offset in starts.items() if offset}
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
    for each in sorted(pinned):
        if pinned[each] > latest[each]:
            raise available_now_end_shrunk(each, pinned[each], latest[each])


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
        each: leader_epochs[each]
        for each in read
        if each in leader_epochs
        and ends.leader_epochs.get(each, leader_epochs[each]) != leader_epochs[each]
    }
    starts = {}
    for each, end in planner.epoch_ends(changed).items():
        if 0 <= end < read[each]:
            data_loss.report(log_truncated(each, read[each], end))
            starts[each] = min(end, ends.offsets[each])
    for each in sorted(read.keys() - starts.keys()):
        if ends.offsets[each] < read[each]:
            data_loss.report(partition_offset_changed(each, read[each], ends.offsets[each]))
            starts[each] = ends.offsets[each]
    return starts
