"""A client's metrics, pushed to a broker that asks for them (KIP-714).

https://cwiki.apache.org/confluence/display/KAFKA/KIP-714%3A+Client+metrics+and+observability
"""

from typing import TYPE_CHECKING

from spark_kafka_source.lazily import importing

if TYPE_CHECKING:
    from spark_kafka_source.telemetry.config import NO_PUSH, TelemetryConfig
    from spark_kafka_source.telemetry.figures import (
        Figures,
        Tags,
        figures_of,
        metric_name,
        node_figures,
    )
    from spark_kafka_source.telemetry.push import Telemetry, new_client_instance_id

__all__ = [
    "NO_PUSH",
    "Figures",
    "Tags",
    "Telemetry",
    "TelemetryConfig",
    "figures_of",
    "metric_name",
    "new_client_instance_id",
    "node_figures",
]

if not TYPE_CHECKING:
    __getattr__ = importing(
        __name__,
        {
            "config": "NO_PUSH TelemetryConfig",
            "figures": "Figures Tags figures_of metric_name node_figures",
            "push": "Telemetry new_client_instance_id",
        },
    )
