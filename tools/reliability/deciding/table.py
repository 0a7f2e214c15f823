"""The table of `exactly-once-faults.md`: a row for each fault, over all rounds that had it."""

from collections import Counter
from collections.abc import Sequence

from tools.reliability.deciding.faults import Blow, Manner, Other, Outcome, Process, Role

_HEAD = (
    *("what happens", "rounds", "ends of runs", "rows that errors name as lost"),
    *("other rows lost", "rows doubled", "partitions held up", "else wrong"),
)


def render(outcomes: Sequence[Outcome]) -> str:
    """Return the table as Markdown."""
    lines = [_row(*_HEAD), _row(*("---" for _ in _HEAD))]
    for label in _labels():
        if found := [each for each in outcomes if label in each.labels]:
            lines.append(_row(label, *_cells(found)))
    return "\n".join([*lines, _row("all rounds", *_cells(outcomes))])


def _labels() -> list[str]:
    well = Role.TASK, Manner.WELL, Process.GOES_ON
    others = [Blow(None, *well, other, each) for other in Other for each in (False, True)]
    of_others = dict.fromkeys(each.labels[-1] for each in others)
    return [*(each.value for each in (*Manner, *Process)), *of_others]


def _cells(outcomes: Sequence[Outcome]) -> list[str]:
    ends = Counter(end for each in outcomes for end in each.ends)
    named = ", ".join(f"{count} {name}" for name, count in sorted(ends.items())) or "-"
    counts = [
        [each.named, each.lost, each.doubled, each.held_up, bool(each.wrong)] for each in outcomes
    ]
    return [str(len(outcomes)), named, *(str(sum(each)) for each in zip(*counts, strict=True))]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
