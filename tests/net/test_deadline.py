"""Deadlines on a test's own clock."""

from types import SimpleNamespace

import pytest

from spark_kafka_source.net import Deadline, deadline


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(deadline, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def test_what_remains_never_falls_below_nothing(clock: SimpleNamespace) -> None:
    point = Deadline.after_ms(1_500)
    assert (point.remaining_seconds(), point.expired) == (1.5, False)
    clock.now += 1.5
    assert (point.remaining_seconds(), point.expired) == (0.0, True)
    clock.now += 10
    assert (point.remaining_seconds(), point.expired) == (0.0, True)


def test_within_is_the_earlier_of_the_two() -> None:
    point = Deadline.after_ms(1_000)
    assert point.within_ms(2_000) is point
    assert point.within_ms(500) == Deadline(100.5, 500)
