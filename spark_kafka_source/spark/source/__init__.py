"""The source: the driver plans ranges of offsets, and the executors read them."""

from typing import TYPE_CHECKING

from spark_kafka_source.lazily import importing

if TYPE_CHECKING:
    from spark_kafka_source.spark.source.batch import KafkaBatchReader
    from spark_kafka_source.spark.source.stream import KafkaStreamReader
    from spark_kafka_source.spark.source.typed_planning import planned

__all__ = [
    "KafkaBatchReader",
    "KafkaStreamReader",
    "planned",
]

if not TYPE_CHECKING:
    __getattr__ = importing(
        __name__,
        {
            "batch": "KafkaBatchReader",
            "stream": "KafkaStreamReader",
            "typed_planning": "planned",
        },
    )
