"""The producer's notes: a line for the begin and for the end of each transaction."""

from array import array
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

UNKNOWN, COMMITTED, ABORTED = "unknown", "committed", "aborted"
STATES = {UNKNOWN: 1, COMMITTED: 2, ABORTED: 3}
"""Outcomes as numbers. A row that was never written has 0."""


class Ledger:
    """The ledger's file, for the producer."""

    def __init__(self, path: Path) -> None:
        lines = path.read_text().splitlines() if path.exists() else []
        self.next_number = max((int(line.split()[2]) for line in lines), default=0)
        self._file = path.open("a", buffering=1)

    def note(self, outcome: str, numbers: range) -> None:
        """Note the rows of a transaction. It is `UNKNOWN` until its end."""
        self._file.write(f"{outcome} {numbers.start} {numbers.stop}\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Truth:
    """The outcome of each row, by the producer's notes."""

    def __init__(self) -> None:
        self._states = bytearray()
        self._begun: dict[range, None] = {}
        self.committed = 0

    def take(self, outcome: str, numbers: range) -> None:
        """Take one note."""
        missing = numbers.stop - len(self._states)
        self._states.extend(bytes(max(0, missing)))
        self._states[numbers.start : numbers.stop] = bytes([STATES[outcome]]) * len(numbers)
        if outcome == UNKNOWN:
            self._begun[numbers] = None
        else:
            self._begun.pop(numbers, None)
            self.committed += len(numbers) * (outcome == COMMITTED)

    def states(self, size: int) -> npt.NDArray[np.uint8]:
        """Return the outcome of each row as a number, for at least `size` rows."""
        found = np.zeros(max(size, len(self._states)), np.uint8)
        found[: len(self._states)] = np.frombuffer(bytes(self._states), np.uint8)
        return found

    @property
    def end(self) -> int:
        """The number after the last row."""
        return len(self._states)

    @property
    def unknown(self) -> list[range]:
        """Transactions without an outcome. Readers must see all rows of one, or none."""
        return list(self._begun)


def read_ledger(lines: Iterable[str], truth: Truth) -> None:
    """Take the notes of a ledger."""
    for line in lines:
        outcome, first, end = line.split()
        truth.take(outcome, range(int(first), int(end)))


class NumbersAt:
    """The numbers of a topic's committed records, by partition and offset."""

    def __init__(self) -> None:
        self._found: dict[int, array[int]] = {}

    def put(self, partition: int, offset: int, number: int) -> None:
        """Keep a record's number. Offsets ascend."""
        numbers = self._found.setdefault(partition, array("q"))
        numbers.extend([-1] * (offset - len(numbers)))
        numbers.append(number)

    def get(self, partition: int, offset: int) -> int | None:
        """Return the number. Return -1 if readers must not see the offset, None beyond the end."""
        numbers = self._found.get(partition, ())
        return numbers[offset] if offset < len(numbers) else None
