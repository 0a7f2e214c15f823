"""A client's metrics, pushed to a broker that asks for them (KIP-714).

https://cwiki.apache.org/confluence/display/KAFKA/KIP-714%3A+Client+metrics+and+observability
"""

from spark_kafka_source.telemetry.config import TelemetryConfig
from spark_kafka_source.telemetry.figures import (
    Figures,
    Tags,
    figures_of,
    metric_name,
    node_figures,
)
from spark_kafka_source.telemetry.push import LAST_PUSH_MS, Telemetry, new_client_instance_id

__all__ = [
    "LAST_PUSH_MS",
    "Figures",
    "Tags",
    "Telemetry",
    "TelemetryConfig",
    "figures_of",
    "metric_name",
    "new_client_instance_id",
    "node_figures",
]
