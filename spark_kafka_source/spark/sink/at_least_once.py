"""Rows are written at least once: what an attempt has written stays, even if it is tried again."""

from dataclasses import dataclass

from spark_kafka_source.producer import KafkaProducer, ProducerConfig
from spark_kafka_source.spark.sink.attempt import Attempt, Written
from spark_kafka_source.spark.sink.guarantee import Guarantee, Messages
from spark_kafka_source.spark.sink.producers import kept_producers


@dataclass(frozen=True, slots=True)
class AtLeastOnce(Guarantee):
    """Rows count as soon as the brokers have them, so that there is nothing to do on the driver.

    Those of an attempt that failed, or lost to another, are seen as well, and those of a
    micro-batch that is run once more after a restart are seen twice.
    """

    config: ProducerConfig

    def begin(self, _: Attempt) -> KafkaProducer:
        """Return one that an attempt before has used, if there is one."""
        return kept_producers.take(self.config)

    def end(self, producer: KafkaProducer, written: Written) -> Written:
        """Keep the producer for the next attempt in this process."""
        kept_producers.put(self.config, producer)
        return written

    def give_up(self, producer: KafkaProducer) -> None:
        """Close it, since what it has not sent is none of the next attempt's."""
        producer.close(timeout_seconds=0)

    def commit(self, messages: Messages, batch_id: int | None) -> None:
        """Do nothing: the rows are there."""

    def abort(self, messages: Messages, batch_id: int | None) -> None:
        """Do nothing: Kafka takes nothing back."""
