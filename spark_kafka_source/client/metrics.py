"""The metrics of a client as objects, for reporters: https://kafka.apache.org/documentation/#monitoring."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Measures: TypeAlias = Mapping[str, Callable[[], float]]
"""Functions that return the present values, by the names of the metrics."""


@dataclass(frozen=True, slots=True, eq=False)
class KafkaMetric:
    """One metric of one client. Any thread may read its value at any time.

    `name` is Kafka's, as `records-lag-max`. `client_type` is `consumer` or `producer`. `tags` are
    Kafka's: `client-id`, and for the metric of a partition `topic` and `partition`.
    """

    name: str
    client_type: str
    tags: Mapping[str, str]
    measure: Callable[[], float]

    @property
    def value(self) -> float:
        """The present value. Times are in ms, rates per second. It is NaN if it is not known."""
        return float(self.measure())


class MetricsReporter:
    """A receiver of a client's metrics, as Kafka's `MetricsReporter`.

    `metric_change` gives it a metric once. It reads the metric's value whenever it wants to. A
    reporter needs not be a subclass of this class: an object with a method `metric_change` is one,
    too, and has the other methods if it wants them. A client logs the first error of a reporter,
    and goes on.
    """

    def configure(self, configuration: Mapping[str, object]) -> None:
        """Take the arguments of the client, and its `client_id`. Some may be secret.

        Its error is a `ConfigurationError` of the client's constructor.
        """

    def init(self, metrics: Sequence[KafkaMetric]) -> None:
        """Take the client's first metrics. By default, call `metric_change` with each of them."""
        for metric in metrics:
            self.metric_change(metric)

    def metric_change(self, metric: KafkaMetric) -> None:
        """Take one more metric, such as the lag of a partition that the consumer got."""

    def metric_removal(self, metric: KafkaMetric) -> None:
        """Drop a metric, such as the lag of a partition that the consumer gave up."""

    def close(self) -> None:
        """Drop all metrics: the client is closed."""


def read(measures: Measures) -> dict[str, float]:
    """Return the present values by name."""
    return {name: measure() for name, measure in measures.items()}
