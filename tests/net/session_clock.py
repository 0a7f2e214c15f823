"""A clock for the lifetimes of authenticated sessions, and for nothing else."""

from types import SimpleNamespace

import pytest

from spark_kafka_source.net import authentication, session


def sessions_by_own_clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Return the clock of all sessions from now on. Only a test moves its `now`, in seconds."""
    clock = SimpleNamespace(now=1_000.0)
    clock.monotonic = lambda: clock.now
    for module in (authentication, session):
        monkeypatch.setattr(module, "time", clock)
    return clock
