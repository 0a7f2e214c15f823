"""Metrics reporters: what they are told, what is refused when given, and errors of theirs."""

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from spark_kafka_source import KafkaConsumer, KafkaMetric, KafkaProducer, MetricsReporter
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.testing.memory import MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import T0, T1, consuming, fill, polled

pytestmark = pytest.mark.memory(topics={"t": 2})

NOWHERE: dict[str, Any] = {"bootstrap_servers": "127.0.0.1:1"}
LOGIN: dict[str, Any] = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_username": "ada",
    "sasl_password": "hush",
}
TOTAL = "records-consumed-total"


class Noting(MetricsReporter):
    """A reporter that notes all calls."""

    def __init__(self) -> None:
        self.configuration: Mapping[str, object] = {}
        self.metrics: dict[tuple[str, ...], KafkaMetric] = {}
        self.told: list[str] = []

    def configure(self, configuration: Mapping[str, object]) -> None:
        self.told.append("configure")
        self.configuration = configuration

    def metric_change(self, metric: KafkaMetric) -> None:
        self.told.append(metric.name)
        self.metrics[key(metric)] = metric

    def metric_removal(self, metric: KafkaMetric) -> None:
        self.told.append(f"gone: {metric.name}")
        del self.metrics[key(metric)]

    def close(self) -> None:
        self.told.append("close")


def key(metric: KafkaMetric) -> tuple[str, ...]:
    return metric.name, *(value for name, value in metric.tags.items() if name != "client-id")


class OneMethod:
    """The least that is a reporter."""

    def __init__(self) -> None:
        self.metrics: list[KafkaMetric] = []

    def metric_change(self, metric: KafkaMetric) -> None:
        self.metrics.append(metric)


def test_a_consumer_tells_of_its_metrics_and_of_partitions_that_come_and_go(
    broker: MemoryBroker,
) -> None:
    fill(broker, T0, 2)
    noting, least = Noting(), OneMethod()
    with consuming(
        broker, T0, T1, client_id="mine", metric_reporters=[noting, least], max_poll_records=5
    ) as consumer:
        assert noting.told[0] == "configure"
        assert noting.configuration["client_id"] == "mine"
        assert noting.configuration["auto_offset_reset"] == "earliest"
        lag = noting.metrics["records-lag", "t", "0"]
        assert lag.tags == {"client-id": "mine", "topic": "t", "partition": "0"}
        assert math.isnan(lag.value)
        polled(consumer, 5)
        assert lag.value == 15
        assert noting.metrics[TOTAL,].value == 5
        values = {each.name: each.value for each in noting.metrics.values() if len(each.tags) == 1}
        assert values.keys() == {name for name in consumer.metrics() if "." not in name}
        consumer.assign([T1])
        assert ("records-lag", "t", "0") not in noting.metrics
        assert ("records-lag", "t", "1") in noting.metrics
        assert math.isnan(lag.value), "the reporter may still read it"
        consumer.unsubscribe()
        assert noting.told[-1] == "gone: records-lag"
    assert noting.told.count("close") == 1
    assert [each.name for each in least.metrics].count("records-lag") == 2
    assert {each.client_type for each in least.metrics} == {"consumer"}


def test_a_producer_tells_of_its_metrics(broker: MemoryBroker) -> None:
    noting, address = Noting(), broker.address()
    with KafkaProducer(
        **{"bootstrap.servers": f"{address.host}:{address.port}", "metric.reporters": [noting]}  # type: ignore[arg-type]
    ) as producer:
        producer.send("t", b"v").result(20)
        assert noting.metrics["record-send-total",].value == 1
        assert {name for (name,) in noting.metrics} == producer.metrics().keys()
        assert str(noting.configuration["client.id"]).startswith("spark-kafka-source-")
        assert {each.client_type for each in noting.metrics.values()} == {"producer"}
    assert noting.told[-1] == "close"


class Failing(MetricsReporter):
    """A reporter whose every method raises."""

    def init(self, metrics: Sequence[KafkaMetric]) -> None:
        raise ValueError("init")

    def metric_change(self, metric: KafkaMetric) -> None:
        raise ValueError("change")

    def metric_removal(self, metric: KafkaMetric) -> None:
        raise ValueError("removal")

    def close(self) -> None:
        raise ValueError("close")


def test_errors_of_a_reporter_are_logged_once_and_hurt_nobody(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    fill(broker, T0, 1)
    noting = Noting()
    with caplog.at_level(logging.ERROR):
        with consuming(broker, T0, metric_reporters=[Failing(), noting]) as consumer:
            assert len(polled(consumer, 10)) == 10
            consumer.assign([T1])
        assert noting.told[-1] == "close"
    (said,) = caplog.messages
    assert said == (
        "The metrics reporter Failing raised an error in `init`. Later ones are not logged"
    )


class Unconfigured(MetricsReporter):
    def configure(self, configuration: Mapping[str, object]) -> None:
        raise ValueError(f"no: {configuration}")

    def metric_change(self, metric: KafkaMetric) -> None: ...


class Misspelt:
    def metric_change(self, metric: KafkaMetric) -> None: ...

    def metric_removed(self, metric: KafkaMetric) -> None: ...


class Javas:
    def metricChange(self, metric: KafkaMetric) -> None: ...


class TakesNothing:
    def metric_change(self) -> None: ...


REFUSED: dict[str, tuple[Any, str]] = {
    "class": ([Noting], "is the class 'Noting'. Give an object of it"),
    "no list": (Noting(), "is of type Noting. Give a list of reporters"),
    "a name": ("org.apache.kafka.common.metrics.JmxReporter", "Java classes cannot be run here"),
    "a name in a list": (["JmxReporter"], "Java classes cannot be run here"),
    "anything": ([5], "has an object of type int, which has no method `metric_change`"),
    "does nothing": ([MetricsReporter()], "which has no method `metric_change`"),
    "slip": ([Misspelt()], "has `metric_removed`, which is never called. Did you mean"),
    "java": ([Javas()], "Did you mean `metric_change`"),
    "arguments": ([TakesNothing()], "`metric_change` that cannot be called with (metric)"),
    "configure": ([Unconfigured()], "raised ValueError in `configure`"),
}


@pytest.mark.parametrize("client", [KafkaConsumer, KafkaProducer])
@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_reporter_is_refused_when_given(client: Any, case: str) -> None:
    given, said = REFUSED[case]
    with pytest.raises(ConfigurationError) as refused:
        client(metric_reporters=given, **NOWHERE, **LOGIN)
    assert said in str(refused.value)
    assert refused.value.option == "metric_reporters"
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize("nothing", [None, "", [], ()], ids=["none", "empty", "list", "tuple"])
def test_none_are_fine(nothing: Any) -> None:
    with KafkaConsumer(metric_reporters=nothing, **NOWHERE) as consumer:
        assert consumer.assignment() == set[TopicPartition]()
    twice: dict[str, Any] = {"metric.reporters": "", "metric_reporters": []}
    with pytest.raises(ConfigurationError, match="twice"):
        KafkaConsumer(**twice, **NOWHERE)


def test_the_windows_of_a_client_are_those_of_its_settings() -> None:
    given: dict[str, Any] = {"metrics_num_samples": 3, "metrics.sample.window.ms": 7_000}
    with KafkaConsumer(**NOWHERE, **given) as consumer, KafkaProducer(**NOWHERE, **given) as sender:
        for each in (consumer._metrics.records, sender._metrics.written):
            assert (each._samples, each._window_seconds) == (3, 7)
    for name in given:
        nothing: dict[str, Any] = {name: 0}
        with pytest.raises(ConfigurationError, match="Give a whole number from 1"):
            KafkaConsumer(**NOWHERE, **nothing)
