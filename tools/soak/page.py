"""The tables of `docs/contributors/measured/soak.md`."""

from collections.abc import Iterable, Sequence
from dataclasses import astuple

from tools.soak.cast import ENDED
from tools.soak.growth import Growth
from tools.soak.judge import COUNTS
from tools.soak.outcome import Outcome, nemesis_of, verdicts_of
from tools.soak.samples import METRICS

_NOT_DONE = (ENDED, "runs", "final so far", "all is read", "in the end")
_SPELT = {"out_of_order": "out of order", "aborted": "aborted yet seen", "again": "read again"}


def render(outcomes: Sequence[Outcome]) -> str:
    """Return all tables as Markdown."""
    hours = sum(each.hours for each in outcomes)
    anomalies = sum(each.anomalies for each in outcomes)
    return "\n\n".join(
        [
            f"Runs: {len(outcomes)}. Hours in all: {hours:.2f}. Anomalies: {anomalies:,}. "
            f"Processes that ended by themselves: {nemesis_of(outcomes)[ENDED]:,}.",
            _stages(outcomes),
            _done(outcomes),
            _growth(outcomes[-1]),
        ]
    )


def _stages(outcomes: Sequence[Outcome]) -> str:
    head = ["rows", *(_SPELT.get(each, each) for each in COUNTS)]
    head[1] = "seen"
    found = verdicts_of(outcomes)
    rows = ([name, *(f"{value:,}" for value in astuple(each))] for name, each in found.items())
    return _table(head, rows)


def _done(outcomes: Sequence[Outcome]) -> str:
    counts = {name: count for name, count in nemesis_of(outcomes).items() if name not in _NOT_DONE}
    return _table(["what was done", "times"], ([each, f"{counts[each]:,}"] for each in counts))


def _growth(outcome: Outcome) -> str:
    head = ["process", "minutes watched", *METRICS, "grows"]
    about = (
        f"The last run, seed {outcome.seed}, {outcome.hours:.2f} hours. Medians of the second half "
        "of each process's longest life, and in brackets the growth over this half, by a fitted "
        "line."
    )
    return f"{about}\n\n{_table(head, map(_growth_row, outcome.growths))}"


def _growth_row(growth: Growth) -> list[str]:
    cells = [
        f"{middle:,.0f} ({total:+,.1f})"
        for middle, total in zip(growth.middle, growth.total, strict=True)
    ]
    verdict = ", ".join(growth.grows) or ("no" if growth.is_long_enough else "too short to say")
    return [growth.role, f"{growth.seconds / 60:.0f}", *cells, verdict]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(each)} |" for each in lines)
