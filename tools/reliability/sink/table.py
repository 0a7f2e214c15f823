"""The table of `exactly-once-faults-spark.md`: a row for each fault and each sink."""

from dataclasses import dataclass, field
from operator import add

from tools.reliability.sink.judge import Verdict

_HEAD = (
    *("fault", "written", "rounds", "faults", "rows"),
    *("lost", "doubled", "out of order", "left open"),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of some rounds."""

    rounds: int = 0
    faults: int = 0
    """Drivers and executors that ended early. Faults of tasks count as one per round."""
    rows: int = 0
    verdict: Verdict = field(default_factory=lambda: Verdict(0, 0, 0, 0))


Found = dict[tuple[str, str], Outcome]
"""The outcome of all rounds, by guarantee and fault."""


def added(one: Outcome, other: Outcome) -> Outcome:
    """Return the outcome of the rounds of both."""
    sums = map(add, _numbers(one), _numbers(other))
    rounds, faults, rows, *verdict = sums
    return Outcome(rounds, faults, rows, Verdict(*verdict))


def render(found: Found) -> str:
    """Return the table as Markdown."""
    lines = [_HEAD, tuple("---" for _ in _HEAD)]
    lines += [
        (fault, guarantee, *(f"{each:,}" for each in _numbers(outcome)))
        for (guarantee, fault), outcome in found.items()
        if outcome.rounds
    ]
    return "\n".join(f"| {' | '.join(each)} |" for each in lines)


def _numbers(outcome: Outcome) -> tuple[int, ...]:
    verdict = outcome.verdict
    return (
        *(outcome.rounds, outcome.faults, outcome.rows),
        *(verdict.lost, verdict.doubled, verdict.out_of_order, verdict.left_open),
    )
