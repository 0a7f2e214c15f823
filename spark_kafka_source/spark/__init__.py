"""The PySpark data source: `source` reads, `sink` writes, and the modules here serve both."""

from typing import TYPE_CHECKING

from spark_kafka_source.lazily import importing

if TYPE_CHECKING:
    from spark_kafka_source.spark.data_source import KafkaDataSource, register
    from spark_kafka_source.spark.lag_listener import LagListener
    from spark_kafka_source.spark.prometheus_lag_listener import PrometheusLagListener
    from spark_kafka_source.spark.sink.encoding import encode

__all__ = [
    "KafkaDataSource",
    "LagListener",
    "PrometheusLagListener",
    "encode",
    "register",
]

if not TYPE_CHECKING:
    __getattr__ = importing(
        __name__,
        {
            "data_source": "KafkaDataSource register",
            "lag_listener": "LagListener",
            "prometheus_lag_listener": "PrometheusLagListener",
            "sink.encoding": "encode",
        },
    )
