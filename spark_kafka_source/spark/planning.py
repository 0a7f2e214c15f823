"""Pure functions on offsets: which ranges to read, and how much of them at a time."""

from collections.abc import Mapping
from types import MappingProxyType
from uuid import UUID

from spark_kafka_source.consumer import OffsetRange
from spark_kafka_source.spark.offsets import Offsets
from spark_kafka_source.topic_partition import TopicPartition


def offset_ranges(
    starts: Offsets, ends: Offsets, topic_ids: Mapping[str, UUID] = MappingProxyType({})
) -> list[OffsetRange]:
    """One range for each partition that has something to read, in order of topic and partition.

    `starts` has every partition that `ends` has.
    """
    return [
        OffsetRange(each, starts[each], end, topic_ids.get(each.topic))
        for each, end in sorted(ends.items())
        if starts[each] < end
    ]


def limit_offsets(starts: Offsets, latest: Offsets, limit: int) -> dict[TopicPartition, int]:
    """Ends that share `limit` offsets out over all partitions, in proportion to what waits in each.

    A partition with anything waiting gets at least one, so that none starves; the sum may pass the
    limit by as many.
    """
    waiting = {each: max(end - starts[each], 0) for each, end in latest.items()}
    total = sum(waiting.values())
    if total <= limit:
        return {each: starts[each] + count for each, count in waiting.items()}
    return {
        each: starts[each] + min(count, max(limit * count // total, 1))
        for each, count in waiting.items()
    }


def moved(before: Offsets, after: Offsets) -> Mapping[TopicPartition, int]:
    """Those of `after` that differ from `before`."""
    return {each: offset for each, offset in after.items() if before.get(each) != offset}
