"""The setting of metrics for brokers: https://kafka.apache.org/documentation/#consumerconfigs."""

from dataclasses import dataclass

from spark_kafka_source.settings import setting


@dataclass(frozen=True, slots=True)
class TelemetryConfig:
    """Whether a client pushes its metrics, with Kafka's name and default."""

    enable_metrics_push: bool = setting(
        True, meaning="whether brokers get the metrics that they ask this client for (KIP-714)"
    )


NO_PUSH = TelemetryConfig(enable_metrics_push=False)
"""For the clients of Spark's tasks: a task is over before a first push is due."""
