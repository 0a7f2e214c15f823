"""Check of acknowledged records, by a reader that shares no code with the producer."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tests.producer.reading import read_by_confluent
from tools.reliability.writing.load import Load


@dataclass(frozen=True, slots=True)
class Verdict:
    """Counts of records. With idempotence all but `acknowledged` must be 0; `lost` always."""

    acknowledged: int
    failed: int
    lost: int
    doubled: int
    out_of_order: int
    """Records behind one of their partition that was handed over later."""
    misplaced: int
    """Records that are not at the producer's partition and offset."""

    def __str__(self) -> str:
        return (
            f"lost {self.lost}, doubled {self.doubled}, out of order {self.out_of_order}, "
            f"elsewhere than said {self.misplaced}, failed {self.failed}"
        )

    def __add__(self, other: "Verdict") -> "Verdict":
        return Verdict(
            self.acknowledged + other.acknowledged,
            self.failed + other.failed,
            self.lost + other.lost,
            self.doubled + other.doubled,
            self.out_of_order + other.out_of_order,
            self.misplaced + other.misplaced,
        )


NOTHING = Verdict(0, 0, 0, 0, 0, 0)


def judge(load: Load, servers: str, topic: str, partitions: int) -> Verdict:
    """Read the topic to its end, and judge it. `load` must be over."""
    read = read_by_confluent(servers, topic, partitions)
    found = {
        partition: [int((row.value or b"").split(b" ")[0]) for row in rows]
        for partition, rows in read.items()
    }
    counts = Counter(number for numbers in found.values() for number in numbers)
    return Verdict(
        acknowledged=len(load.acknowledged),
        failed=len(load.failed),
        lost=len(load.acknowledged.keys() - counts.keys()),
        doubled=counts.total() - len(counts),
        out_of_order=sum(map(_descents, found.values())),
        misplaced=_misplaced(load, found),
    )


def _descents(numbers: Sequence[int]) -> int:
    first_ones = list(dict.fromkeys(numbers))
    return sum(before > after for before, after in pairwise(first_ones))


def _misplaced(load: Load, found: Mapping[int, Sequence[int]]) -> int:
    """Count the misplaced records. A broker need not give a duplicate's offset: then it is -1."""
    said = [(number, each) for number, each in load.acknowledged.items() if each is not None]
    return sum(
        found[each.partition][each.offset : each.offset + 1] != [number]
        for number, each in said
        if each.offset >= 0
    )
