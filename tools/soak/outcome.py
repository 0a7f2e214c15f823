"""The outcome of a run, as a line of a file. The lines of several days add up."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

from tools.soak.growth import Growth
from tools.soak.judge import Verdict
from tools.soak.samples import is_jvm

HOURS_TO_JUDGE = 1.0
"""In a run of this length each process must live for long enough to tell whether it grows."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run."""

    seed: int
    hours: float
    verdicts: dict[str, Verdict]
    """By stage."""
    nemesis: dict[str, int]
    growths: list[Growth]
    diary: list[tuple[int, str, str]] = field(default_factory=list)
    errors: dict[str, list[str]] = field(default_factory=dict)
    """The last errors of the processes, fatal or not."""

    @property
    def anomalies(self) -> int:
        """The number of all wrong rows."""
        return sum(each.anomalies for each in self.verdicts.values())

    @property
    def grown(self) -> list[str]:
        """The roles that grow. A JVM is left out: its memory grows up to its limit."""
        return [each.role for each in self.growths if each.grows and not is_jvm(each.role)]

    @property
    def unjudged(self) -> list[str]:
        """The roles whose growth is not known, although the run was long enough to tell it."""
        is_long = self.hours >= HOURS_TO_JUDGE
        return [each.role for each in self.growths if is_long and not each.is_long_enough]

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def keep(outcome: Outcome, path: Path) -> None:
    """Append an outcome to the file."""
    with path.open("a") as file:
        file.write(f"{outcome.to_json()}\n")


def kept(path: Path) -> list[Outcome]:
    """Return the outcomes of all runs."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [_of(line) for line in lines]


def _of(line: str) -> Outcome:
    found = json.loads(line)
    found["verdicts"] = {name: Verdict(**each) for name, each in found["verdicts"].items()}
    found["growths"] = [_growth(each) for each in found["growths"]]
    found["diary"] = [tuple(each) for each in found["diary"]]
    return Outcome(**found)


def _growth(found: dict[str, Any]) -> Growth:
    vectors = {name: tuple(found[name]) for name in ("middle", "total", "an_hour")}
    return Growth(**found | vectors)


def verdicts_of(outcomes: Sequence[Outcome]) -> dict[str, Verdict]:
    """Return the sums of all runs, by stage."""
    names = dict.fromkeys(name for each in outcomes for name in each.verdicts)
    return {
        name: reduce(add, (each.verdicts.get(name, Verdict()) for each in outcomes))
        for name in names
    }


def nemesis_of(outcomes: Sequence[Outcome]) -> Counter[str]:
    """Return how often each event happened in all runs."""
    return sum((Counter(each.nemesis) for each in outcomes), Counter())
