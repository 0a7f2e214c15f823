"""Reports of a member, in the form of `member.py`, and figures from them."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

Where = tuple[str, int]
"""A topic and the number of a partition."""


def now_ms() -> int:
    """Return milliseconds since 1970."""
    return time.time_ns() // 1_000_000


@dataclass
class Act:
    """An act that took time. `ended_ms` is None as long as it lasts."""

    what: str
    began_ms: int
    ended_ms: int | None = None
    took_ms: int = 0
    error: str | None = None

    def lasted_ms(self) -> int:
        """Return its duration, so far if it has not ended."""
        return now_ms() - self.began_ms if self.ended_ms is None else self.took_ms


@dataclass(frozen=True, slots=True)
class Reading:
    """Offsets of a partition that were read at once, without `next`."""

    at_ms: int
    where: Where
    first: int
    next: int


@dataclass(frozen=True, slots=True)
class Owned:
    """The member's partitions from a moment on. `generation` is -1 if it is unknown."""

    at_ms: int
    generation: int
    partitions: frozenset[Where]


@dataclass
class Diary:
    """Acts of a member, in order. Another thread may still add some."""

    is_ready: bool = False
    acts: list[Act] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    owned: list[Owned] = field(default_factory=list)

    def add(self, line: str) -> None:
        """Take a line. Ignore lines of other programs, such as a logger's."""
        match line.strip().split(maxsplit=4):
            case ["ready"]:
                self.is_ready = True
            case [">", what, moment]:
                self.acts.append(Act(what, int(moment)))
            case ["<", what, moment, took_ms, error]:
                act = next(each for each in reversed(self.acts) if each.what == what)
                act.took_ms, act.error = int(took_ms), None if error == "-" else error
                act.ended_ms = int(moment)
            case ["read", moment, where, first, after]:
                self.readings.append(Reading(int(moment), _where(where), int(first), int(after)))
            case ["owns", moment, generation, *_]:
                partitions = frozenset(map(_where, line.split()[3:]))
                self.owned.append(Owned(int(moment), int(generation), partitions))

    def began_ms(self) -> int:
        """Return when the member began to make its consumer."""
        return next(each.began_ms for each in self.acts if each.what == "start")

    def errors(self) -> list[str]:
        """Return the errors, each with the act that raised it."""
        return [f"{each.what}: {each.error}" for each in list(self.acts) if each.error]

    def longest_poll_ms(self, since_ms: int = 0) -> int:
        """Return the longest poll of those that ended since then, or still last."""
        polls = [each for each in list(self.acts) if each.what == "poll"]
        lasted = [each.lasted_ms() for each in polls if (each.ended_ms or since_ms) >= since_ms]
        return max(lasted, default=0)

    def succeeded_after_ms(self, what: str, since_ms: int) -> int | None:
        """Return how long after a moment the first success came of an act begun since; or None."""
        done = [
            each.ended_ms - since_ms
            for each in list(self.acts)
            if each.what == what and each.began_ms >= since_ms and each.ended_ms and not each.error
        ]
        return min(done, default=None)

    def reached(self) -> dict[Where, int]:
        """Return the offset after the last read one of each partition."""
        found: dict[Where, int] = {}
        for each in list(self.readings):
            found[each.where] = max(found.get(each.where, 0), each.next)
        return found

    def read_at_ms(self, where: Where, offset: int) -> int | None:
        """Return when a record, or one after it, was first read; None if not yet."""
        found = (each.at_ms for each in list(self.readings) if each.where == where)
        behind = (each.next > offset for each in list(self.readings) if each.where == where)
        return next((at for at, is_behind in zip(found, behind, strict=True) if is_behind), None)

    def longest_gap_ms(self, where: Where, since_ms: int, until_ms: int) -> int:
        """Return the longest time without a record of a partition between these two moments."""
        read = [each.at_ms for each in list(self.readings) if each.where == where]
        moments = [since_ms, *(each for each in read if since_ms < each < until_ms), until_ms]
        return max(after - before for before, after in pairwise(moments))


def missed(diaries: Iterable[Diary], ends: Mapping[Where, int]) -> tuple[int, int]:
    """Return how many records before these ends no member read, and how many reads were repeats."""
    lost = doubled = 0
    diaries = list(diaries)
    for where, end in ends.items():
        spans = sorted(
            (each.first, each.next)
            for diary in diaries
            for each in list(diary.readings)
            if each.where == where
        )
        at = 0
        for first, after in spans:
            lost += max(0, min(first, end) - at)
            doubled += max(0, min(at, after) - first)
            at = max(at, after)
        lost += max(0, end - at)
    return lost, doubled


def _where(text: str) -> Where:
    topic, _, partition = text.rpartition(":")
    return topic, int(partition)
