"""Common parts of the scenarios: members for the time of a context, and waiting with a limit."""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from tools.reliability.deaf.clients import Client, Member
from tools.reliability.deaf.diary import now_ms

PATIENCE_SECONDS = 75.0
"""The default limit: longer than anything here with a timeout of a minute takes."""
AFTERMATH_SECONDS = 20.0
"""The longest time to read all written records after the end of a fault."""
COMMIT_EVERY_MS = 300

_PAUSE_SECONDS = 0.05


@contextmanager
def running(
    clients: Sequence[Client],
    servers: str,
    settings: Callable[[Client], Mapping[str, object]],
    *orders: str,
) -> Iterator[list[Member]]:
    """Yield a member of each client, all begun at the same time. They end with the context."""
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
    """A limit of time for all waiting for events that may never happen."""

    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds

    def until(self, condition: Callable[[], bool]) -> int | None:
        """Wait until the condition is true. Return when, in ms since 1970; None if time is up."""
        while not condition():
            if time.monotonic() > self._deadline:
                return None
            time.sleep(_PAUSE_SECONDS)
        return now_ms()


def seconds(milliseconds: int | None) -> float | None:
    """Return the same in seconds; None if it is unknown."""
    return None if milliseconds is None else milliseconds / 1000


def name(what: str) -> str:
    """Return a unique name for a topic or a group."""
    return f"deaf-{what}-{uuid.uuid4().hex[:8]}"
