"""A client's metrics reporters: checked when given, told of each metric, and never in the way."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from spark_kafka_source.client.config import ClientConfig
from spark_kafka_source.client.given_objects import (
    check_call,
    configure,
    method,
    refuse_class,
    refuse_slips,
)
from spark_kafka_source.client.metrics import KafkaMetric, Measures, MetricsReporter
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.logs import logger_of
from spark_kafka_source.topic_partition import TopicPartition

logger = logger_of(__name__)

METRIC_REPORTERS = "metric_reporters"
"""The argument of a client that takes reporters."""

_CHANGE, _INIT = "metric_change", "init"
_TAKING: Mapping[str, Sequence[str]] = {
    _CHANGE: ("metric",),
    _INIT: ("metrics",),
    "metric_removal": ("metric",),
    "configure": ("configuration",),
    "close": (),
}
_SYNONYMS = {"metric_added": _CHANGE, "metric_removed": "metric_removal"}
_LIST = "Give a list of reporters, as [PrometheusReporter()]"


class GivenReporter:
    """A reporter that was checked. Its first error is logged."""

    def __init__(self, name: str, methods: Mapping[str, Callable[..., object] | None]) -> None:
        """Keep its methods. `name` is that of its class."""
        self._name = name
        self._methods = methods
        self._has_failed = False

    def begin(self, metrics: Sequence[KafkaMetric]) -> None:
        """Tell the reporter of the first metrics."""
        if self._methods[_INIT] is not None:
            self.call(_INIT, metrics)
        else:
            for metric in metrics:
                self.call(_CHANGE, metric)

    def call(self, name: str, *arguments: object) -> None:
        """Call a method of the reporter, if it has that."""
        called = self._methods[name]
        if called is None:
            return
        try:
            called(*arguments)
        except Exception:  # A user's code may raise anything, and the client goes on.
            if not self._has_failed:
                text = "The metrics reporter %s raised an error in `%s`. Later ones are not logged"
                logger.exception(text, self._name, name)
            self._has_failed = True


def given_reporters(
    argument: str, given: object, configuration: Mapping[str, object], config: ClientConfig
) -> list[GivenReporter]:
    """Return the given reporters, configured. `argument` names them in errors.

    Their configuration is the client's arguments, and its client id beside them. Raises
    `ConfigurationError` for anything that is no reporter, and if one cannot be configured.
    """
    if given is None or given == "":
        return []
    if isinstance(given, str):
        raise _java_class(argument, given)
    if not isinstance(given, Iterable):
        raise ConfigurationError(argument, f"is of type {type(given).__name__}", _LIST)
    dot = "." if any("." in name for name in configuration) else "_"
    known = {**configuration, f"client{dot}id": config.connection.client_id}
    return [_checked(argument, reporter, known) for reporter in given]


def _java_class(argument: str, name: str) -> ConfigurationError:
    expected = f"Java classes cannot be run here. {_LIST}"
    return ConfigurationError(argument, "found {}", expected, name)


def _checked(argument: str, given: object, configuration: Mapping[str, object]) -> GivenReporter:
    if isinstance(given, str):
        raise _java_class(argument, given)
    refuse_class(argument, given)
    is_subclass = isinstance(given, MetricsReporter)
    called = {name: method(argument, given, name) for name in _TAKING}
    base = MetricsReporter if is_subclass else None
    lacking = [name for name in _TAKING if method(argument, given, name, base) is None]
    refuse_slips(argument, given, lacking, _SYNONYMS)
    if _CHANGE in lacking and (not is_subclass or _INIT in lacking):
        said = f"has an object of type {type(given).__name__}, which has no method `{_CHANGE}`"
        raise ConfigurationError(argument, said, f"Give objects with `{_CHANGE}(metric)`")
    for name, parameters in _TAKING.items():
        if called[name] is not None:
            what = f"has a reporter with a method `{name}`"
            check_call(argument, called[name], what, *parameters)
    configure(argument, given, configuration)
    return GivenReporter(type(given).__name__, called)


class Reporting:
    """What the reporters of one client know of its metrics. The client's thread uses it."""

    def __init__(
        self,
        reporters: Sequence[GivenReporter],
        client_type: str,
        client_id: str,
        measures: Measures,
    ) -> None:
        """Tell the reporters of these metrics."""
        self._reporters = reporters
        self._client_type, self._tags = client_type, {"client-id": client_id}
        self._of_partitions: dict[TopicPartition, KafkaMetric] = {}
        metrics = [
            KafkaMetric(name, client_type, self._tags, each) for name, each in measures.items()
        ]
        for reporter in reporters:
            reporter.begin(metrics)

    def follow(
        self,
        partitions: Collection[TopicPartition],
        name: str,
        measure: Callable[[TopicPartition], float],
    ) -> None:
        """Tell the reporters of the metric `name` of each partition that came or went since."""
        if not self._reporters:
            return
        for gone in self._of_partitions.keys() - set(partitions):
            self._tell("metric_removal", self._of_partitions.pop(gone))
        for each in partitions:
            if each not in self._of_partitions:
                topic, partition = each
                tags = {**self._tags, "topic": topic, "partition": str(partition)}
                metric = KafkaMetric(name, self._client_type, tags, partial(measure, each))
                self._of_partitions[each] = metric
                self._tell(_CHANGE, metric)

    def close(self) -> None:
        """Tell the reporters that the client is closed."""
        self._tell("close")

    def _tell(self, name: str, *arguments: Any) -> None:
        for reporter in self._reporters:
            reporter.call(name, *arguments)
