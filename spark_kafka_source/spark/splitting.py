"""Cuts ranges of offsets into smaller ones, so that a skewed topic keeps more tasks busy."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from spark_kafka_source.consumer import OffsetRange


def split_ranges(
    ranges: Iterable[OffsetRange],
    *,
    max_records_per_partition: int | None = None,
    min_partitions: int | None = None,
) -> list[OffsetRange]:
    """The same offsets in more ranges, none empty, in the same order.

    First no range is left with more than `max_records_per_partition` offsets; then, where they are
    still fewer than `min_partitions`, the large ones are cut in proportion to their size, so that
    there are about so many.
    """
    found = [each for each in ranges if each.start < each.end]
    if max_records_per_partition is not None:
        found = [
            part
            for each in found
            for part in _cut(each, -(-_size(each) // max_records_per_partition))
        ]
    if min_partitions is not None and len(found) < min_partitions:
        found = _in_proportion(found, min_partitions)
    return found


def _in_proportion(ranges: list[OffsetRange], min_partitions: int) -> list[OffsetRange]:
    """Ranges too small to be cut are set aside first: what is left is shared among the others."""
    total = sum(map(_size, ranges))
    small = {each for each in ranges if _share(each, total, min_partitions) == 1}
    rest = total - sum(map(_size, small))
    wanted = max(min_partitions - len(small), 1)
    return [
        part
        for each in ranges
        for part in _cut(each, 1 if each in small else _share(each, rest, wanted))
    ]


def _share(wanted: OffsetRange, total: int, partitions: int) -> int:
    """Its part of `partitions`, rounded half up, but one at least."""
    return max((2 * _size(wanted) * partitions + total) // (2 * total), 1)


def _cut(wanted: OffsetRange, parts: int) -> Iterator[OffsetRange]:
    """Even parts; what division leaves over goes to the last ones."""
    start = wanted.start
    for left in range(min(parts, _size(wanted)), 0, -1):
        end = start + (wanted.end - start) // left
        yield replace(wanted, start=start, end=end)
        start = end


def _size(wanted: OffsetRange) -> int:
    return wanted.end - wanted.start
