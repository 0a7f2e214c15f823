"""The dead letters of a consumer: its records are handed out once the bad ones are written."""

from concurrent.futures import Future
from dataclasses import dataclass

import pyarrow as pa

from spark_kafka_source import dead_letters
from spark_kafka_source.client import KafkaClient
from spark_kafka_source.consumer.background import Background
from spark_kafka_source.consumer.decoding import NotReadyYetError
from spark_kafka_source.consumer.waiting import Waiting
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Running
from spark_kafka_source.records import Chunk
from spark_kafka_source.topic_partition import TopicPartition
from spark_kafka_source.typed import Letters, letters_are_read

logger = logger_of(__name__)

# The letters that are not written by then are of records that no caller has got.
_CLOSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Held:
    """The good records of a chunk, until its letters are written."""

    chunk: Chunk
    batch: pa.RecordBatch
    count: int
    writing: Future[None]


class LetterWrites:
    """Writes of dead letters in other threads, for the thread of a consumer. No method waits.

    So a silent leader of the topic of dead letters prolongs no poll, and other partitions go on.
    """

    def __init__(self, client: KafkaClient, topic: str, waiting: Waiting) -> None:
        self._client, self._topic, self._lookups = client, topic, waiting.lookups
        self._writer = dead_letters.DeadLetters(dead_letters.Destination(client.config, topic))
        # Other threads than for schema lookups, because a write may last for minutes.
        self._writes = Background(waiting.wakeup)
        self._checking: Running[None] | None = None
        self._held: dict[TopicPartition, _Held] = {}
        self.count = 0
        """How many letters were written so far."""

    def close(self) -> None:
        """Close the producer, and give up the letters that are not written."""
        self._writer.close(_CLOSE_SECONDS)
        self._writes.close()

    def check(self, topic: str) -> None:
        """Check the topic of dead letters, once, before the first record of any `topic`.

        Raises `NotReadyYetError` until the answer is here, and `ConfigurationError` if the topic
        cannot be written to, or if it is `topic` itself.
        """
        if topic == self._topic:
            raise letters_are_read(topic)
        if self._checking is None:
            self._checking = self._lookups.begin(
                dead_letters.check_topic(self._client, self._topic)
            )
        if not self._checking.is_done:
            raise NotReadyYetError
        try:
            self._checking.result()
        except Exception:
            self._checking = None  # The next call checks again.
            raise

    def write(self, chunk: Chunk, batch: pa.RecordBatch, letters: Letters) -> None:
        """Begin to write letters, and hold the chunk's good records. Raises `NotReadyYetError`."""
        if not self._held and not self.count:
            place = f"{letters.topic_partition} at offset {letters.offsets[0]}"
            text = "Sends bad records to topic %r, later ones without a log line: %s: %s"
            logger.warning(text, self._topic, place, letters.reason)
        writing = self._writes.ask(lambda: self._writer.send(letters).wait())
        count = len(letters.offsets)
        self._held[chunk.topic_partition] = _Held(chunk, batch, count, writing)
        raise NotReadyYetError

    def written(self, chunk: Chunk) -> pa.RecordBatch | None:
        """Return the held records of a chunk once its letters are written.

        Returns None if the letters of this chunk were not sent yet. Raises `NotReadyYetError` while
        they are on their way, and `DeadLetterError` if they are not written.
        """
        held = self._held.get(chunk.topic_partition)
        if held is None or held.chunk is not chunk:
            self._held.pop(chunk.topic_partition, None)  # The consumer has left that chunk.
            return None
        if not held.writing.done():
            raise NotReadyYetError
        del self._held[chunk.topic_partition]
        held.writing.result()
        self.count += held.count
        return held.batch
