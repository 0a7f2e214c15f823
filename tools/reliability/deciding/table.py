"""The table of `exactly-once-faults.md`: a row for each fault, over all of its rounds."""

from collections import Counter
from collections.abc import Mapping, Sequence

from tools.reliability.deciding.faults import Manner, Outcome, Role

Found = Mapping[tuple[Role, Manner], Sequence[Outcome]]
"""Outcomes of all rounds by fault, at whichever step."""

_HEAD = (
    "what happens to the broker that is",
    "it is",
    "rounds",
    "commits that returned",
    "commits that did not",
    "runs until it was written",
    "rows lost",
    "rows doubled",
    "partitions held up",
)


def render(found: Found) -> str:
    """Return the table as Markdown."""
    lines = [_row(*_HEAD), _row(*("---" for _ in _HEAD))]
    for (role, manner), outcomes in found.items():
        if outcomes:
            lines.append(_row(role.value, manner.value, *_cells(outcomes)))
    return "\n".join(lines)


def _cells(outcomes: Sequence[Outcome]) -> list[str]:
    ended = Counter(each.commit for each in outcomes)
    returned = ended.pop("returned", 0)
    others = ", ".join(f"{count} {name}" for name, count in sorted(ended.items())) or "0"
    runs = Counter(each.runs for each in outcomes if each.runs)
    again = ", ".join(f"{count} after {number}" for number, count in sorted(runs.items())) or "-"
    verdicts = [each.verdict for each in outcomes]
    sums = (
        sum(each.lost for each in verdicts),
        sum(each.doubled for each in verdicts),
        sum(each.held_up for each in verdicts),
    )
    return [str(len(outcomes)), str(returned), others, again, *map(str, sums)]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
