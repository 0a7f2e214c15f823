"""The reporter for Prometheus: what a scrape over HTTP brings, of clients of a real broker."""

import os
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as open_metrics,
)
from prometheus_client.parser import text_string_to_metric_families as plain_text

from spark_kafka_source import KafkaConsumer, KafkaProducer, PrometheusReporter, TopicPartition
from spark_kafka_source.client import prometheus
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.testing import LocalKafka
from tests.forking import forking, in_child

NOWHERE: dict[str, Any] = {"bootstrap_servers": "127.0.0.1:1"}
PATIENCE_SECONDS = 60
OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

LABELS = ("client_id", "topic", "partition")

Samples = dict[str, dict[tuple[str, ...], float]]


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry(auto_describe=True)


@pytest.fixture
def address(registry: CollectorRegistry) -> Iterator[str]:
    server, thread = start_http_server(0, "127.0.0.1", registry)
    yield f"http://127.0.0.1:{server.server_port}/metrics"
    server.shutdown()
    server.server_close()
    thread.join()


def scraped(address: str, accept: str = "text/plain") -> Samples:
    """Scrape as Prometheus does. Return the values by name and by the values of the labels."""
    request = urllib.request.Request(address, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=10) as answer:
        text = answer.read().decode()
    parse = open_metrics if accept == OPEN_METRICS else plain_text
    found: Samples = {}
    for family in parse(text):
        for each in family.samples:
            values = found.setdefault(each.name, {})
            labels = tuple(each.labels[name] for name in LABELS if name in each.labels)
            assert len(labels) == len(each.labels)
            assert labels not in values, each
            values[labels] = each.value
    return found


@pytest.mark.kafka
def test_a_scrape_brings_the_present_values_of_all_clients(
    kafka: LocalKafka, topic: str, registry: CollectorRegistry, address: str
) -> None:
    kafka.create_topic(topic, 2)
    servers: dict[str, Any] = {"bootstrap_servers": kafka.bootstrap_servers}
    few: dict[str, Any] = {"max_poll_records": 1, **servers}
    reporters = [PrometheusReporter(registry) for _ in range(3)]
    with (
        KafkaProducer(client_id="writer", metric_reporters=reporters[:1], **servers) as producer,
        KafkaConsumer(client_id="one", metric_reporters=reporters[1:2], **few) as one,
        KafkaConsumer(client_id="two", metric_reporters=reporters[2:], **few) as two,
    ):
        for number in range(10):
            producer.send(topic, b"%d" % number, partition=0).result(PATIENCE_SECONDS)
        where = TopicPartition(topic, 0)
        for each, offset in ((one, 4), (two, 7)):
            each.assign([where])
            each.seek(where, offset)
            _read_one(each)
        for accept in ("text/plain", OPEN_METRICS):
            found = scraped(address, accept)
            assert found["pykafka_producer_record_send_total"] == {("writer",): 10}
            assert found["pykafka_consumer_assigned_partitions"] == {("one",): 1, ("two",): 1}
            lags = found["pykafka_consumer_records_lag"]
            assert lags == {("one", topic, "0"): 5, ("two", topic, "0"): 2}
            assert found["pykafka_consumer_records_consumed_total"]["one",] == 1
        text = urllib.request.urlopen(address, timeout=10).read().decode()
        assert text.count("# TYPE pykafka_consumer_records_lag gauge") == 1
        assert text.count("# TYPE pykafka_producer_record_send_total counter") == 1
        two.close()
        assert scraped(address)["pykafka_consumer_assigned_partitions"] == {("one",): 1}
    assert scraped(address) == {}


def _read_one(consumer: KafkaConsumer) -> None:
    until_seconds = time.monotonic() + PATIENCE_SECONDS
    while not len(consumer.poll(200)):
        assert time.monotonic() < until_seconds


def test_labels_are_ids_topics_and_partitions_alone(
    registry: CollectorRegistry, address: str
) -> None:
    security: dict[str, Any] = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_username": "ada",
        "sasl_password": "hush",
    }
    with KafkaConsumer(
        metric_reporters=[PrometheusReporter(registry)], **NOWHERE, **security
    ) as consumer:
        consumer.assign([TopicPartition('odd"\n\\', 3)])
        with urllib.request.urlopen(address, timeout=10) as answer:
            text = answer.read().decode()
        assert "ada" not in text
        assert "hush" not in text
        (labels,) = scraped(address)["pykafka_consumer_records_lag"]
        assert labels[1:] == ('odd"\n\\', "3")


def test_two_clients_with_one_id_are_told_of(
    registry: CollectorRegistry, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    made = [
        KafkaConsumer(client_id="same", metric_reporters=[PrometheusReporter(registry)], **NOWHERE)
        for _ in range(2)
    ]
    for _ in range(2):
        assert scraped(address)["pykafka_consumer_assigned_partitions"] == {("same",): 0}
    (said,) = caplog.messages
    assert "Two consumers have the client id 'same'" in said
    for each in made:
        each.close()


def test_a_reporter_has_one_client_at_a_time(registry: CollectorRegistry, address: str) -> None:
    reporter = PrometheusReporter(registry)
    with KafkaConsumer(metric_reporters=[reporter], **NOWHERE):
        with pytest.raises(ConfigurationError, match="Give each client a reporter of its own"):
            KafkaProducer(metric_reporters=[reporter], **NOWHERE)
        assert "pykafka_consumer_fetch_rate" in scraped(address)
    with KafkaProducer(metric_reporters=[reporter], **NOWHERE):
        assert "pykafka_producer_request_rate" in scraped(address)
    assert scraped(address) == {}


def test_the_usual_registry_is_the_default() -> None:
    from prometheus_client import REGISTRY, generate_latest  # noqa: PLC0415

    with KafkaConsumer(metric_reporters=[PrometheusReporter()], **NOWHERE):
        assert b"pykafka_consumer_fetch_total" in generate_latest(REGISTRY)
    assert b"pykafka" not in generate_latest(REGISTRY)


@forking
def test_a_child_of_a_fork_does_not_show_what_its_parent_has(registry: CollectorRegistry) -> None:
    from prometheus_client import generate_latest  # noqa: PLC0415

    with KafkaConsumer(metric_reporters=[PrometheusReporter(registry)], **NOWHERE):
        assert generate_latest(registry) != b""
        assert in_child(lambda: generate_latest(registry)) == b""


@forking
def test_a_lock_that_another_thread_holds_is_free_in_a_child(registry: CollectorRegistry) -> None:
    from prometheus_client import generate_latest  # noqa: PLC0415

    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with prometheus._lock:
            held.set()
            done.wait(PATIENCE_SECONDS)

    with KafkaConsumer(metric_reporters=[PrometheusReporter(registry)], **NOWHERE):
        holder = threading.Thread(target=hold)
        holder.start()
        try:
            assert held.wait(PATIENCE_SECONDS)
            assert in_child(lambda: generate_latest(registry)) == b""
        finally:
            done.set()
            holder.join()


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(ConfigurationError, match="with its extra 'prometheus'"):
        PrometheusReporter()


def test_the_package_is_imported_for_a_reporter_only() -> None:
    code = (
        "import sys, spark_kafka_source as s; s.KafkaConsumer; s.KafkaProducer;"
        "s.PrometheusReporter; assert 'prometheus_client' not in sys.modules"
    )
    assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", code]) == 0
