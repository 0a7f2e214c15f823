"""Pure functions on offsets: which ranges to read, and how much of them at a time."""

from collections.abc import Mapping

from spark_kafka_source.fetch import OffsetRange
from spark_kafka_source.spark.source.log_ends import LogEnds
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.topic_partition import TopicPartition

ALL_OFFSETS = range(2**63)


def offset_ranges(starts: Offsets, ends: LogEnds, within: range = ALL_OFFSETS) -> list[OffsetRange]:
    """One range for each partition that has something to read, in order of topic and partition.

    `starts` has every partition that `ends` has; offsets not `within` are left out.
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
    """Ends that share `limit` offsets out over all partitions, in proportion to what waits in each.

    A partition with anything waiting gets at least one, so that none starves; the sum may pass the
    limit by as many.
    """
    return share_out(starts, latest, limit, sum(_waiting(starts, latest).values()))


def share_out(starts: Offsets, latest: Offsets, part: int, whole: int) -> dict[TopicPartition, int]:
    """Ends by which `part` of `whole` is read of what waits in each partition, but one at least."""
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
    """Those of `after` that differ from `before`."""
    return {each: offset for each, offset in after.items() if before.get(each) != offset}
