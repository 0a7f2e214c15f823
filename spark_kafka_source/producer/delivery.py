"""What came of the records of a batch, for those that wait for it."""

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from spark_kafka_source.errors import BrokerError, KafkaError, KafkaTimeoutError
from spark_kafka_source.net import Deadline
from spark_kafka_source.producer.errors import OF_RECORDS, RefusedRowsError
from spark_kafka_source.records import Integers
from spark_kafka_source.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

NO_OFFSET = -1
"""In the place of an offset that the broker did not say: with `acks=0`, or for a duplicate."""


class RecordMetadata(NamedTuple):
    """Where a record is: https://kafka.apache.org/javadoc, `RecordMetadata`."""

    topic: str
    partition: int
    offset: int
    """-1 where the broker did not say it: with `acks=0`, or for a batch that it had already."""
    timestamp_ms: int
    serialized_key_size: int
    """In bytes; -1 without a key. So is that of the value."""
    serialized_value_size: int


class BatchMetadata(NamedTuple):
    """Where a run of records is that were sent as columns, in their order."""

    topic: str
    partition: int
    offset: int
    """Of the first; -1 where the broker did not say it."""
    record_count: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run of a delivery's records: `first` is the number of the first."""

    first: int
    count: int
    offset: int
    append_time_ms: int
    error: KafkaError | None

    def offset_of(self, number: int) -> int:
        """Return the offset of one record."""
        return NO_OFFSET if self.offset < 0 else self.offset + number - self.first


class Delivery:
    """The outcome of the records that were put into one batch, which may be split on its way.

    The producer's thread says what came of them; any thread may wait.
    """

    __slots__ = ("_callbacks", "_left", "_lock", "_waiter", "outcomes", "topic_partition")

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self.outcomes: list[Outcome] = []
        self._left: int | None = None
        self._callbacks: list[Callable[[Delivery], object]] = []
        self._lock = threading.Lock()
        self._waiter: threading.Event | None = None

    def closed(self, record_count: int) -> None:
        """Say how many records there are, before any outcome."""
        self._left = record_count

    @property
    def is_done(self) -> bool:
        """Whether it is known of all records what came of them."""
        return self._left == 0

    def is_over(self, outcome: Outcome) -> None:
        """Say what came of some records. The last of them wakes those that wait."""
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
        """Say of all records of which nothing is known that they are not there."""
        with self._lock:
            known = sorted((each.first, each.first + each.count) for each in self.outcomes)
            count = (self._left or 0) + sum(end - start for start, end in known)
        at = 0
        for start, end in [*known, (count, count)]:
            if start > at:
                self.is_over(Outcome(at, start - at, NO_OFFSET, -1, error))
            at = end

    def when_done(self, callback: Callable[["Delivery"], object]) -> None:
        """Call it with this once all is known, in the producer's thread; or at once."""
        with self._lock:
            if not self.is_done:
                self._callbacks.append(callback)
                return
        self._call(callback)

    def _call(self, callback: Callable[["Delivery"], object]) -> None:
        try:
            callback(self)
        except BaseException:
            # The producer's thread is everybody's, also where a callback wants to end it.
            logger.exception("A callback for records of %s raised", self.topic_partition)

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait until all is known, or for so long; return whether it is."""
        with self._lock:
            if self.is_done:
                return True
            waiter = self._waiter = self._waiter or threading.Event()
        return waiter.wait(timeout_seconds)

    def outcome(self, number: int) -> Outcome:
        """Return what came of one record, once all is known."""
        for outcome in self.outcomes:
            if outcome.first <= number < outcome.first + outcome.count:
                return outcome
        raise IndexError(number)

    @property
    def error(self) -> KafkaError | None:
        """What went wrong first, if anything did."""
        return next((each.error for each in self.outcomes if each.error is not None), None)


OnDelivery = Callable[[RecordMetadata | None, KafkaError | None], object]
"""Called in the producer's thread with where the record is, or with why it is not there."""


class SendFuture:
    """One record on its way; the names are those of `concurrent.futures.Future`."""

    __slots__ = ("_delivery", "_key_size", "_number", "_timestamp_ms", "_value_size")

    def __init__(
        self,
        delivery: Delivery,
        number: int,
        timestamp_ms: int,
        sizes: tuple[int, int],
    ) -> None:
        """`number` is the record's place in the delivery, `sizes` those of its key and value."""
        self._delivery = delivery
        self._number = number
        self._timestamp_ms = timestamp_ms
        self._key_size, self._value_size = sizes

    def done(self) -> bool:
        """Whether it is known what came of the record."""
        return self._delivery.is_done

    def result(self, timeout_seconds: float | None = None) -> RecordMetadata:
        """Wait, and return where the record is. Raises why it is not there.

        Raises `KafkaTimeoutError` where neither is known in time: the record is still on its way.
        """
        error = self.exception(timeout_seconds)
        if error is not None:  # It is that of many records: each has its own traceback.
            raise error.with_traceback(None)
        return self._metadata()

    def exception(self, timeout_seconds: float | None = None) -> KafkaError | None:
        """Wait, and return why the record is not there, or None where it is."""
        _wait_for(self._delivery, timeout_seconds)
        return self._delivery.outcome(self._number).error

    def add_done_callback(self, callback: Callable[["SendFuture"], object]) -> None:
        """Call it with this future once it is done, in the producer's thread, or at once."""
        self._delivery.when_done(lambda _: callback(self))

    def tell(self, on_delivery: OnDelivery) -> None:
        """Call it once it is known what came of the record."""
        self._delivery.when_done(lambda _: self._tell(on_delivery))

    def _tell(self, on_delivery: OnDelivery) -> None:
        error = self._delivery.outcome(self._number).error
        on_delivery(None if error else self._metadata(), error)

    def _metadata(self) -> RecordMetadata:
        outcome = self._delivery.outcome(self._number)
        topic, partition = self._delivery.topic_partition
        appended_ms = outcome.append_time_ms
        return RecordMetadata(
            topic,
            partition,
            outcome.offset_of(self._number),
            self._timestamp_ms if appended_ms < 0 else appended_ms,
            self._key_size,
            self._value_size,
        )


@dataclass(frozen=True, slots=True)
class Run:
    """A run of rows in a delivery: from the record `first` on, `count` of them.

    `rows` are their places in the columns that were sent, by default the first ones.
    """

    delivery: Delivery
    first: int
    count: int
    rows: Integers | range | None = None

    @property
    def end(self) -> int:
        """The number after that of its last record."""
        return self.first + self.count

    def failures(self) -> Iterator[tuple[KafkaError, Integers | range]]:
        """Yield what went wrong, and with which rows, as far as it is known."""
        rows = range(self.count) if self.rows is None else self.rows
        for each in sorted(self.delivery.outcomes, key=_first):
            first, end = max(each.first, self.first), min(each.first + each.count, self.end)
            if each.error is not None and first < end:
                yield each.error, rows[first - self.first : end - self.first]


class ColumnsFuture:
    """Columns on their way: all of the rows that one `send_columns` was given."""

    def __init__(self, runs: list[Run]) -> None:
        self._runs = runs

    def done(self) -> bool:
        """Whether it is known what came of every row."""
        return all(each.delivery.is_done for each in self._runs)

    def result(self, timeout_seconds: float | None = None) -> list[BatchMetadata]:
        """Wait, and return where the rows are: a run for each batch that they went to.

        Raises the first error where a row is not there, and `KafkaTimeoutError` where it is not
        known in time.
        """
        error = self.exception(timeout_seconds)
        if error is not None:
            raise error.with_traceback(None)
        return [found for run in self._runs for found in _metadata_of(run)]

    def exception(self, timeout_seconds: float | None = None) -> KafkaError | None:
        """Wait, and return the first error, or None where all rows are there."""
        deadline = None
        if timeout_seconds is not None:
            deadline = Deadline.after_ms(int(timeout_seconds * 1000))
        for run in self._runs:
            _wait_for(run.delivery, None if deadline is None else deadline.remaining_seconds())
        return self.failure()

    def failure(self) -> KafkaError | None:
        """Return the first error that is known so far, and do not wait.

        It is a `RefusedRowsError` where a leader has something against rows themselves.
        """
        done = [each for each in self._runs if each.delivery.is_done]
        failures = [failure for each in done for failure in each.failures()]
        if not failures:
            return None
        error, _ = failures[0]
        if not isinstance(error, BrokerError) or error.error.name not in OF_RECORDS:
            return error
        rows = sorted(
            int(row)
            for found, rows in failures
            if isinstance(found, BrokerError) and found.error == error.error
            for row in rows
        )
        return RefusedRowsError(error.error, error.what, error.detail, rows)

    def add_done_callback(self, callback: Callable[["ColumnsFuture"], object]) -> None:
        """Call it with this future once all is known, in the producer's thread, or at once."""
        left = len({id(each.delivery) for each in self._runs})
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
        for delivery in {id(each.delivery): each.delivery for each in self._runs}.values():
            delivery.when_done(one_is_done)


def _wait_for(delivery: Delivery, timeout_seconds: float | None) -> None:
    if not delivery.wait(timeout_seconds):
        what = f"no answer about records of {delivery.topic_partition}"
        raise KafkaTimeoutError(f"{what} within {timeout_seconds:.3f} s; they are on their way")


def _metadata_of(run: Run) -> list[BatchMetadata]:
    topic, partition = run.delivery.topic_partition
    found = []
    for each in sorted(run.delivery.outcomes, key=_first):
        first = max(each.first, run.first)
        count = min(each.first + each.count, run.end) - first
        if count > 0:
            found.append(BatchMetadata(topic, partition, each.offset_of(first), count))
    return found


def _first(outcome: Outcome) -> int:
    return outcome.first
