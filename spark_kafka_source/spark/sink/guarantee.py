"""The steps of a write that decide how often readers see a row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.producer import KafkaProducer
from spark_kafka_source.spark.sink.attempt import Attempt, Written

Messages = Sequence[Written | None]
"""The messages of the attempts that count, by partition; None for a task that failed."""


@dataclass(eq=False, slots=True)
class Begun:
    """An attempt that has begun to write. Its producer is for its rows, and for no other rows."""

    producer: KafkaProducer

    @property
    def is_guess(self) -> bool:
        """Whether brokers may refuse the first rows, which then go elsewhere; see `begin_anew`."""
        return False


B = TypeVar("B", bound=Begun)


class Guarantee(Protocol, Generic[B]):
    """Begin and end of each attempt, in a task; then commit or abort of all, on the driver.

    The object is pickled into each of these places, so one step passes results to the next only in
    a message. A task without a row only settles.
    """

    def settle(self, attempt: Attempt) -> None:
        """End what earlier writes left undone, before the attempt asks for its first row."""

    def begin(self, attempt: Attempt) -> B:
        """Begin the attempt's writes."""

    def begin_anew(self, begun: B, error: KafkaError) -> None:
        """Begin again, after an error of the first rows of a guess. Raises the error if need be."""

    def end(self, begun: B, written: Written) -> Written:
        """Return the message for the driver, once the brokers have all rows of the attempt."""

    def give_up(self, begun: B) -> None:
        """Release the producer after an error, whatever it has sent. Must not raise."""

    def commit(self, messages: Messages, batch_id: int | None) -> None:
        """Make the written rows count. `batch_id` is the micro-batch's, or None."""

    def abort(self, messages: Messages, batch_id: int | None) -> None:
        """Take the written rows back, if that is possible. Also called if `commit` raised."""
