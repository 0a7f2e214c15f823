"""The outcome of a batch's records, and the futures that wait for it."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from spark_kafka_source.errors import BrokerError, KafkaError, KafkaTimeoutError, LocalError
from spark_kafka_source.forks import OwnProcess
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Deadline
from spark_kafka_source.producer.errors import OF_RECORDS, RefusedRowsError
from spark_kafka_source.records import Integers
from spark_kafka_source.topic_partition import TopicPartition

logger = logger_of(__name__)

NO_OFFSET = -1
"""The offset when the broker did not send one: with `acks=0`, or for a duplicate."""


class RecordMetadata(NamedTuple):
    """The place of a written record: https://kafka.apache.org/javadoc, `RecordMetadata`."""

    topic: str
    partition: int
    offset: int
    """-1 if the broker did not send it: with `acks=0`, or for a batch that it already had."""
    timestamp_ms: int
    serialized_key_size: int
    """In bytes; -1 without a key. The same holds for the value."""
    serialized_value_size: int


class BatchMetadata(NamedTuple):
    """The place of a run of records that were sent as columns, in their order."""

    topic: str
    partition: int
    offset: int
    """The offset of the first record; -1 if the broker did not send it."""
    record_count: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run of a delivery's records. `first` is the number of the first record."""

    first: int
    count: int
    offset: int
    append_time_ms: int
    error: KafkaError | None

    def offset_of(self, number: int) -> int:
        """Return the offset of one record."""
        return self.offsets_of([number])[0]

    def offsets_of(self, numbers: Sequence[int]) -> list[int]:
        """Return the offset of each of these records."""
        if self.offset < 0:
            return [NO_OFFSET] * len(numbers)
        return [self.offset + number - self.first for number in numbers]


class Delivery:
    """The outcome of the records of one batch, which may be split on its way.

    The producer's thread sets the outcome; any thread may wait for it.
    """

    __slots__ = (
        "_callbacks",
        "_left",
        "_lock",
        "_process",
        "_thread",
        "_waiter",
        "outcomes",
        "topic_partition",
    )

    def __init__(
        self, topic_partition: TopicPartition, thread: threading.Thread | None = None
    ) -> None:
        """`thread` is the producer's, in which no wait would end."""
        self.topic_partition = topic_partition
        self._thread = thread
        self.outcomes: list[Outcome] = []
        self._left: int | None = None
        self._callbacks: list[Callable[[Delivery], object]] = []
        self._lock = threading.Lock()
        self._waiter: threading.Event | None = None
        self._process = OwnProcess("producer")

    def closed(self, record_count: int) -> None:
        """Set the number of records, before any outcome."""
        self._left = record_count

    @property
    def is_done(self) -> bool:
        """Whether the outcome of every record is known.

        If not, raise `ForkedError` after a fork, in the child: there it never will be.
        """
        if self._left == 0:
            return True
        self._process.check()
        return False

    def add(self, outcome: Outcome) -> None:
        """Add the outcome of some records. The last outcome wakes the waiting threads."""
        with self._lock:
            self.outcomes.append(outcome)
            self._left = (self._left or 0) - outcome.count
            if self._left:
                return
            waiter, callbacks, self._callbacks = self._waiter, self._callbacks, []
        if waiter is not None:
            waiter.set()
        for callback in callbacks:
            self._call(callback)

    def give_up(self, error: KafkaError) -> None:
        """Fail all records whose outcome is not known."""
        with self._lock:
            known = sorted((each.first, each.first + each.count) for each in self.outcomes)
            count = (self._left or 0) + sum(end - start for start, end in known)
        at = 0
        for start, end in [*known, (count, count)]:
            if start > at:
                self.add(Outcome(at, start - at, NO_OFFSET, -1, error))
            at = end

    def when_done(self, callback: Callable[["Delivery"], object]) -> None:
        """Call `callback` in the producer's thread once all is known, or now if it is known."""
        if not self.is_done:
            with self._lock:
                if self._left != 0:
                    self._callbacks.append(callback)
                    return
        self._call(callback)

    def _call(self, callback: Callable[["Delivery"], object]) -> None:
        try:
            callback(self)
        except BaseException:
            # Other records need the producer's thread, so no callback may end it.
            logger.exception("A callback for records of %s raised", self.topic_partition)

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait until all outcomes are known, at most so long. Return whether they are known.

        Raises `LocalError` in the producer's thread.
        """
        if self.is_done:
            return True
        refuse_wait(self._thread, timeout_seconds)
        with self._lock:
            if self._left == 0:
                return True
            waiter = self._waiter = self._waiter or threading.Event()
        return waiter.wait(timeout_seconds)

    def outcome(self, number: int) -> Outcome:
        """Return the outcome of one record, once all outcomes are known."""
        for outcome in self.outcomes:
            if outcome.first <= number < outcome.first + outcome.count:
                return outcome
        raise IndexError(number)

    @property
    def error(self) -> KafkaError | None:
        """The first error, or None."""
        return next((outcome.error for outcome in self.outcomes if outcome.error is not None), None)


OnDelivery = Callable[[RecordMetadata | None, KafkaError | None], object]
"""Called in the producer's thread with the record's place, or with the error."""


Places: TypeAlias = Sequence[int] | Integers
"""The places of rows in what was sent together: in a parcel, or in columns."""


@dataclass(slots=True)
class Run:
    """A run of rows in a delivery: `count` records from the record `first`.

    `rows` are the places of the rows in what was sent; the default is the first `count` rows.
    """

    delivery: Delivery
    first: int
    count: int
    rows: Places | None = None

    def places(self) -> Sequence[int]:
        """Return the places of the rows."""
        if isinstance(self.rows, np.ndarray):
            rows: list[int] = self.rows.tolist()
            return rows
        return range(self.count) if self.rows is None else self.rows

    @property
    def end(self) -> int:
        """The number after that of the last record."""
        return self.first + self.count

    def outcomes(self) -> Iterator[tuple[Outcome, int, int]]:
        """Yield each known outcome with the first record that it concerns and the end."""
        for each in sorted(self.delivery.outcomes, key=lambda each: each.first):
            first, end = max(each.first, self.first), min(each.first + each.count, self.end)
            if first < end:
                yield each, first, end

    def failures(self) -> Iterator[tuple[KafkaError, Places]]:
        """Yield each known error with the rows that it concerns."""
        rows = range(self.count) if self.rows is None else self.rows
        for outcome, first, end in self.outcomes():
            if outcome.error is not None:
                yield outcome.error, rows[first - self.first : end - self.first]

    def metadata(self) -> Iterator[BatchMetadata]:
        """Yield the place of the records, once they are written."""
        where = self.delivery.topic_partition
        for outcome, first, end in self.outcomes():
            yield BatchMetadata(*where, outcome.offset_of(first), end - first)


class ColumnsFuture:
    """The rows of one `send_columns` on their way."""

    def __init__(self, runs: list[Run]) -> None:
        self._runs = runs

    def done(self) -> bool:
        """Whether every row is written or has failed."""
        return all(run.delivery.is_done for run in self._runs)

    def result(self, timeout_seconds: float | None = None) -> list[BatchMetadata]:
        """Wait, and return the place of the rows: one run for each batch.

        Raises the first error if a row failed, and `KafkaTimeoutError` if the outcome is not
        known in time. In a callback it raises `LocalError` in place of a wait, as `exception` does.
        """
        error = self.exception(timeout_seconds)
        if error is not None:
            raise error.with_traceback(None)
        return [batch for run in self._runs for batch in run.metadata()]

    def exception(self, timeout_seconds: float | None = None) -> KafkaError | None:
        """Wait, and return the first error, or None if all rows are written."""
        deadline = deadline_after(timeout_seconds)
        for run in self._runs:
            wait_for(run.delivery, None if deadline is None else deadline.remaining_seconds())
        return self.failure()

    def failure(self) -> KafkaError | None:
        """Return the first error that is known so far, without waiting.

        It is a `RefusedRowsError` if the leader refused particular rows.
        """
        done = [run for run in self._runs if run.delivery.is_done]
        failures = [failure for run in done for failure in run.failures()]
        if not failures:
            return None
        error, _ = failures[0]
        if not isinstance(error, BrokerError) or error.error.name not in OF_RECORDS:
            return error
        rows = sorted(
            int(row)
            for other, rows in failures
            if isinstance(other, BrokerError) and other.error == error.error
            for row in rows
        )
        return RefusedRowsError(error.error, error.what, error.detail, rows)

    def add_done_callback(self, callback: Callable[["ColumnsFuture"], object]) -> None:
        """Call `callback` with this future in the producer's thread, or now if it is done."""
        deliveries = {id(run.delivery): run.delivery for run in self._runs}.values()
        left = len(deliveries)
        lock = threading.Lock()

        def one_is_done(_: object) -> None:
            nonlocal left
            with lock:
                left -= 1
                is_last = left <= 0
            if is_last:
                callback(self)

        if not left:
            callback(self)
        for delivery in deliveries:
            delivery.when_done(one_is_done)


def deadline_after(timeout_seconds: float | None) -> Deadline | None:
    """Return the deadline, or None for none."""
    return None if timeout_seconds is None else Deadline.after_seconds(timeout_seconds)


_SENT = "its records to be sent", "'add_done_callback' of a future waits for nothing"


def refuse_wait(
    producer_thread: threading.Thread | None,
    timeout_seconds: float | None,
    awaited: tuple[str, str] = _SENT,
) -> None:
    """Raise `LocalError` in the producer's thread, which sends nothing while it waits.

    `awaited` names what would be waited for, and says what to do instead.
    """
    if threading.current_thread() is producer_thread and timeout_seconds != 0:
        what, instead = awaited
        raise LocalError(
            f"a callback of the producer cannot wait for {what}: it holds up the thread that sends "
            f"all records, as a logging handler in that thread does. {instead}"
        )


def wait_for(delivery: Delivery, timeout_seconds: float | None) -> None:
    """Wait for a delivery. Raises `KafkaTimeoutError`, and `LocalError` as `refuse_wait` does."""
    if not delivery.wait(timeout_seconds):
        what = f"no answer about records of {delivery.topic_partition}"
        raise KafkaTimeoutError(f"{what} within {timeout_seconds:.3f} s; they are on their way")
