"""The table of `make parity`: what each format made of each scenario."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tests.parity.differences import Difference
from tests.parity.scenario import OURS, PEER

_HEAD = f"| scenario | {PEER} | {OURS} | verdict |\n|---|---|---|---|"
_NOT_RUN = "-"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a scenario ended with a format; `scenario` is `suite/name[parameters]`."""

    scenario: str
    format_name: str
    passed: bool


def render(
    outcomes: Iterable[Outcome],
    differences: Mapping[str, Difference],
    left_out: Mapping[str, str],
) -> str:
    """The outcomes as Markdown: a row for each scenario, counts by suite, what was left out."""
    rows: dict[str, dict[str, bool]] = {}
    for each in outcomes:
        formats = rows.setdefault(each.scenario, {})
        formats[each.format_name] = formats.get(each.format_name, True) and each.passed
    verdicts = {name: _verdict(name, found, differences) for name, found in rows.items()}
    by_suite: dict[str, Counter[str]] = {}
    for name, (verdict, _) in verdicts.items():
        by_suite.setdefault(name.partition("/")[0], Counter())[verdict] += 1
    total = sum(by_suite.values(), Counter())
    return "\n".join(
        [
            f"**{_counted(total)}**",
            "",
            *(f"- {suite}: {_counted(counts)}" for suite, counts in by_suite.items()),
            "",
            _HEAD,
            *(_row(name, found, *verdicts[name]) for name, found in rows.items()),
            "",
            "Left out:",
            "",
            *(f"- {what}: {why}" for what, why in left_out.items()),
            "",
        ]
    )


def _verdict(
    name: str, found: Mapping[str, bool], differences: Mapping[str, Difference]
) -> tuple[str, str]:
    if not all(found.values()):
        return "fails", ""
    declared = differences.get(name) or differences.get(name.partition("[")[0])
    return (declared.verdict, declared.why) if declared else ("same", "")


def _row(name: str, found: Mapping[str, bool], verdict: str, why: str) -> str:
    cells = [
        _NOT_RUN if each not in found else "passed" if found[each] else "**failed**"
        for each in (PEER, OURS)
    ]
    return f"| {name} | {' | '.join(cells)} | {verdict}{why and ': '}{why} |".replace("[", "\\[")


def _counted(verdicts: Counter[str]) -> str:
    parts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    return f"{verdicts.total()} ({parts})"
