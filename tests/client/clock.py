"""A clock that only a test, or a pause, moves on."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from spark_kafka_source.net import deadline


@dataclass
class Clock:
    """Seconds since its start, and the pauses that were taken on it."""

    now_seconds: float = 0.0
    pauses: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.now_seconds

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now_seconds += seconds


def deadlines_by(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deadlines go by `clock` from now on."""
    monkeypatch.setattr(deadline, "time", SimpleNamespace(monotonic=clock.monotonic))
