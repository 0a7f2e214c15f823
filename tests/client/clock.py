"""A clock that only a test or a pause advances."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from spark_kafka_source.net import Wait, deadline


@dataclass
class Clock:
    """Seconds since the clock's start, and all pauses on it."""

    now_seconds: float = 0.0
    pauses: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.now_seconds

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now_seconds += seconds

    def block(self, wait: Wait) -> None:
        """Wait for an answer. A mere pause of a conversation only advances the clock."""
        if wait.sockets:
            wait.block()
        else:
            self.pauses.append(wait.until.remaining_seconds())
            self.now_seconds = wait.until.at_seconds


def deadlines_by(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make all deadlines use `clock` from now on."""
    monkeypatch.setattr(deadline, "time", SimpleNamespace(monotonic=clock.monotonic))
