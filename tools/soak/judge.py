"""The account of each row in each stage."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields

import numpy as np
import numpy.typing as npt

from tools.reliability.group_driver import Range
from tools.soak.ledger import ABORTED, COMMITTED, STATES, NumbersAt, Truth
from tools.soak.rows import KEYS


@dataclass(frozen=True, slots=True)
class Verdict:
    """Counts of rows of one stage. All but `rows` and `again` must be 0."""

    rows: int = 0
    """Seen rows, each counted once."""
    lost: int = 0
    doubled: int = 0
    out_of_order: int = 0
    """Rows that are first seen after a later row of the same key."""
    aborted: int = 0
    """Seen rows of aborted transactions."""
    phantom: int = 0
    """Seen rows that were never written, or with other contents."""
    again: int = 0
    """Rows that were read again because a reader was lost before its commit."""

    def __add__(self, other: "Verdict") -> "Verdict":
        mine, theirs = asdict(self), asdict(other)
        return Verdict(**{name: mine[name] + theirs[name] for name in mine})

    @property
    def anomalies(self) -> int:
        """The number of all wrong rows."""
        return self.lost + self.doubled + self.out_of_order + self.aborted + self.phantom


COUNTS = tuple(each.name for each in fields(Verdict))


class Stage:
    """Seen rows of one stage, one byte for each."""

    def __init__(self) -> None:
        self._counts = bytearray()
        self._latest = [-1] * KEYS
        self._doubled = self._again = self._out_of_order = self._phantom = self._aborted = 0

    def saw(self, number: int | None, *, may_be_again: bool = False) -> None:
        """Count one row. None means a row that was never written."""
        if number is None or number < 0:
            self._phantom += 1
            return
        if number >= len(self._counts):
            self._counts.extend(bytes(number + 1 - len(self._counts)))
        if self._counts[number]:
            self._again += may_be_again
            self._doubled += not may_be_again
            return
        self._counts[number] = 1
        key = number % KEYS
        self._out_of_order += number < self._latest[key]
        self._latest[key] = max(number, self._latest[key])

    def saw_aborted(self) -> None:
        """Count one row with an unknown number, from an aborted transaction."""
        self._aborted += 1

    def misplaced(self) -> None:
        """Count one row that comes after a later one, whatever their keys."""
        self._out_of_order += 1

    def verdict(self, truth: Truth, until: int | None = None) -> Verdict:
        """Judge the seen rows. Rows from `until` on do not count as missing yet."""
        states = truth.states(len(self._counts))
        seen = np.zeros(len(states), np.bool_)
        seen[: len(self._counts)] = np.frombuffer(bytes(self._counts), np.bool_)
        missing = (states == STATES[COMMITTED])[:until] & ~seen[:until]
        return Verdict(
            rows=int(seen.sum()),
            lost=int(missing.sum()) + _torn(truth, seen, until),
            doubled=self._doubled,
            out_of_order=self._out_of_order,
            aborted=int((seen & (states == STATES[ABORTED])).sum()) + self._aborted,
            phantom=int((seen & (states == 0)).sum()) + self._phantom,
            again=self._again,
        )


def _torn(truth: Truth, seen: npt.NDArray[np.bool_], until: int | None) -> int:
    """Return how many rows are missing from partly seen transactions."""
    over = [each for each in truth.unknown if until is None or each.stop <= until]
    parts = [seen[each.start : each.stop] for each in over]
    return sum(int((~part).sum()) for part in parts if part.any())


def judge_group(read: Mapping[str, Mapping[int, Iterable[Range]]], numbers: NumbersAt) -> Stage:
    """Account for the rows that a group's queries have read, by query and partition.

    One query must not read a row twice. Another query may read it: the first may have been lost.
    """
    stage = Stage()
    for partition in sorted({each for of_one in read.values() for each in of_one}):
        ranges = [(query, each) for query in read for each in read[query].get(partition, ())]
        own: Counter[tuple[str, int]] = Counter()
        for query, each in sorted(ranges, key=lambda found: found[1].first):
            for offset in range(each.first, each.end):
                number = numbers.get(partition, offset)
                own[query, offset] += 1
                if number == -1:
                    stage.saw_aborted()
                else:
                    stage.saw(number, may_be_again=own[query, offset] == 1)
        for of_one in read.values():
            for _ in range(_descents(of_one.get(partition, ()))):
                stage.misplaced()
    return stage


def _descents(ranges: Iterable[Range]) -> int:
    """Return how often a query goes back in a partition."""
    found, end = 0, 0
    for each in ranges:
        found += each.first < end
        end = max(end, each.end)
    return found


def judge_consumer(notes: Iterable[str], stage: Stage, committed: dict[int, int]) -> None:
    """Account for the consumer's rows. `committed` keeps the consumer's committed offsets."""
    for line in notes:
        try:
            note = json.loads(line)
        except ValueError:
            continue  # A killed consumer left a part of a line. It had not committed this row.
        if "committed" in note:
            committed.update({int(each): offset for each, offset in note["committed"].items()})
            continue
        for number in note["numbers"]:
            may_be_again = note["first"] >= committed.get(note["partition"], 0)
            stage.saw(number, may_be_again=may_be_again)
