"""What decides how often readers see a row: the steps of a write that make the difference."""

from collections.abc import Sequence
from typing import Protocol

from spark_kafka_source.producer import KafkaProducer
from spark_kafka_source.spark.sink.attempt import Attempt, Written

Messages = Sequence[Written | None]
"""Those of the attempts that count, by partition; None for a task that failed."""


class Guarantee(Protocol):
    """Begin and end of each attempt, in a task; then commit or abort of all of it, on the driver.

    It is pickled into each of them, so that what one step finds out reaches the next in a message
    only. An attempt without a row has none of the steps in its task.
    """

    def begin(self, attempt: Attempt) -> KafkaProducer:
        """Return the producer that the attempt's rows are given to, and none but these."""

    def end(self, producer: KafkaProducer, written: Written) -> Written:
        """Say what the driver is to know, once the brokers have all rows of the attempt."""

    def give_up(self, producer: KafkaProducer) -> None:
        """Let go of a producer after an error, whatever it has sent; must not raise."""

    def commit(self, messages: Messages, batch_id: int | None) -> None:
        """Make what was written count; `batch_id` is that of the micro-batch, if it is one."""

    def abort(self, messages: Messages, batch_id: int | None) -> None:
        """Let what was written not count, where that can be; also called where `commit` raised."""
