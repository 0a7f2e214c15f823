"""Whether the topics are still those that were read, and where to go on where they are not."""

from collections.abc import Collection, Container, Mapping, Set
from typing import TypeVar

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
from spark_kafka_source.spark.data_loss import DataLoss
from spark_kafka_source.spark.log_ends import LogEnds
from spark_kafka_source.spark.offsets import Offsets
from spark_kafka_source.spark.planner import OffsetPlanner
from spark_kafka_source.spark.source_offset import SourceOffset
from spark_kafka_source.topic_partition import TopicPartition

K = TypeVar("K")
V = TypeVar("V")


def new_starts(
    position: SourceOffset,
    ends: LogEnds,
    planner: OffsetPlanner,
    data_loss: DataLoss,
    known_gone: Set[TopicPartition] = frozenset(),
) -> Offsets:
    """Where those partitions begin that do not go on from `position`.

    Added ones, and those of a topic made anew, begin at their start; a log that was truncated goes
    on where it was cut. Each loss is reported, but for what is `known_gone`: with
    `failOnDataLoss=true` as `DataLossError`.
    """
    recreated = _recreated_topics(position, ends)
    if recreated:
        data_loss.report(topics_recreated(recreated))
    gone = position.offsets.keys() - ends.offsets.keys() - known_gone
    if gone:
        data_loss.report(partitions_deleted(gone))
    anew = [each for each in ends.offsets if each.topic in recreated]
    added = ends.offsets.keys() - position.offsets.keys() - set(anew)
    kept = {
        each: offset
        for each, offset in position.offsets.items()
        if each in ends.offsets and each.topic not in recreated
    }
    return {
        **_truncated(kept, position.leader_epochs, ends, planner, data_loss),
        **planner.earliest(anew),
        **_added_starts(added, planner, data_loss),
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


def with_gone(ends: LogEnds, position: SourceOffset) -> LogEnds:
    """The ends, and for partitions that are gone where the query is in them.

    They may be hidden for a while only, as where access is denied: they are then gone on with. A
    topic made anew has nothing of the old one.
    """
    gone = {
        each
        for each in position.offsets.keys() - ends.offsets.keys()
        if each.topic not in ends.topic_ids
        or ends.topic_ids[each.topic] == position.topic_ids.get(each.topic)
    }
    names = {each.topic for each in gone}
    return LogEnds(
        {**ends.offsets, **_of(gone, position.offsets)},
        {**ends.leader_epochs, **_of(gone, position.leader_epochs)},
        {**_of(names, position.topic_ids), **ends.topic_ids},
    )


def _of(wanted: Container[K], found: Mapping[K, V]) -> dict[K, V]:
    return {each: value for each, value in found.items() if each in wanted}


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
