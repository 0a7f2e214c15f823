"""The source: the driver plans ranges of offsets, and the executors read them."""

from typing import TYPE_CHECKING

from spark_kafka_source.lazily import importing

if TYPE_CHECKING:
    from spark_kafka_source.spark.source.batch import KafkaBatchReader
    from spark_kafka_source.spark.source.java_pattern import PatternError, compiled
    from spark_kafka_source.spark.source.stream import KafkaStreamReader
    from spark_kafka_source.spark.source.typed_planning import planned

__all__ = [
    "KafkaBatchReader",
    "KafkaStreamReader",
    "PatternError",
    "compiled",
    "planned",
]

if not TYPE_CHECKING:
    __getattr__ = importing(
        __name__,
        {
            "batch": "KafkaBatchReader",
            "java_pattern": "PatternError compiled",
            "stream": "KafkaStreamReader",
            "typed_planning": "planned",
        },
    )
