"""The at-least-once guarantee: the rows of an attempt stay, even if the task runs again."""

from dataclasses import dataclass

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.producer import ProducerConfig
from spark_kafka_source.spark.sink.attempt import Attempt, Written
from spark_kafka_source.spark.sink.guarantee import Begun, Guarantee, Messages
from spark_kafka_source.spark.sink.producers import kept_producers


@dataclass(frozen=True, slots=True)
class AtLeastOnce(Guarantee[Begun]):
    """Rows count as soon as the brokers have them, so the driver has nothing to do.

    Readers also see the rows of an attempt that failed or lost to another one. They see the rows
    of a micro-batch twice if it runs again after a restart.
    """

    config: ProducerConfig

    def settle(self, _: Attempt) -> None:
        """Do nothing: earlier writes leave nothing undone."""

    def begin(self, _: Attempt) -> Begun:
        """Take a producer of an earlier attempt, or a new one."""
        return Begun(kept_producers.take(self.config))

    def begin_anew(self, _: Begun, error: KafkaError) -> None:
        """Raise the error: nothing was guessed."""
        raise error

    def end(self, begun: Begun, written: Written) -> Written:
        """Keep the producer for the next attempt in this process."""
        kept_producers.put(self.config, begun.producer)
        return written

    def give_up(self, begun: Begun) -> None:
        """Close the producer: its unsent rows must not mix with those of the next attempt."""
        begun.producer.close(timeout_seconds=0)

    def commit(self, messages: Messages, batch_id: int | None) -> None:
        """Do nothing: the rows are there."""

    def abort(self, messages: Messages, batch_id: int | None) -> None:
        """Do nothing: Kafka takes nothing back."""
