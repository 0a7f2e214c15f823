"""The setting of metrics for brokers: https://kafka.apache.org/documentation/#consumerconfigs."""

from dataclasses import dataclass

from spark_kafka_source.options.declaration import option
from spark_kafka_source.options.kinds import boolean


@dataclass(frozen=True, slots=True)
class TelemetryConfig:
    """Whether a client pushes its metrics, with Kafka's name and default."""

    enable_metrics_push: bool = option(
        "kafka.enable.metrics.push",
        boolean(True),
        "whether brokers get the metrics that they ask this client for (KIP-714)",
    )


NO_PUSH = TelemetryConfig(enable_metrics_push=False)
"""For the clients of Spark's tasks: a task is over before a first push is due."""
