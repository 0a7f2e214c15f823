"""The names of metrics in pushes, and functions that return their present values."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from spark_kafka_source.client import Cluster, Sensor
from spark_kafka_source.client.metrics import Measures
from spark_kafka_source.client.traffic import Traffic

Tags: TypeAlias = Mapping[str, str]
"""What a value is of, such as `topic` and `partition`. It is empty for values of the client."""

Figures: TypeAlias = Mapping[str, Callable[[], Iterable[tuple[Tags, float]]]]
"""Functions that return the present values, by full names. The first are the most important.

The values of a name that ends with `.total` are sums. A sum has no tags.
"""

_DOMAIN = "org.apache.kafka"
_NO_TAGS: Tags = {}


def metric_name(client_type: str, group: str, name: str) -> str:
    """Return the full name of a metric, from Kafka's name and group.

    `request-latency-avg` of a producer's group `node` is
    `org.apache.kafka.producer.node.request.latency.avg`.
    """
    parts = (_DOMAIN, client_type, group, name)
    return ".".join(part for part in parts if part).replace("-", ".")


def figures_of(client_type: str, group: str, measures: Measures) -> Figures:
    """Return the figures of metrics without tags, which are all in one of Kafka's groups."""
    return {
        metric_name(client_type, group, name): _without_tags(measure)
        for name, measure in measures.items()
    }


def node_figures(client_type: str, traffic: Traffic, cluster: Cluster) -> Figures:
    """Return the figures of each broker: how long it takes to answer."""

    def of_nodes(value: Callable[[Sensor], float]) -> Callable[[], Iterable[tuple[Tags, float]]]:
        return lambda: [
            ({"node_id": f"node-{node_id}"}, value(answer_ms))
            for node_id, answer_ms in traffic.answer_ms(cluster)
        ]

    return {
        metric_name(client_type, "node", f"request-latency-{name}"): of_nodes(value)
        for name, value in (("avg", lambda each: each.average), ("max", lambda each: each.most))
    }


def _without_tags(measure: Callable[[], float]) -> Callable[[], Iterable[tuple[Tags, float]]]:
    return lambda: [(_NO_TAGS, measure())]
