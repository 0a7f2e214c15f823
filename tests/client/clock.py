"""A clock that only a test or a pause advances."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from spark_kafka_source.net import deadline


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


def deadlines_by(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make all deadlines use `clock` from now on."""
    monkeypatch.setattr(deadline, "time", SimpleNamespace(monotonic=clock.monotonic))
