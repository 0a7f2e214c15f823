"""Items that a worker keeps between tasks, with producers as an example."""

import math
import threading
import time
from typing import Any

import pytest

from spark_kafka_source.producer.config import ProducerConfig
from spark_kafka_source.spark.pool import Pool
from tests.spark.sink.fake_producer import FakeProducer, Makes
from tests.spark.sink.settings import parsed

NEVER_SECONDS = 3_600.0


def config(port: int = 1) -> ProducerConfig:
    return parsed(**{"kafka.bootstrap.servers": f"broker:{port}"}).producer


@pytest.fixture
def makes() -> Makes:
    return Makes()


def stock(makes: Makes, idle_seconds: float = NEVER_SECONDS) -> Any:
    return Pool(makes, lambda producer: producer.close(5.0), idle_seconds)


def test_a_producer_is_used_again(makes: Makes) -> None:
    kept = stock(makes)
    first = kept.take(config())
    kept.put(config(), first)
    assert kept.take(config()) is first
    assert len(makes.made) == 1
    assert not first.calls


def test_each_task_has_one_of_its_own(makes: Makes) -> None:
    kept = stock(makes)
    first, second = kept.take(config()), kept.take(config())
    assert first is not second
    kept.put(config(), first)
    kept.put(config(), second)  # The worker keeps only one.
    assert (first.calls, second.calls) == ([], ["close within 5.0 s"])


def test_each_configuration_has_one_of_its_own(makes: Makes) -> None:
    kept = stock(makes)
    kept.put(config(1), kept.take(config(1)))
    assert kept.take(config(2)) is not makes.made[0]


def test_a_worker_keeps_few(makes: Makes) -> None:
    kept = stock(makes)
    for port in range(1, 20):
        kept.put(config(port), kept.take(config(port)))
    assert sum(not each.calls for each in makes.made) == 8


def test_one_that_is_idle_for_long_is_closed(makes: Makes) -> None:
    closed = threading.Event()

    class Closing(FakeProducer):
        def close(self, timeout_seconds: float | None = None) -> None:
            closed.set()

    kept = stock(makes, idle_seconds=0.0)
    kept.put(config(), Closing())
    assert closed.wait(60)
    assert kept.take(config()) is makes.made[0]


def test_one_timer_closes_idle_items_and_none_that_a_task_takes(
    makes: Makes, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers: list[Any] = []

    class Timer:
        def __init__(self, seconds: float, end: Any) -> None:
            self.seconds, self.end = seconds, end
            timers.append(self)

        def start(self) -> None: ...

    monkeypatch.setattr(threading, "Timer", Timer)
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    kept = stock(makes, idle_seconds=10.0)
    first, second = kept.take(config(1)), kept.take(config(2))
    kept.put(config(1), first)
    clock[0] = 104.0
    kept.put(config(2), second)
    assert kept.take(config(1)) is first
    assert [each.seconds for each in timers] == [10.0], "one for all items"
    clock[0] = 110.0
    timers[0].end()
    assert not first.calls + second.calls
    assert [each.seconds for each in timers] == [10.0, 4.0]
    clock[0] = 114.0
    timers[1].end()
    assert second.calls == ["close within 5.0 s"]
    kept.put(config(1), first)
    assert [each.seconds for each in timers] == [10.0, 4.0, 10.0], "none runs while none is kept"


def test_no_timer_runs_for_items_that_are_kept_for_ever(
    makes: Makes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "Timer", None)
    kept = stock(makes, idle_seconds=math.inf)
    first = kept.take(config())
    kept.put(config(), first)
    assert kept.take(config()) is first
