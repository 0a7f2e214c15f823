"""The dead letters of a task: its bad records on their way to their topic."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

# The first task with dead letters imports a producer.
from spark_kafka_source import dead_letters
from spark_kafka_source.logs import logger_of
from spark_kafka_source.spark.pool import Pool
from spark_kafka_source.spark.source.options import SourceOptions
from spark_kafka_source.typed import Letters

logger = logger_of(__name__)

# A task that ends early, as with LIMIT, has letters on their way.
_CLOSE_SECONDS = 5.0


class TaskLetters:
    """Send the letters of one task, and wait for them at its end."""

    def __init__(self, writer: "dead_letters.DeadLetters") -> None:
        self._writer = writer
        self._on_their_way: deque[dead_letters.SentLetters] = deque()
        self._count = 0
        self._first = ""

    def send(self, letters: Letters) -> None:
        """Send letters, in bounded memory. Raises `DeadLetterError`, also for earlier ones."""
        if not self._count:
            self._first = f"{letters.topic_partition} at offset {letters.offsets[0]}"
            self._first += f": {letters.reason}"
        self._on_their_way.append(self._writer.send(letters))
        self._count += len(letters.offsets)
        while self._on_their_way and self._on_their_way[0].is_done:
            self._on_their_way.popleft().raise_failure()

    def finish(self) -> None:
        """Wait until all letters are written. Raises `DeadLetterError`."""
        while self._on_their_way:
            self._on_their_way.popleft().wait()
        if self._count:
            topic = self._writer.destination.topic
            text = "Bad records sent to topic %r: %d; the first is %s"
            logger.warning(text, topic, self._count, self._first)


def _make(destination: "dead_letters.Destination") -> "dead_letters.DeadLetters":
    return dead_letters.DeadLetters(destination)


def _close(writer: "dead_letters.DeadLetters") -> None:
    writer.close(_CLOSE_SECONDS)


kept_writers: "Pool[dead_letters.Destination, dead_letters.DeadLetters]" = Pool(_make, _close)
"""Writers that have written all of their letters."""


@contextmanager
def task_letters(options: SourceOptions) -> Iterator[TaskLetters | None]:
    """Yield the letters of a task, or None if its bad records go nowhere. Wait for them at its end.

    Raises `DeadLetterError` if some are not written.
    """
    columns = options.typed_columns
    if columns is None or not columns.bad_records_topic:
        yield None
        return
    destination = dead_letters.Destination(options.client, columns.bad_records_topic)
    with kept_writers.lent(destination) as writer:
        letters = TaskLetters(writer)
        yield letters
        letters.finish()
