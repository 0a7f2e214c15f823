"""The sink: the driver checks columns, and the executors send record batches."""

from typing import TYPE_CHECKING

from spark_kafka_source.lazily import importing

if TYPE_CHECKING:
    from spark_kafka_source.spark.sink.planning import planned_writer
    from spark_kafka_source.spark.sink.writer import KafkaWriter

__all__ = [
    "KafkaWriter",
    "planned_writer",
]

if not TYPE_CHECKING:
    __getattr__ = importing(
        __name__,
        {
            "planning": "planned_writer",
            "writer": "KafkaWriter",
        },
    )
