"""How often an idle query looks for new rows."""

import time

import pytest

from spark_kafka_source.spark.pace import Pace


class Clock:
    def __init__(self) -> None:
        self.seconds = 50.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: clock.seconds)
    return clock


def looks(pace: Pace, clock: Clock, requests: int, seconds: int) -> int:
    """How many looks there are while Spark asks every fifth of a second and nothing is new."""
    count = 0
    for _ in range(5 * seconds):
        if pace.is_due:
            count += 1
            pace.found_nothing(requests)
        clock.seconds += 0.2001
    return count


@pytest.mark.parametrize("brokers", [1, 3, 30, 100])
def test_an_idle_query_costs_ten_requests_a_second_in_the_long_run(
    clock: Clock, brokers: int
) -> None:
    pace, requests = Pace(), brokers + 1
    looks(pace, clock, requests, 30)
    assert looks(pace, clock, requests, 600) * requests <= 600 * 10 * 1.01
    assert looks(pace, clock, requests, 600) >= 600 * 10 // requests // 2


def test_a_query_that_was_busy_looks_again_soon(clock: Clock) -> None:
    pace = Pace()
    looks(pace, clock, 101, 60)
    pace.found_something()
    assert pace.is_due
    assert looks(pace, clock, 101, 1) >= 2
