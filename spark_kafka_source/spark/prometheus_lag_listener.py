"""A `LagListener` that shows Prometheus the lag, the speed and the age of queries.

It needs the package prometheus_client (the extra `prometheus`).
https://prometheus.github.io/client_python/collector/custom/
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryTerminatedEvent,
    StreamingQueryProgress,
)

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.extras import install_extra
from spark_kafka_source.net import TokenProvider
from spark_kafka_source.spark.lag_listener import Lag, LagListener, lags

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Metric


class PrometheusLagListener(LagListener):
    """A `LagListener` that also shows Prometheus the figures of `format("pykafka")` queries.

        spark.streams.addListener(PrometheusLagListener())
        prometheus_client.start_http_server(9404)

    | metric | labels | value |
    |---|---|---|
    | `pykafka_query_lag_records` | `query`, `topic`, `partition` | records still to read after the last micro-batch |
    | `pykafka_query_rows_per_second` | `query` | rows of the last micro-batch per second |
    | `pykafka_query_batch_seconds` | `query` | duration of the last micro-batch |
    | `pykafka_query_batch_timestamp_seconds` | `query` | end of the last micro-batch, or of a look that found no new records |

    `query` is the query's name, or else its id. A query that dies keeps its figures, so that its
    age grows. A query that ends without an error has none afterwards. Of queries with one name,
    the one whose micro-batch ended last is shown. Listeners with one registry share the metrics.

    `registry` is a `prometheus_client.CollectorRegistry`; the default is `prometheus_client`'s own.
    `callback`, `options` and `token_provider` are those of `LagListener`. Raises
    `ConfigurationError` where `prometheus_client` is not installed.
    """  # noqa: E501

    def __init__(
        self,
        callback: Callable[[StreamingQueryProgress, Lag], None] | None = None,
        *,
        options: Mapping[str, str] | None = None,
        token_provider: TokenProvider | None = None,
        registry: "CollectorRegistry | None" = None,
    ) -> None:
        super().__init__(callback, options=options, token_provider=token_provider)
        try:
            from prometheus_client import REGISTRY  # noqa: PLC0415
        except ImportError as error:
            found = "needs the package prometheus_client, which is not installed"
            raise ConfigurationError(
                "PrometheusLagListener", found, install_extra("prometheus")
            ) from error
        self._collector = _collector_of(REGISTRY if registry is None else registry)

    def close(self) -> None:
        """Forget the figures that this listener has shown. Then do what a `LagListener` does."""
        self._collector.forget_all_of(self)
        super().close()

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Show the figures of a micro-batch that has ended. Then do what a `LagListener` does."""
        lag = lags(event.progress)
        if lag is not None:
            self._collector.batch_ended(event.progress, lag, self)
        super().onQueryProgress(event)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Note that a query looked, and found nothing new."""
        self._collector.looked(str(event.id))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Forget the figures of a query that ended without an error. Keep those of a dead one."""
        if event.exception is None:
            self._collector.forget(str(event.id))
        super().onQueryTerminated(event)


@dataclass(slots=True)
class _Query:
    """The last figures of a query."""

    id: str
    shown_by: PrometheusLagListener
    lag: Lag
    rows_per_second: float
    batch_seconds: float
    timestamp_seconds: float


class _Collector:
    """A collector of Prometheus: it has the figures of all queries of its registry's listeners."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queries: dict[str, _Query] = {}
        """By what the label `query` says: the query's name, or else its id."""

    def batch_ended(
        self, progress: StreamingQueryProgress, lag: Lag, listener: PrometheusLagListener
    ) -> None:
        """Keep the figures of a micro-batch in the place of earlier ones of its query and name."""
        query = _Query(
            str(progress.id),
            listener,
            lag,
            progress.processedRowsPerSecond,
            progress.batchDuration / 1000,
            time.time(),
        )
        with self._lock:
            self._keep(lambda each: each.id != query.id)  # It may have had another name.
            self._queries[progress.name or query.id] = query

    def looked(self, query_id: str) -> None:
        """Keep the time at which a query found nothing new."""
        with self._lock:
            for query in self._queries.values():
                if query.id == query_id:
                    query.timestamp_seconds = time.time()

    def forget(self, query_id: str) -> None:
        """Show a query no more."""
        with self._lock:
            self._keep(lambda each: each.id != query_id)

    def forget_all_of(self, listener: PrometheusLagListener) -> None:
        """Show the queries of a listener no more."""
        with self._lock:
            self._keep(lambda each: each.shown_by is not listener)

    def _keep(self, is_kept: Callable[[_Query], bool]) -> None:
        self._queries = {name: each for name, each in self._queries.items() if is_kept(each)}

    def describe(self) -> "list[Metric]":
        """Return nothing: which queries there are is known at a scrape."""
        return []

    def collect(self) -> "Iterator[Metric]":
        """Yield the metrics."""
        from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415

        def gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
            return GaugeMetricFamily(f"pykafka_query_{name}", text, labels=["query", *labels])

        lag = gauge("lag_records", "Records still to read", "topic", "partition")
        rows = gauge("rows_per_second", "Rows of the last micro-batch per second")
        seconds = gauge("batch_seconds", "Duration of the last micro-batch")
        text = "End of the last micro-batch, or of a look that found no new records"
        ended = gauge("batch_timestamp_seconds", text)
        with self._lock:
            for name, query in self._queries.items():
                for at, records in query.lag.items():
                    lag.add_metric([name, at.topic, str(at.partition)], records)
                rows.add_metric([name], query.rows_per_second)
                seconds.add_metric([name], query.batch_seconds)
                ended.add_metric([name], query.timestamp_seconds)
        yield from (lag, rows, seconds, ended)


# A registry takes each name of a metric once. So all listeners with a registry share a collector.
_collectors: "WeakKeyDictionary[CollectorRegistry, _Collector]" = WeakKeyDictionary()
_lock = threading.Lock()


def _collector_of(registry: "CollectorRegistry") -> _Collector:
    """Return the collector of a registry, made and registered if there is none."""
    with _lock:
        collector = _collectors.get(registry)
        if collector is None:
            collector = _collectors[registry] = _Collector()
            registry.register(collector)
        return collector
