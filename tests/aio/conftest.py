"""The suites of the blocking clients, held on asyncio, and a clock for the turns of tasks."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from types import SimpleNamespace

import pytest

from spark_kafka_source.aio import hold


@pytest.fixture(autouse=True)
def _unhurried(unhurried: None) -> None:
    """See `tests/fixtures.py`."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a millisecond pass at each look at the clock: ten looks until others have their turn."""
    looks = count(1)
    monkeypatch.setattr(hold, "time", SimpleNamespace(monotonic=lambda: next(looks) / 1000))
    monkeypatch.setattr(hold.turns, "_next_at_seconds", 0.0)


@contextmanager
def others() -> Iterator[list[None]]:
    """Run another task beside. Yield a list with an entry for each of its turns."""
    turns: list[None] = []

    async def go_on() -> None:
        while True:
            turns.append(None)
            await asyncio.sleep(0)

    going_on = asyncio.ensure_future(go_on())
    try:
        yield turns
    finally:
        going_on.cancel()
