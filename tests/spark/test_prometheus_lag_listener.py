"""Figures of queries for Prometheus, from Spark's progress, without Spark."""

import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from pyspark.sql.streaming.listener import QueryIdleEvent, QueryTerminatedEvent

from spark_kafka_source import PrometheusLagListener
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.spark.source.source_offset import SourceOffset
from tests.spark.settings import A0, A1, B0
from tests.spark.test_lag_listener import NOT_OURS, QUERY_ID, Told, progressed, source

LAG, ENDED = "pykafka_query_lag_records", "pykafka_query_batch_timestamp_seconds"
A_SOURCE = source(SourceOffset({A0: 3, A1: 5}).to_json(), SourceOffset({A0: 10, A1: 5}).to_json())
B_SOURCE = source(SourceOffset({B0: 1}).to_json(), SourceOffset({B0: 3}).to_json())
OTHER_ID = QUERY_ID.replace("c0ffee", "decade")


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry(auto_describe=True)


@pytest.fixture
def listener(registry: CollectorRegistry) -> PrometheusLagListener:
    return PrometheusLagListener(registry=registry)


def idle(query_id: str = QUERY_ID) -> QueryIdleEvent:
    return QueryIdleEvent.fromJson({"id": query_id, "runId": query_id, "timestamp": "now"})


def terminated(exception: str | None = None, query_id: str = QUERY_ID) -> QueryTerminatedEvent:
    event = {"id": query_id, "runId": query_id, "exception": exception}
    return QueryTerminatedEvent.fromJson({**event, "errorClassOnException": None})


def lag(registry: CollectorRegistry) -> dict[tuple[str, str, str], float]:
    return {
        (each.labels["query"], each.labels["topic"], each.labels["partition"]): each.value
        for family in registry.collect()
        for each in family.samples
        if each.name == LAG
    }


def age_seconds(registry: CollectorRegistry, query: str) -> float:
    ended = registry.get_sample_value(ENDED, {"query": query})
    assert ended is not None
    return time.time() - ended


def test_a_query_has_its_figures(
    registry: CollectorRegistry, listener: PrometheusLagListener
) -> None:
    listener.onQueryProgress(progressed(A_SOURCE, name="billing"))
    assert lag(registry) == {("billing", "a", "0"): 7, ("billing", "a", "1"): 0}
    figures = {"rows_per_second": 1.0, "batch_seconds": 0.001}
    for name, value in figures.items():
        assert registry.get_sample_value(f"pykafka_query_{name}", {"query": "billing"}) == value
    assert 0 <= age_seconds(registry, "billing") < 60


def test_a_query_without_a_name_has_its_id(
    registry: CollectorRegistry, listener: PrometheusLagListener
) -> None:
    listener.onQueryProgress(progressed(B_SOURCE))
    assert lag(registry) == {(QUERY_ID, "b", "0"): 2}


def test_each_source_of_a_query_is_shown(
    registry: CollectorRegistry, listener: PrometheusLagListener
) -> None:
    listener.onQueryProgress(progressed(A_SOURCE, source(None), B_SOURCE))
    assert {(topic, partition) for _, topic, partition in lag(registry)} == {
        ("a", "0"),
        ("a", "1"),
        ("b", "0"),
    }


def test_a_partition_that_a_query_reads_no_more_has_no_lag(
    registry: CollectorRegistry, listener: PrometheusLagListener
) -> None:
    listener.onQueryProgress(progressed(A_SOURCE))
    listener.onQueryProgress(progressed(B_SOURCE))
    assert lag(registry) == {(QUERY_ID, "b", "0"): 2}


def test_an_idle_query_is_alive(
    registry: CollectorRegistry, listener: PrometheusLagListener, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr("time.time", lambda: now - 900)
    listener.onQueryProgress(progressed(A_SOURCE))
    monkeypatch.setattr("time.time", lambda: now)
    assert age_seconds(registry, QUERY_ID) == 900
    listener.onQueryIdle(idle(OTHER_ID))
    assert age_seconds(registry, QUERY_ID) == 900
    listener.onQueryIdle(idle())
    assert age_seconds(registry, QUERY_ID) == 0


@pytest.mark.parametrize("other", [each for each in NOT_OURS if each is not None])
def test_queries_of_other_sources_are_not_shown(
    registry: CollectorRegistry, listener: PrometheusLagListener, other: Any
) -> None:
    listener.onQueryProgress(progressed(source(other)))
    listener.onQueryIdle(idle())
    assert lag(registry) == {}
    assert registry.get_sample_value(ENDED, {"query": QUERY_ID}) is None


def test_a_cell_that_runs_again_shows_each_query_once(registry: CollectorRegistry) -> None:
    for _ in range(2):
        PrometheusLagListener(registry=registry).onQueryProgress(progressed(B_SOURCE))
    assert lag(registry) == {(QUERY_ID, "b", "0"): 2}
    assert len([each for each in registry.collect() if each.name == LAG]) == 1


def test_a_new_checkpoint_takes_the_place_of_the_former(
    registry: CollectorRegistry, listener: PrometheusLagListener
) -> None:
    listener.onQueryProgress(progressed(A_SOURCE, name="billing"))
    listener.onQueryProgress(progressed(B_SOURCE, name="billing", query_id=OTHER_ID))
    assert lag(registry) == {("billing", "b", "0"): 2}


def test_of_queries_with_one_name_the_last_micro_batch_is_shown(
    registry: CollectorRegistry, listener: PrometheusLagListener
) -> None:
    for _ in range(2):  # One goes on after the other.
        listener.onQueryProgress(progressed(A_SOURCE, name="billing"))
        assert lag(registry) == {("billing", "a", "0"): 7, ("billing", "a", "1"): 0}
        listener.onQueryProgress(progressed(B_SOURCE, name="billing", query_id=OTHER_ID))
        assert lag(registry) == {("billing", "b", "0"): 2}
    # The earlier one does not come back.
    listener.onQueryTerminated(terminated(query_id=OTHER_ID))
    assert lag(registry) == {}


def test_a_query_with_a_new_name_has_only_that(
    registry: CollectorRegistry, listener: PrometheusLagListener
) -> None:
    listener.onQueryProgress(progressed(B_SOURCE, name="billing"))
    listener.onQueryProgress(progressed(B_SOURCE, name="invoices"))
    assert lag(registry) == {("invoices", "b", "0"): 2}


def test_a_query_that_ended_in_order_raises_no_alert(
    registry: CollectorRegistry, listener: PrometheusLagListener
) -> None:
    listener.onQueryProgress(progressed(A_SOURCE, name="billing"))
    listener.onQueryProgress(progressed(B_SOURCE, query_id=OTHER_ID))
    listener.onQueryTerminated(terminated())
    assert lag(registry) == {(OTHER_ID, "b", "0"): 2}
    assert registry.get_sample_value(ENDED, {"query": "billing"}) is None


def test_a_query_that_died_is_still_shown(
    registry: CollectorRegistry, listener: PrometheusLagListener
) -> None:
    listener.onQueryProgress(progressed(B_SOURCE))
    listener.onQueryTerminated(terminated("KAFKA_DATA_LOSS"))
    assert lag(registry) == {(QUERY_ID, "b", "0"): 2}


def test_a_closed_listener_shows_nothing_and_leaves_the_others(
    registry: CollectorRegistry, listener: PrometheusLagListener
) -> None:
    other = PrometheusLagListener(registry=registry)
    listener.onQueryProgress(progressed(A_SOURCE))
    other.onQueryProgress(progressed(B_SOURCE, query_id=OTHER_ID))
    listener.close()
    assert lag(registry) == {(OTHER_ID, "b", "0"): 2}
    other.close()
    assert lag(registry) == {}


def test_the_callback_gets_the_lag_too(registry: CollectorRegistry) -> None:
    told = Told(ValueError("of the callback"))
    PrometheusLagListener(told, registry=registry).onQueryProgress(progressed(B_SOURCE))
    assert told.lags == [{B0: 2}]
    assert lag(registry) == {(QUERY_ID, "b", "0"): 2}


@pytest.fixture
def without_prometheus(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    yield


@pytest.mark.usefixtures("without_prometheus")
def test_the_extra_is_named_where_it_is_missing() -> None:
    with pytest.raises(ConfigurationError, match="with its extra 'prometheus'"):
        PrometheusLagListener()
