"""Functions on offsets: the ranges to read, and the limits of a micro-batch."""

from collections.abc import Mapping

from spark_kafka_source.fetch import OffsetRange
from spark_kafka_source.spark.source.log_ends import LogEnds
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.topic_partition import TopicPartition

ALL_OFFSETS = range(2**63)


def offset_ranges(starts: Offsets, ends: LogEnds, within: range = ALL_OFFSETS) -> list[OffsetRange]:
    """Return a range for each partition with something to read, by topic and partition.

    `starts` has every partition that `ends` has. Offsets not `within` are left out.
    """
    ranges = (
        OffsetRange(
            each,
            max(starts[each], within.start),
            min(end, within.stop),
            ends.topic_ids.get(each.topic),
            ends.leader_epochs.get(each, -1),
        )
        for each, end in sorted(ends.offsets.items())
    )
    return [each for each in ranges if each.size > 0]


def limit_offsets(starts: Offsets, latest: Offsets, limit: int) -> dict[TopicPartition, int]:
    """Return ends that share out `limit` offsets, in proportion to what waits in each partition.

    A partition with anything waiting gets at least one, so that none starves. The sum may pass the
    limit by as many.
    """
    return share_out(starts, latest, limit, sum(_waiting(starts, latest).values()))


def share_out(starts: Offsets, latest: Offsets, part: int, whole: int) -> dict[TopicPartition, int]:
    """Return ends that take `part / whole` of each partition's waiting offsets, at least one."""
    waiting = _waiting(starts, latest)
    if whole <= part:
        return {each: starts[each] + count for each, count in waiting.items()}
    return {
        each: starts[each] + min(count, max(part * count // whole, 1))
        for each, count in waiting.items()
    }


def _waiting(starts: Offsets, latest: Offsets) -> dict[TopicPartition, int]:
    return {each: max(end - starts[each], 0) for each, end in latest.items()}


def moved(before: Offsets, after: Offsets) -> Mapping[TopicPartition, int]:
    """Return the offsets of `after` that differ from `before`."""
    return {each: offset for each, offset in after.items() if before.get(each) != offset}
