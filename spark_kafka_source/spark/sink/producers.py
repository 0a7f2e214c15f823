"""The producers and clients that a Python worker keeps from one task to the next."""

from spark_kafka_source.client import ClientConfig, KafkaClient
from spark_kafka_source.producer import KafkaProducer, ProducerConfig
from spark_kafka_source.spark.kept import Kept
from spark_kafka_source.spark.worker import in_this_rack

# By then all records have been written.
_CLOSE_SECONDS = 5.0


def _open(config: ProducerConfig) -> KafkaProducer:
    return KafkaProducer.of(in_this_rack(config))


def _close(producer: KafkaProducer) -> None:
    producer.close(_CLOSE_SECONDS)


kept_producers: Kept[ProducerConfig, KafkaProducer] = Kept(_open, _close)
"""Producers that have written all of their records, by their configurations."""
kept_clients: Kept[ClientConfig, KafkaClient] = Kept(KafkaClient, KafkaClient.close)
"""Clients for questions to coordinators, by their configurations."""
