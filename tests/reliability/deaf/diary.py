"""What a member said, as `member.py` has it, and what can be told from it."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

Where = tuple[str, int]
"""A topic and the number of a partition."""


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


@dataclass
class Act:
    """Something that took time, or still takes it: `ended_ms` is None."""

    what: str
    began_ms: int
    ended_ms: int | None = None
    took_ms: int = 0
    error: str | None = None

    def lasted_ms(self) -> int:
        """So far, where it has not ended."""
        return now_ms() - self.began_ms if self.ended_ms is None else self.took_ms


@dataclass(frozen=True, slots=True)
class Reading:
    """Some offsets of a partition, `next` not included."""

    at_ms: int
    where: Where
    first: int
    next: int


@dataclass(frozen=True, slots=True)
class Owned:
    """What the member has been assigned from now on; `generation` is -1 where it is unknown."""

    at_ms: int
    generation: int
    partitions: frozenset[Where]


@dataclass
class Diary:
    """What a member did, in order; another thread may still add to it."""

    is_ready: bool = False
    acts: list[Act] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    owned: list[Owned] = field(default_factory=list)

    def add(self, line: str) -> None:
        """Takes one line; those of other programs, such as a logger's, are passed over."""
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
        """When its consumer was made."""
        return next(each.began_ms for each in self.acts if each.what == "start")

    def errors(self) -> list[str]:
        """What was raised, and by what."""
        return [f"{each.what}: {each.error}" for each in list(self.acts) if each.error]

    def longest_poll_ms(self, since_ms: int = 0) -> int:
        """Of those that ended since then, or still last."""
        polls = [each for each in list(self.acts) if each.what == "poll"]
        lasted = [each.lasted_ms() for each in polls if (each.ended_ms or since_ms) >= since_ms]
        return max(lasted, default=0)

    def succeeded_after_ms(self, what: str, since_ms: int) -> int | None:
        """How long after a moment the first that was begun since then was done; None if not yet."""
        done = [
            each.ended_ms - since_ms
            for each in list(self.acts)
            if each.what == what and each.began_ms >= since_ms and each.ended_ms and not each.error
        ]
        return min(done, default=None)

    def reached(self) -> dict[Where, int]:
        """The offset after the last that was read of each partition."""
        found: dict[Where, int] = {}
        for each in list(self.readings):
            found[each.where] = max(found.get(each.where, 0), each.next)
        return found

    def read_at_ms(self, where: Where, offset: int) -> int | None:
        """When a record was read first, or one behind it."""
        found = (each.at_ms for each in list(self.readings) if each.where == where)
        behind = (each.next > offset for each in list(self.readings) if each.where == where)
        return next((at for at, is_behind in zip(found, behind, strict=True) if is_behind), None)

    def longest_gap_ms(self, where: Where, since_ms: int, until_ms: int) -> int:
        """The longest time without a record of a partition, within these two moments."""
        read = [each.at_ms for each in list(self.readings) if each.where == where]
        moments = [since_ms, *(each for each in read if since_ms < each < until_ms), until_ms]
        return max(after - before for before, after in pairwise(moments))


def missed(diaries: Iterable[Diary], ends: Mapping[Where, int]) -> tuple[int, int]:
    """How many of the records before these ends were read by nobody, and how often one again."""
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
