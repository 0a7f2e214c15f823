"""The producers that an executor's Python worker keeps from one task to the next."""

from spark_kafka_source.producer import KafkaProducer, ProducerConfig
from spark_kafka_source.spark.sink.kept import Kept

# All that it was given has been written by then.
_CLOSE_SECONDS = 5.0


def _close(producer: KafkaProducer) -> None:
    producer.close(_CLOSE_SECONDS)


kept_producers: Kept[ProducerConfig, KafkaProducer] = Kept(KafkaProducer.of, _close)
"""Those that have written all they were given, by their configurations."""
