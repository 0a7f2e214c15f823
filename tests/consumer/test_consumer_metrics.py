"""Counts and rates over the last minute, on a test's own clock."""

import pytest

from spark_kafka_source.client.sensor import Sensor
from spark_kafka_source.consumer.metrics import Metrics
from tests.client.clock import Clock


def test_a_sensor_forgets_what_is_older_than_its_windows() -> None:
    clock = Clock()
    sensor = Sensor(clock.monotonic)
    assert (sensor.rate, sensor.average, sensor.most, sensor.frequency) == (0, 0, 0, 0)
    sensor.record(10)
    sensor.record(30)
    clock.now_seconds += 10
    assert sensor.average == 20
    assert sensor.most == 30
    assert sensor.rate == pytest.approx(4)
    assert sensor.frequency == pytest.approx(0.2)
    clock.now_seconds += 25
    sensor.record(2)
    assert sensor.most == 30, "the window before counts as well"
    clock.now_seconds += 30
    sensor.record(1)
    assert sensor.most == 2
    clock.now_seconds += 100
    assert (sensor.rate, sensor.average, sensor.most) == (0, 0, 0)
    assert (sensor.count, sensor.total) == (4, 43)


def test_a_snapshot_of_nothing_has_all_names_and_no_surprises() -> None:
    found = Metrics().snapshot()
    for name in ("last-poll", "last-heartbeat", "last-rebalance"):
        assert found.pop(f"{name}-seconds-ago") == -1
    assert set(found.values()) == {0}
    assert {"records-consumed-total", "commit-latency-avg", "fetch-rate"} <= found.keys()
