"""The at-least-once guarantee: the rows of an attempt stay, even if the task runs again."""

from dataclasses import dataclass

from spark_kafka_source.producer import KafkaProducer, ProducerConfig
from spark_kafka_source.spark.sink.attempt import Attempt, Written
from spark_kafka_source.spark.sink.guarantee import Guarantee, Messages
from spark_kafka_source.spark.sink.producers import kept_producers


@dataclass(frozen=True, slots=True)
class AtLeastOnce(Guarantee):
    """Rows count as soon as the brokers have them, so the driver has nothing to do.

    Readers also see the rows of an attempt that failed or lost to another one. They see the rows
    of a micro-batch twice if it runs again after a restart.
    """

    config: ProducerConfig

    def settle(self, _: Attempt) -> None:
        """Do nothing: earlier writes leave nothing undone."""

    def begin(self, _: Attempt) -> KafkaProducer:
        """Return a producer of an earlier attempt, or a new one."""
        return kept_producers.take(self.config)

    def end(self, producer: KafkaProducer, written: Written) -> Written:
        """Keep the producer for the next attempt in this process."""
        kept_producers.put(self.config, producer)
        return written

    def give_up(self, producer: KafkaProducer) -> None:
        """Close the producer: its unsent rows must not mix with those of the next attempt."""
        producer.close(timeout_seconds=0)

    def commit(self, messages: Messages, batch_id: int | None) -> None:
        """Do nothing: the rows are there."""

    def abort(self, messages: Messages, batch_id: int | None) -> None:
        """Do nothing: Kafka takes nothing back."""
