"""Pauses of an idle query between its looks for new rows."""

import time

import pytest

from spark_kafka_source.spark.source.idle_pace import IdlePace


class Clock:
    def __init__(self) -> None:
        self.seconds = 1_000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: clock.seconds)
    return clock


def looks(
    pace: IdlePace, clock: Clock, requests: int, seconds: float, *, watched: bool = False
) -> int:
    """Return the number of looks in `seconds` while nothing is new."""
    count, until_seconds = 0, clock.seconds + seconds
    while clock.seconds < until_seconds:
        clock.seconds += pace.pause_seconds
        if not (watched and pace.may_spare_look()):
            pace.found_nothing(requests, watched=watched)
            count += 1
    return count


def test_a_query_that_has_rows_to_read_never_waits() -> None:
    pace = IdlePace()
    for _ in range(5):
        pace.found_something()
        assert pace.pause_seconds == 0


@pytest.mark.parametrize("brokers", [1, 3, 15])
def test_an_idle_query_costs_ten_requests_a_second_in_the_long_run(
    clock: Clock, brokers: int
) -> None:
    pace, requests = IdlePace(), brokers + 1
    looks(pace, clock, requests, 30)
    assert looks(pace, clock, requests, 600) * requests <= 600 * 10 * 1.02


def test_it_looks_every_two_seconds_however_many_brokers_there_are(clock: Clock) -> None:
    pace = IdlePace()
    looks(pace, clock, 1_000, 30)
    assert looks(pace, clock, 1_000, 600) == pytest.approx(300, abs=2)


def test_where_many_leaders_are_watched_it_looks_once_a_minute_and_waits_a_second(
    clock: Clock,
) -> None:
    pace = IdlePace()
    looks(pace, clock, 101, 60, watched=True)
    assert pace.pause_seconds == 1
    assert looks(pace, clock, 101, 600, watched=True) == pytest.approx(10, abs=1)


def test_where_looks_are_cheap_none_is_spared(clock: Clock) -> None:
    pace = IdlePace()
    looks(pace, clock, 9, 60, watched=True)
    assert not pace.may_spare_look()
    assert looks(pace, clock, 9, 600, watched=True) == pytest.approx(600 / 0.9, rel=0.02)


def test_a_query_that_was_busy_looks_again_soon(clock: Clock) -> None:
    pace = IdlePace()
    looks(pace, clock, 101, 60)
    pace.found_something()
    assert looks(pace, clock, 101, 1) >= 2
