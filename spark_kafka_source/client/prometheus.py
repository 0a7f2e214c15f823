"""A metrics reporter for Prometheus, by the package prometheus_client (the extra `prometheus`).

https://prometheus.github.io/client_python/collector/custom/
"""

import os
import threading
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from spark_kafka_source.client.metrics import KafkaMetric, MetricsReporter
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.extras import install_extra
from spark_kafka_source.forks import OwnProcess
from spark_kafka_source.logs import logger_of

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Metric

logger = logger_of(__name__)

_ARGUMENT = "metric_reporters"
_TOTAL = "_total"
_DOCUMENTATION = MappingProxyType(
    {
        "consumer": "https://kafka.apache.org/documentation/#consumer_monitoring",
        "producer": "https://kafka.apache.org/documentation/#producer_monitoring",
    }
)

# A registry takes each name of a metric once. So all reporters of a registry share one collector.
_collectors: "WeakKeyDictionary[CollectorRegistry, _Collector]" = WeakKeyDictionary()
_lock = threading.RLock()


def _renew_lock() -> None:
    global _lock  # noqa: PLW0603
    _lock = threading.RLock()


# The child of a fork lacks the thread that may have held the lock.
os.register_at_fork(after_in_child=_renew_lock)


class PrometheusReporter(MetricsReporter):
    """A reporter that shows Prometheus the metrics of one client.

        consumer = KafkaConsumer(..., metric_reporters=[PrometheusReporter()])
        prometheus_client.start_http_server(9404)

    A scrape reads the present values. A name is such as `pykafka_consumer_records_lag_max` or
    `pykafka_producer_record_send_total`. The labels are `client_id`, and for a partition's metric
    `topic` and `partition`. Give each client a reporter of its own. They may share a registry.

    `registry` is a `prometheus_client.CollectorRegistry`; the default is `prometheus_client`'s own.
    Raises `ConfigurationError` where `prometheus_client` is not installed.
    """

    def __init__(self, registry: "CollectorRegistry | None" = None) -> None:
        try:
            from prometheus_client import REGISTRY  # noqa: PLC0415
        except ImportError as error:
            found = "has a PrometheusReporter, and the package prometheus_client is not installed"
            raise ConfigurationError(_ARGUMENT, found, install_extra("prometheus")) from error
        self._registry = REGISTRY if registry is None else registry
        self._process = OwnProcess("reporter")
        self._metrics: dict[int, KafkaMetric] = {}

    def configure(self, configuration: Mapping[str, object]) -> None:
        """Raise `ConfigurationError` if the reporter has a client already."""
        if self._metrics:
            found = "has a PrometheusReporter that another client has, too"
            raise ConfigurationError(_ARGUMENT, found, "Give each client a reporter of its own")

    def metric_change(self, metric: KafkaMetric) -> None:
        """Show the metric from now on."""
        with _lock:
            self._metrics[id(metric)] = metric
            _collector_of(self._registry).reporters[self] = None

    def metric_removal(self, metric: KafkaMetric) -> None:
        """Show the metric no more."""
        with _lock:
            self._metrics.pop(id(metric), None)

    def close(self) -> None:
        """Show no metric any more."""
        with _lock:
            self._metrics.clear()
            collector = _collectors.get(self._registry)
            if collector is None or self not in collector.reporters:
                return
            del collector.reporters[self]
            if not collector.reporters:
                del _collectors[self._registry]
                self._registry.unregister(collector)

    def shown(self) -> list[KafkaMetric]:
        """Return the metrics to show. A fork's child shows none: the parent has the client."""
        with _lock:
            return list(self._metrics.values()) if self._process.is_here else []


def _collector_of(registry: "CollectorRegistry") -> "_Collector":
    """Return the collector of a registry, made and registered if there is none."""
    collector = _collectors.get(registry)
    if collector is None:
        collector = _Collector()
        registry.register(collector)
        _collectors[registry] = collector
    return collector


class _Collector:
    """The metrics of all reporters with one registry, for each scrape."""

    def __init__(self) -> None:
        self.reporters: dict[PrometheusReporter, None] = {}
        self._has_warned = False

    def describe(self) -> "list[Metric]":
        """Return nothing: which metrics there are is known at a scrape."""
        return []

    def collect(self) -> "Iterator[Metric]":
        """Yield the metrics by name."""
        from prometheus_client.core import (  # noqa: PLC0415
            CounterMetricFamily,
            GaugeMetricFamily,
        )

        families: dict[str, Any] = {}
        seen = set[tuple[str, ...]]()
        with _lock:
            reporters = list(self.reporters)
        for metric in (each for reporter in reporters for each in reporter.shown()):
            name = f"pykafka_{metric.client_type}_{metric.name.replace('-', '_')}"
            values = tuple(metric.tags.values())
            if (name, *values) in seen:
                self._warn(metric)
                continue
            seen.add((name, *values))
            if name not in families:
                labels = [tag.replace("-", "_") for tag in metric.tags]
                text = f"Kafka's {metric.name}: {_DOCUMENTATION[metric.client_type]}"
                kind = CounterMetricFamily if name.endswith(_TOTAL) else GaugeMetricFamily
                families[name] = kind(name.removesuffix(_TOTAL), text, labels=labels)
            families[name].add_metric(values, metric.value)
        yield from families.values()

    def _warn(self, metric: KafkaMetric) -> None:
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "Two %ss have the client id %r, and Prometheus gets the metrics of the first only."
                " Give each a client_id of its own, or none",
                metric.client_type,
                metric.tags["client-id"],
            )
