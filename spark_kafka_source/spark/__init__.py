"""The PySpark data source: what reads is in `source`, what is beside it is for both directions."""

from typing import TYPE_CHECKING

from spark_kafka_source.lazily import importing

if TYPE_CHECKING:
    from spark_kafka_source.spark.data_source import KafkaDataSource, register
    from spark_kafka_source.spark.lag_listener import LagListener

__all__ = [
    "KafkaDataSource",
    "LagListener",
    "register",
]

if not TYPE_CHECKING:
    __getattr__ = importing(
        __name__,
        {
            "KafkaDataSource": "data_source",
            "LagListener": "lag_listener",
            "register": "data_source",
        },
    )
