"""Timing of several ways in turn. A change of the machine's speed then affects all ways."""

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Seconds = Mapping[str, Sequence[float]]
"""Seconds of each run, by the name of the way. The nth runs of all ways followed each other."""


def interleaved(ways: Mapping[str, Callable[[], object]], runs: int) -> Seconds:
    """Run each way `runs` times in turn, after one uncounted turn.

    Each turn has a random order, so that no way always follows the same other way. A way that
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
    """One way's time divided by another's, turn by turn."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, seconds: Seconds, over: str, under: str) -> "Ratio":
        """Divide `over`'s times by `under`'s. The result says how many times as fast `under` is."""
        ratios = [a / b for a, b in zip(seconds[over], seconds[under], strict=True)]
        return cls(statistics.median(ratios), min(ratios), max(ratios))

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.least:.2f}-{self.most:.2f})"


def medians(seconds: Seconds) -> dict[str, float]:
    """Return the median time of each way."""
    return {name: statistics.median(each) for name, each in seconds.items()}
