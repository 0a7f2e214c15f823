"""The tables of `docs/contributors/measured/deaf-brokers.md`: seconds by fault and client."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from tools.reliability.deaf.clients import Client
from tools.reliability.deaf.outcome import POLL, Outcome

Found = Mapping[str, Sequence[Outcome]]
"""Outcomes of all rounds, by fault."""
Took = Mapping[str, Mapping[str, Sequence[float]]]
"""Seconds by fault and use."""

_UNREAD = "records not read by then"
LEAST_FOR_A_MEDIAN = 3


def render(found: Found, clients: Sequence[Client], patience_seconds: float) -> str:
    """Return a table for each fault, with a row for each event and a column for each client."""
    names = [each.name for each in clients]
    lines: list[str] = []
    for fault, outcomes in found.items():
        lines += ["", f"**{fault[0].upper()}{fault[1:]}**", "", *_head("seconds", *names)]
        of_client = {each: [one for one in outcomes if one.client == each] for each in clients}
        for what in dict.fromkeys(what for each in outcomes for what in [*each.seconds, POLL]):
            cells = [_cell(_measured(of_client[each], what), patience_seconds) for each in clients]
            lines.append(_row(what, *cells))
        if any(each.lost for each in outcomes):
            lost = [str(sum(one.lost for one in of_client[each])) for each in clients]
            lines.append(_row(_UNREAD, *lost))
    return "\n".join(lines[1:])


def render_took(took: Took) -> str:
    """Return a table with a row for each fault, and a column for each use."""
    ways = list(dict.fromkeys(way for of_one in took.values() for way in of_one))
    lines = _head("fault", *ways)
    for fault, of_one in took.items():
        lines.append(_row(fault, *(_cell(of_one[way], math.inf) for way in ways)))
    return "\n".join(lines)


def _head(*cells: str) -> list[str]:
    return [_row(*cells), _row(*("---" for _ in cells))]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _measured(outcomes: Iterable[Outcome], what: str) -> list[float]:
    """Return the seconds of an event; infinity if it did not happen."""
    found = [
        each.longest_poll_seconds if what == POLL else each.seconds.get(what, math.nan)
        for each in outcomes
    ]
    return [math.inf if each is None else each for each in found if each is None or each >= 0]


def _cell(measured: Sequence[float], patience_seconds: float) -> str:
    """Return the worst; from three rounds on the median, with the worst in brackets."""
    if not measured:
        return "-"
    median, worst = (
        f"> {patience_seconds:.0f}" if each == math.inf else f"{each:.1f}"
        for each in (statistics.median_high(measured), max(measured))
    )
    return worst if len(measured) < LEAST_FOR_A_MEDIAN else f"{median} ({worst})"
