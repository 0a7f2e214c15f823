"""What the scenarios share: members for as long as a context lasts, and waiting with patience."""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from tests.reliability.deaf.clients import Client, Member
from tests.reliability.deaf.diary import now_ms

PATIENCE_SECONDS = 75.0
"""By default: longer than anything here takes whose own timeout is a minute."""
AFTERMATH_SECONDS = 20.0
"""How long records that were written may take to be read once nothing is wrong any more."""
COMMIT_EVERY_MS = 300

_PAUSE_SECONDS = 0.05


@contextmanager
def running(
    clients: Sequence[Client],
    servers: str,
    settings: Callable[[Client], Mapping[str, object]],
    *orders: str,
) -> Iterator[list[Member]]:
    """A member of each, begun at the same time, and gone afterwards."""
    with ExitStack() as opened:
        usual = {"bootstrap.servers": servers, "auto.offset.reset": "earliest"}
        members = [
            opened.enter_context(Member(each, {**usual, **settings(each)}, *orders))
            for each in clients
        ]
        for member in members:
            member.begin()
        yield members


class Patience:
    """How long is waited, in all, for what may never come to pass."""

    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds

    def until(self, condition: Callable[[], bool]) -> int | None:
        """When it came true, in ms since 1970; None where time was up before."""
        while not condition():
            if time.monotonic() > self._deadline:
                return None
            time.sleep(_PAUSE_SECONDS)
        return now_ms()


def seconds(milliseconds: int | None) -> float | None:
    """The same, where it is known."""
    return None if milliseconds is None else milliseconds / 1000


def name(what: str) -> str:
    """A topic or a group that nobody else has."""
    return f"deaf-{what}-{uuid.uuid4().hex[:8]}"
