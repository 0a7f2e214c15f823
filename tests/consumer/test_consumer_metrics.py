"""The figures of a consumer, on a test's own clock."""

import pytest

from spark_kafka_source.client.metrics import read
from spark_kafka_source.client.sensor import SensorConfig
from spark_kafka_source.consumer.metrics import Metrics
from tests.client.clock import Clock


def test_figures_of_nothing_have_all_names_and_no_surprises() -> None:
    found = read(Metrics().measures)
    for name in ("last-poll", "last-heartbeat", "last-rebalance"):
        assert found.pop(f"{name}-seconds-ago") == -1
    assert set(found.values()) == {0}
    assert {"records-consumed-total", "commit-latency-avg", "fetch-rate"} <= found.keys()


def test_all_sensors_forget_after_the_windows_that_are_set() -> None:
    clock = Clock()
    metrics = Metrics(SensorConfig(1, 5_000), clock.monotonic)
    metrics.fetch_ms.record(10)
    metrics.records.record(30)
    metrics.group.rebalance_began()
    clock.now_seconds += 1
    metrics.group.rebalance_ended()
    found = read(metrics.measures)
    assert found["fetch-latency-avg"] == 10
    assert found["records-per-request-avg"] == 30
    assert found["records-consumed-rate"] == pytest.approx(30)
    assert found["rebalance-latency-max"] == 1_000
    clock.now_seconds += 5
    found = read(metrics.measures)
    for name in ("fetch-latency-avg", "records-per-request-avg", "rebalance-latency-max"):
        assert found[name] == 0, name
    assert found["records-consumed-total"] == 30


def test_the_idle_ratio_is_the_part_of_the_time_that_polls_took() -> None:
    clock = Clock()
    metrics = Metrics(clock=clock.monotonic)
    metrics.poll_began()
    clock.now_seconds += 3
    metrics.poll_ended()
    assert read(metrics.measures)["poll-idle-ratio-avg"] == 1, "as in Java"
    clock.now_seconds += 5
    metrics.poll_began()
    metrics.poll_ended()
    found = read(metrics.measures)
    assert found["poll-idle-ratio-avg"] == 0.5
    assert found["time-between-poll-max"] == 8_000
