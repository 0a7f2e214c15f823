"""Growth of the samples: a line fitted to the second half of each role's longest life."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from tools.soak.samples import METRICS, Sample

_HOUR_SECONDS = 3600
_LEAST_SAMPLES = 4
_LONG_ENOUGH_SECONDS = 600
"""A shorter second half shows the warm-up of a process, not its growth."""
_TOLERATED = {"MiB": 24.0, "threads": 3.0, "sockets": 6.0, "files": 6.0}
_TOLERATED_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Growth:
    """The growth of one role over the second half of its longest life."""

    role: str
    seconds: float
    """The length of this half."""
    middle: tuple[float, ...]
    """Medians, in the order of `METRICS`, like the other fields."""
    total: tuple[float, ...]
    an_hour: tuple[float, ...]

    @property
    def is_long_enough(self) -> bool:
        """Return whether the half is long enough to tell growth from warm-up."""
        return self.seconds >= _LONG_ENOUGH_SECONDS

    @property
    def grows(self) -> list[str]:
        """Return metrics whose growth exceeds the tolerance and a share of their median."""
        return [
            metric
            for metric, middle, total in zip(METRICS, self.middle, self.total, strict=True)
            if self.is_long_enough and total > max(_TOLERATED[metric], _TOLERATED_SHARE * middle)
        ]


def growths(samples: Iterable[Sample]) -> list[Growth]:
    """Return the growth of each role that lived for long enough to fit a line."""
    lives: dict[str, list[list[Sample]]] = {}
    ordered = sorted(samples, key=lambda each: (each.role, each.life, each.seconds))
    for (role, _), life in groupby(ordered, key=lambda each: (each.role, each.life)):
        lives.setdefault(role, []).append(list(life))
    longest = {role: max(each, key=_length) for role, each in lives.items()}
    halves = {role: _second_half(life) for role, life in longest.items()}
    return [_fitted(role, half) for role, half in halves.items() if len(half) >= _LEAST_SAMPLES]


def _length(life: list[Sample]) -> float:
    return life[-1].seconds - life[0].seconds


def _second_half(life: list[Sample]) -> list[Sample]:
    middle = (life[0].seconds + life[-1].seconds) / 2
    return [each for each in life if each.seconds >= middle]


def _fitted(role: str, half: list[Sample]) -> Growth:
    times = np.array([each.seconds for each in half])
    values = np.array([each.values for each in half])
    slopes = np.polyfit(times, values, 1)[0]
    seconds = float(times[-1] - times[0])
    return Growth(
        role,
        round(seconds),
        _rounded(np.median(values, axis=0)),
        _rounded(slopes * seconds),
        _rounded(slopes * _HOUR_SECONDS),
    )


def _rounded(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(round(float(each), 2) for each in values)
