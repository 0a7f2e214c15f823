"""Figures over time windows: as Kafka's own, at the same moments with the same values."""

import math
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from spark_kafka_source.client.sensor import Sensor, SensorConfig
from tests.client.clock import Clock
from tools.java_program import JavaProgram, run_java

_STEP_SECONDS = 0.125  # Exact in binary, so that the edges of windows are the same.


def figures(sensor: Sensor) -> list[float]:
    return [sensor.rate, sensor.frequency, sensor.average, sensor.most]


def test_a_sensor_forgets_what_is_older_than_its_windows() -> None:
    clock = Clock()
    sensor = Sensor(clock=clock.monotonic)
    assert figures(sensor) == [0, 0, 0, 0]
    sensor.record(10)
    sensor.record(30)
    clock.now_seconds += 10
    assert sensor.average == 20
    assert sensor.most == 30
    # Two windows of 30 s: the first seconds count as if one whole window had been before them.
    assert sensor.rate == pytest.approx(40 / 40)
    assert sensor.frequency == pytest.approx(2 / 40)
    clock.now_seconds += 25
    sensor.record(2)
    assert sensor.most == 30, "the window before counts as well"
    clock.now_seconds += 30
    sensor.record(1)
    assert sensor.most == 2
    clock.now_seconds += 100
    assert figures(sensor) == [0, 0, 0, 0]
    assert (sensor.count, sensor.total) == (4, 43)


def test_values_of_one_moment_are_recorded_at_once_as_one_by_one() -> None:
    clock = Clock()
    at_once, one_by_one = (Sensor(clock=clock.monotonic) for _ in range(2))
    at_once.record(3, 9, 6)
    for value in (3, 9, 6):
        one_by_one.record(value)
    assert figures(at_once) == figures(one_by_one)
    assert (at_once.count, at_once.total) == (3, 18)


def test_the_windows_are_as_many_and_as_long_as_they_are_set() -> None:
    clock = Clock()
    sensor, of_four = (Sensor(SensorConfig(each, 1_000), clock.monotonic) for each in (1, 4))
    for each in (sensor, of_four):
        each.record(8)
    clock.now_seconds += 0.5
    assert sensor.rate == pytest.approx(8 / 0.5)
    assert of_four.rate == pytest.approx(8 / 3.5)
    clock.now_seconds += 0.5
    assert sensor.most == 0
    assert of_four.most == 8
    clock.now_seconds += 3
    assert of_four.most == 0


def test_a_burst_at_one_moment_has_a_finite_rate() -> None:
    clock = Clock()
    sensor = Sensor(SensorConfig(1, 1_000), clock.monotonic)
    sensor.record(1)
    assert sensor.rate == 1_000


@pytest.fixture(scope="module")
def java(kafka_jars: list[Path]) -> Iterator[JavaProgram]:
    with run_java(Path(__file__).with_name("Sensors.java"), kafka_jars) as program:
        yield program


@pytest.mark.java
@pytest.mark.parametrize("seed", range(40))
def test_they_are_kafkas_own(java: JavaProgram, seed: int) -> None:
    random = Random(seed)
    samples, steps = random.randint(1, 4), random.randint(1, 12)
    clock = Clock()
    config = SensorConfig(samples, int(steps * _STEP_SECONDS * 1000))
    sensor = Sensor(config, clock.monotonic)
    words, ours = [str(samples), str(config.metrics_sample_window_ms)], list[float]()
    for _ in range(60):
        if random.random() < 0.6:
            clock.now_seconds += _STEP_SECONDS * random.choice([0, 1, 2, 5, 30])
        at_ms = int(clock.now_seconds * 1000)
        if random.random() < 0.6:
            value = random.randint(0, 1_000)
            sensor.record(value)
            words.append(f"{at_ms}:{value}")
        else:
            ours += figures(sensor)
            words.append(str(at_ms))
    theirs = [float(each) for each in java.ask(" ".join(words)).split()]
    # Where there is no value, Kafka's average and maximum are not a number.
    assert ours == pytest.approx([0.0 if math.isnan(each) else each for each in theirs])
