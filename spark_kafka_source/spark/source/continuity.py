"""Whether the topics are still those that were read, and where to go on where they are not."""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from uuid import UUID

from spark_kafka_source.spark.conditions import (
    added_partition_not_from_zero,
    available_now_end_lost,
    available_now_end_shrunk,
    cannot_read_range,
    log_truncated,
    partition_offset_changed,
    partitions_deleted,
    topics_recreated,
)
from spark_kafka_source.spark.source.data_loss import DataLoss
from spark_kafka_source.spark.source.log_ends import LogEnds
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.spark.source.planner import OffsetPlanner
from spark_kafka_source.spark.source.source_offset import SourceOffset
from spark_kafka_source.topic_partition import TopicPartition

Gone = Mapping[TopicPartition, tuple[int, UUID | None]]
"""Partitions that are gone: where the query was in them, and their topic's id."""


def new_starts(
    position: SourceOffset,
    ends: LogEnds,
    planner: OffsetPlanner,
    data_loss: DataLoss,
    known_gone: Gone = MappingProxyType({}),
) -> Offsets:
    """Where those partitions begin that do not go on from `position`.

    Added ones, and those of a topic made anew, begin at their start; a log that was truncated goes
    on where it was cut. What is `known_gone` already goes on where the query was in it, once it is
    back: it was hidden for a while, as where access is denied. Each loss is reported, with
    `failOnDataLoss=true` as `DataLossError`.
    """
    recreated = _recreated_topics(position, ends)
    if recreated:
        data_loss.report(topics_recreated(recreated))
    gone = position.offsets.keys() - ends.offsets.keys() - known_gone.keys()
    if gone:
        data_loss.report(partitions_deleted(gone))
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


def aged_out(begin: Offsets, ends: LogEnds, planner: OffsetPlanner, data_loss: DataLoss) -> Offsets:
    """Where those partitions begin whose next records are gone: at the earliest that are left.

    Else a stream that reads a little at a time would pass through what is gone a little at a time.
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
    """The partitions that are gone, and where the query is in them."""
    return {
        each: (offset, position.topic_ids.get(each.topic))
        for each, offset in position.offsets.items()
        if each not in ends.offsets
    }


def _added_starts(
    added: Collection[TopicPartition], planner: OffsetPlanner, data_loss: DataLoss
) -> Offsets:
    """Added partitions begin at their start, which must be 0 or records were lost."""
    starts = planner.earliest(added)
    late = {each: offset for each, offset in starts.items() if offset}
    if late:
        data_loss.report(added_partition_not_from_zero(late))
    return starts


def check_pinned_end(pinned: Offsets, latest: Offsets) -> None:
    """A run with `Trigger.AvailableNow` ends where it was pinned, or not at all.

    Raises `OffsetMismatchError` where the topics no longer reach so far.
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
    """Where logs part from what was read: by leader epoch (KIP-320), or since they are shorter.

    A leader epoch that a log had when it was read up to an offset must still reach there.
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
