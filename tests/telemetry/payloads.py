"""Payloads of pushes, read by OpenTelemetry's own classes."""

from collections.abc import Sequence
from typing import Any

from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData


def read(data: bytes) -> tuple[dict[str, str], dict[str, Metric]]:
    """Return the labels and the metrics of a payload."""
    (of_client,) = MetricsData.FromString(data).resource_metrics
    (scope,) = of_client.scope_metrics
    labels = {each.key: each.value.string_value for each in of_client.resource.attributes}
    found = {each.name: each for each in scope.metrics}
    assert len(found) == len(scope.metrics)
    return labels, found


def points(metric: Metric) -> Sequence[Any]:
    kind = metric.sum if metric.HasField("sum") else metric.gauge
    found: Sequence[Any] = kind.data_points
    return found


def values(data: bytes) -> dict[str, float]:
    """Return the only value of each metric."""
    found = {}
    for name, metric in read(data)[1].items():
        (point,) = points(metric)
        found[name] = float(point.as_double)
    return found


def tags(point: Any) -> dict[str, str]:
    return {each.key: each.value.string_value for each in point.attributes}
