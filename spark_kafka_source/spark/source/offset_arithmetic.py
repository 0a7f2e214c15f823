"""Arithmetic on offsets: the ranges of a micro-batch, its limits, and the division into tasks."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from spark_kafka_source.fetch import OffsetRange
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class LogEnds:
    """Ends of partitions by the isolation level, or planned ends.

    `leader_epochs` has the epochs of the leaders that gave the ends. Old brokers give no epoch or
    no topic id, and some give no `cluster_id`: it is empty then.
    """

    offsets: Offsets
    leader_epochs: Mapping[TopicPartition, int] = field(default_factory=dict)
    topic_ids: Mapping[str, UUID] = field(default_factory=dict)
    cluster_id: str = ""


ALL_OFFSETS = range(2**63)


def offset_ranges(starts: Offsets, ends: LogEnds, within: range = ALL_OFFSETS) -> list[OffsetRange]:
    """Return a range for each partition with something to read, by topic and partition.

    `starts` has every partition that `ends` has. Offsets not `within` are left out.
    """
    ranges = (
        OffsetRange(
            partition,
            max(starts[partition], within.start),
            min(end, within.stop),
            ends.topic_ids.get(partition.topic),
            ends.leader_epochs.get(partition, -1),
        )
        for partition, end in sorted(ends.offsets.items())
    )
    return [planned for planned in ranges if planned.size > 0]


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
        return {partition: starts[partition] + count for partition, count in waiting.items()}
    return {
        partition: starts[partition] + min(count, max(part * count // whole, 1))
        for partition, count in waiting.items()
    }


def _waiting(starts: Offsets, latest: Offsets) -> dict[TopicPartition, int]:
    return {partition: max(end - starts[partition], 0) for partition, end in latest.items()}


def only(
    numbers: Mapping[TopicPartition, int], partitions: Container[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return the offsets or leader epochs of these partitions."""
    return {partition: number for partition, number in numbers.items() if partition in partitions}


def moved(before: Offsets, after: Offsets) -> Mapping[TopicPartition, int]:
    """Return the offsets of `after` that differ from `before`."""
    return {
        partition: offset for partition, offset in after.items() if before.get(partition) != offset
    }


def split_ranges(
    ranges: Iterable[OffsetRange],
    *,
    max_records_per_partition: int | None = None,
    min_partitions: int | None = None,
) -> list[OffsetRange]:
    """Return the same offsets in more ranges, none empty, in the same order.

    First cut ranges with more than `max_records_per_partition` offsets. If there are still fewer
    than `min_partitions` ranges, cut the large ones in proportion to their size, into about so
    many.
    """
    split = [planned for planned in ranges if planned.start < planned.end]
    if max_records_per_partition is not None:
        split = [
            part
            for planned in split
            for part in _cut(planned, -(-planned.size // max_records_per_partition))
        ]
    if min_partitions is not None and len(split) < min_partitions:
        split = _in_proportion(split, min_partitions)
    return split


def gather_ranges(
    ranges: Sequence[OffsetRange], min_records: int, min_partitions: int | None = None
) -> list[tuple[OffsetRange, ...]]:
    """Group the ranges, in order, by `min_records` offsets or more. The last may have fewer.

    Groups are smaller if there would otherwise be fewer than `min_partitions`.
    """
    least_groups = min_partitions or 0
    if least_groups:
        min_records = min(min_records, sum(planned.size for planned in ranges) // least_groups)
    groups: list[list[OffsetRange]] = []
    gathered = min_records
    for done, planned in enumerate(ranges):
        if gathered >= min_records or len(groups) + len(ranges) - done <= least_groups:
            groups.append([])
            gathered = 0
        groups[-1].append(planned)
        gathered += planned.size
    return [tuple(group) for group in groups]


def _in_proportion(ranges: list[OffsetRange], min_partitions: int) -> list[OffsetRange]:
    """Cut the large ranges into the number of parts that the small ones leave over."""
    total = sum(planned.size for planned in ranges)
    small = {planned for planned in ranges if _share(planned, total, min_partitions) == 1}
    rest = total - sum(planned.size for planned in small)
    large_parts = max(min_partitions - len(small), 1)
    return [
        part
        for planned in ranges
        for part in _cut(planned, 1 if planned in small else _share(planned, rest, large_parts))
    ]


def _share(planned: OffsetRange, total: int, partitions: int) -> int:
    """Return the range's part of `partitions`, rounded half up, but at least 1."""
    return max((2 * planned.size * partitions + total) // (2 * total), 1)


def _cut(planned: OffsetRange, parts: int) -> Iterator[OffsetRange]:
    """Yield even parts. The remainder of the division goes to the last ones."""
    start = planned.start
    for left in range(min(parts, planned.size), 0, -1):
        end = start + (planned.end - start) // left
        yield replace(planned, start=start, end=end)
        start = end
