"""Dead letters on their way to their topic."""

import threading
from dataclasses import dataclass

from spark_kafka_source.client import ClientConfig
from spark_kafka_source.errors import BrokerError, ClosedError, KafkaError, RemoteError
from spark_kafka_source.options.kinds import INT32_MAX
from spark_kafka_source.producer import (
    ColumnsFuture,
    KafkaProducer,
    ProducerConfig,
    RefusedRowsError,
)
from spark_kafka_source.records import Integers, RowTooLargeError, UnencodableRowError
from spark_kafka_source.topic_partition import TopicPartition
from spark_kafka_source.typed import BAD_RECORDS_TOPIC, Letters

BUFFER_BYTES = 32 << 20
"""The most memory of letters on their way, and so of one letter. Sending waits for room."""

_DELIVERY_MS = 120_000
# The producer fails letters after that. This ends a wait if it does not.
_GRACE_SECONDS = 30.0


class DeadLetterError(RemoteError):
    """Bad records could not be written to the topic of dead letters.

    They do not count as read, so no record is lost.
    """


@dataclass(frozen=True, slots=True)
class Destination:
    """A topic of dead letters, and the cluster that has it."""

    client: ClientConfig
    topic: str

    @property
    def producer(self) -> ProducerConfig:
        """Kafka's defaults: each letter is written once, and counts when all replicas have it.

        A letter's size is limited by the topic's `max.message.bytes`, not by `max.request.size`.
        """
        return ProducerConfig(
            self.client,
            linger_ms=0,
            buffer_memory=BUFFER_BYTES,
            max_request_size=BUFFER_BYTES,
            delivery_timeout_ms=self.delivery_timeout_ms,
        )

    @property
    def delivery_timeout_ms(self) -> int:
        """The default, or the time for one request if that is longer."""
        return min(max(_DELIVERY_MS, self.client.connection.request_timeout_ms), INT32_MAX)


class DeadLetters:
    """Writer of dead letters. Its first letter makes the producer. Any thread may use it."""

    def __init__(self, destination: Destination) -> None:
        self.destination = destination
        self._lock = threading.Lock()
        self._producer: KafkaProducer | None = None
        self._is_closed = False

    def send(self, letters: Letters) -> "SentLetters":
        """Give letters to the producer, and wait for room if it has none.

        Raises `DeadLetterError`, also for a letter that is too large.
        """
        where, offsets = letters.topic_partition, letters.offsets
        try:
            future = self._kept_producer().send_columns(self.destination.topic, letters.columns)
        except KafkaError as error:
            raise _failure(self.destination.topic, where, offsets, error) from error
        return SentLetters(self.destination, where, offsets, future)

    def close(self, timeout_seconds: float) -> None:
        """Wait until all letters are written, at most so long, and fail the rest. Never raises."""
        with self._lock:
            producer, self._producer, self._is_closed = self._producer, None, True
        if producer is not None:
            producer.close(timeout_seconds)

    def _kept_producer(self) -> KafkaProducer:
        with self._lock:
            if self._is_closed:
                raise ClosedError("the writer of dead letters is closed")
            self._producer = self._producer or KafkaProducer.of(self.destination.producer)
            return self._producer


@dataclass(frozen=True, slots=True)
class SentLetters:
    """Letters on their way."""

    destination: Destination
    topic_partition: TopicPartition
    """The partition that the records were read from, at `offsets`."""
    offsets: Integers
    future: ColumnsFuture

    @property
    def is_done(self) -> bool:
        """Whether each letter is written or has failed."""
        return self.future.done()

    def wait(self) -> None:
        """Wait until all letters are written. Raises `DeadLetterError`."""
        timeout_seconds = self.destination.delivery_timeout_ms / 1000 + _GRACE_SECONDS
        try:
            error = self.future.exception(timeout_seconds)
        except KafkaError as late:
            error = late
        self._raise(error)

    def raise_failure(self) -> None:
        """Raise `DeadLetterError` if a letter is known not to be written. Does not wait."""
        self._raise(self.future.failure())

    def _raise(self, error: KafkaError | None) -> None:
        if error is not None:
            topic = self.destination.topic
            raise _failure(topic, self.topic_partition, self.offsets, error) from error


def _failure(
    topic: str, where: TopicPartition, offsets: Integers, error: KafkaError
) -> DeadLetterError:
    """Return the error for letters that are not written. It names the records by their offsets."""
    places = (
        f"offset {offsets[0]}" if len(offsets) == 1 else f"offsets {offsets[0]} to {offsets[-1]}"
    )
    reason = str(error)
    if isinstance(error, UnencodableRowError | RefusedRowsError):
        places = f"offset {offsets[error.row]}"
        reason = _of_a_row(error)
    text = f"{where}, {places}: bad records were not written to topic {topic!r}"
    failure = DeadLetterError(f"{text}, which '{BAD_RECORDS_TOPIC}' names: {reason}")
    failure.remedy = error.remedy
    return failure


def _of_a_row(error: UnencodableRowError | RefusedRowsError) -> str:
    """Return the reason without the number of the row, which says nothing to a user."""
    if isinstance(error, RefusedRowsError):
        return str(BrokerError(error.error, error.what, error.detail))
    if isinstance(error, RowTooLargeError):
        return f"a letter takes more than {BUFFER_BYTES} bytes, the most that can be sent"
    return error.reason
