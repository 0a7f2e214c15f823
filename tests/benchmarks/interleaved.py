"""Timing several ways of doing one thing, in turn: a machine that drifts does so for all."""

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Seconds = Mapping[str, Sequence[float]]
"""What each run took, by the name of the way; the nth runs of all were one after the other."""


def interleaved(ways: Mapping[str, Callable[[], object]], runs: int) -> Seconds:
    """Runs each way `runs` times in turn, after one turn that is not counted.

    Who begins a turn is drawn anew, so that nobody always runs after the same one. A way that
    returns a number has timed itself.
    """
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    order = list(ways)
    for turn in range(runs + 1):
        random.Random(turn).shuffle(order)
        for name in order:
            started = time.perf_counter()
            own = ways[name]()
            passed = time.perf_counter() - started
            if turn:
                seconds[name].append(own if isinstance(own, float) else passed)
    return seconds


@dataclass(frozen=True, slots=True)
class Ratio:
    """One way's time over another's, turn by turn."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, seconds: Seconds, over: str, under: str) -> "Ratio":
        """`over`'s times divided by `under`'s: how many times as fast `under` is."""
        ratios = [a / b for a, b in zip(seconds[over], seconds[under], strict=True)]
        return cls(statistics.median(ratios), min(ratios), max(ratios))

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.least:.2f}-{self.most:.2f})"


def medians(seconds: Seconds) -> dict[str, float]:
    """The median time of each way."""
    return {name: statistics.median(each) for name, each in seconds.items()}
