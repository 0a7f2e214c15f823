"""Cutting of large ranges of offsets, and gathering of small ones, for tasks of a good size."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from spark_kafka_source.fetch import OffsetRange


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
    found = [each for each in ranges if each.start < each.end]
    if max_records_per_partition is not None:
        found = [
            part
            for each in found
            for part in _cut(each, -(-each.size // max_records_per_partition))
        ]
    if min_partitions is not None and len(found) < min_partitions:
        found = _in_proportion(found, min_partitions)
    return found


def gather_ranges(
    ranges: Sequence[OffsetRange], min_records: int, min_partitions: int | None = None
) -> list[tuple[OffsetRange, ...]]:
    """Group the ranges, in order, by `min_records` offsets or more. The last may have fewer.

    Groups are smaller if there would otherwise be fewer than `min_partitions`.
    """
    least_groups = min_partitions or 0
    if least_groups:
        min_records = min(min_records, sum(each.size for each in ranges) // least_groups)
    groups: list[list[OffsetRange]] = []
    gathered = min_records
    for done, each in enumerate(ranges):
        if gathered >= min_records or len(groups) + len(ranges) - done <= least_groups:
            groups.append([])
            gathered = 0
        groups[-1].append(each)
        gathered += each.size
    return [tuple(group) for group in groups]


def _in_proportion(ranges: list[OffsetRange], min_partitions: int) -> list[OffsetRange]:
    """Cut the large ranges into the number of parts that the small ones leave over."""
    total = sum(each.size for each in ranges)
    small = {each for each in ranges if _share(each, total, min_partitions) == 1}
    rest = total - sum(each.size for each in small)
    wanted = max(min_partitions - len(small), 1)
    return [
        part
        for each in ranges
        for part in _cut(each, 1 if each in small else _share(each, rest, wanted))
    ]


def _share(wanted: OffsetRange, total: int, partitions: int) -> int:
    """Return the range's part of `partitions`, rounded half up, but at least 1."""
    return max((2 * wanted.size * partitions + total) // (2 * total), 1)


def _cut(wanted: OffsetRange, parts: int) -> Iterator[OffsetRange]:
    """Yield even parts. The remainder of the division goes to the last ones."""
    start = wanted.start
    for left in range(min(parts, wanted.size), 0, -1):
        end = start + (wanted.end - start) // left
        yield replace(wanted, start=start, end=end)
        start = end
