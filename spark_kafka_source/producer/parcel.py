"""Records of one topic on their way from `send` to batches, and the futures that find their places.

A caller of `send` adds a record to the open parcel of the topic, and goes on. The producer's thread
takes the parcel, and gives all its records their partitions at once.
"""

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from spark_kafka_source.errors import KafkaError, KafkaTimeoutError
from spark_kafka_source.forks import OwnProcess
from spark_kafka_source.logs import logger_of
from spark_kafka_source.producer.delivery import (
    NO_OFFSET,
    Delivery,
    OnDelivery,
    Outcome,
    RecordMetadata,
    Run,
    deadline_after,
    refuse_wait,
    wait_for,
)
from spark_kafka_source.records.row_encoder import Headers
from spark_kafka_source.topic_partition import TopicPartition

logger = logger_of(__name__)

_NO_PARTITION = -1


SentRow: TypeAlias = tuple[bytes | None, bytes | None, Headers, int, int, int | None]
"""A record of `send`: key, value, headers, timestamp in milliseconds, size in bytes, and the chosen
partition. The garbage collector does not walk through tuples of such objects for long."""

Facts: TypeAlias = tuple[Sequence[int], ...] | tuple[npt.NDArray[Any], ...]
"""The timestamp of each record, and the lengths of its key and its value; -1 for None."""

_Place: TypeAlias = tuple[Delivery, int]
"""The delivery of a record, and the record's number in it."""


class Parcel:
    """Records of one topic, in the order of `send`. Its records are placed once, all together.

    Any thread may use it. Only the lock of the accumulator guards `rows`, `size` and `room`.
    """

    __slots__ = (
        "_count",
        "_lock",
        "_numbers",
        "_on_delivery",
        "_on_delivery_later",
        "_placed",
        "_process",
        "_runs",
        "created_at_seconds",
        "facts",
        "full_bytes",
        "is_closed",
        "limit",
        "room",
        "rows",
        "size",
        "thread",
        "topic",
    )

    def __init__(self, topic: str, full_bytes: int, thread: threading.Thread | None = None) -> None:
        self.topic = topic
        self.thread = thread
        """The producer's thread, in which no wait would end."""
        self.full_bytes = full_bytes
        """The size at which it is placed, without a wait for `linger.ms`."""
        self.created_at_seconds = time.monotonic()
        self.rows: list[SentRow] = []
        self.size = 0
        """The most bytes that the records take."""
        self.room = 0
        """Its share of `buffer.memory`."""
        self.limit = 0
        """The size up to which records need neither more room nor another parcel."""
        self.is_closed = False
        """Whether it takes no more records, and is placed at once."""
        self._lock = threading.Lock()
        self._placed = threading.Event()
        self._process = OwnProcess("producer")
        self._runs: Sequence[Run] = ()
        self._numbers: tuple[list[int], list[int]] | None = None
        """The run of each record, and its number in the run's delivery. Made when it is asked."""
        self._count = 0
        self.facts: Facts = (), (), ()
        self._on_delivery: dict[int, OnDelivery | None] = {}
        """The function that is told a record's outcome, by the record's number."""
        self._on_delivery_later: list[tuple[int, OnDelivery]] = []
        """More of them, by the record's number: they came after `send`."""

    def give(self, room: int) -> None:
        """Give it more of `buffer.memory`."""
        self.room += room
        self.limit = min(self.room, self.full_bytes)

    def add(self, row: SentRow, on_delivery: OnDelivery | None) -> "SendFuture":
        """Add a record, and the function that is told its outcome.

        Ctrl-C cannot break it: one step adds a record, and the record counts from then on.
        """
        rows = self.rows
        future = SendFuture(self, number := len(rows))
        self.size += row[4]
        if (
            on_delivery is not None or self._on_delivery
        ):  # Ctrl-C may have left one for this number.
            self._on_delivery[number] = on_delivery
        rows.append(row)
        return future

    # -- from the producer's thread ----------------------------------------------------------------

    def take_rows(self) -> list[SentRow]:
        """Return all records, and let go of them."""
        rows, self.rows = self.rows, []
        self._count = len(rows)
        return rows

    def place(self, runs: Sequence[Run]) -> None:
        """Note the places of all records, and wake the threads that wait for them."""
        with self._lock:
            self._runs = runs
            told, self._on_delivery = self._on_delivery, {}
            later, self._on_delivery_later = self._on_delivery_later, []
            self._placed.set()
        for run in runs if told else ():
            rows, numbers = run.places(), range(run.first, run.end)
            functions = [told.get(row) for row in rows]
            run.delivery.when_done(partial(self._tell, rows, numbers, functions))
        self._when_done(later)

    def lost(self, runs: Sequence[Run], error: KafkaError) -> Run:
        """Return a run of all records that are in none of these runs. They failed."""
        if self.rows:
            self.take_rows()
        is_left = np.ones(self._count, np.bool_)
        for run in runs:
            is_left[run.places()] = False
        rows = np.flatnonzero(is_left)
        delivery = Delivery(TopicPartition(self.topic, _NO_PARTITION))
        delivery.closed(len(rows))
        if len(rows):
            delivery.add(Outcome(0, len(rows), NO_OFFSET, -1, error))
        return Run(delivery, 0, len(rows), rows)

    # -- from any thread ---------------------------------------------------------------------------

    @property
    def is_placed(self) -> bool:
        """Whether all records have a place. If not, raise `ForkedError` after a fork."""
        if self._placed.is_set():
            return True
        self._process.check()
        return False

    def wait_for_places(self, timeout_seconds: float | None) -> bool:
        """Wait until all records have a place. Return whether they have."""
        if self.is_placed:
            return True
        refuse_wait(self.thread, timeout_seconds)
        return self._placed.wait(timeout_seconds)

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait until the outcome of all records is known, and return whether it is."""
        deadline = deadline_after(timeout_seconds)
        if not self.wait_for_places(timeout_seconds):
            return False
        return all(
            run.delivery.wait(None if deadline is None else deadline.remaining_seconds())
            for run in self._runs
        )

    def delivery(self, number: int) -> _Place:
        """Return the delivery of a placed record, and the record's number there."""
        run_of, number_of = self._places()
        return self._runs[run_of[number]].delivery, number_of[number]

    def _places(self) -> tuple[list[int], list[int]]:
        """Return the run of each record, and its number in the run's delivery."""
        if self._numbers is None:
            self._numbers = _numbers(self._runs)
        return self._numbers

    def metadata(self, number: int) -> RecordMetadata:
        """Return the place of a record that is written."""
        delivery, at = self.delivery(number)
        return next(self._metadata([number], [at], delivery.topic_partition, delivery.outcome(at)))

    def _metadata(
        self,
        rows: Sequence[int],
        numbers: Sequence[int],
        topic_partition: TopicPartition,
        outcome: Outcome,
    ) -> Iterator[RecordMetadata]:
        """Return the places of these rows. They have these numbers in their delivery."""
        if not isinstance(self.facts[0], list):  # Lists give their items much sooner.
            self.facts = tuple(np.asarray(fact).tolist() for fact in self.facts)
        times, key_sizes, value_sizes = ([fact[row] for row in rows] for fact in self.facts)
        if outcome.append_time_ms >= 0:
            times = [outcome.append_time_ms] * len(rows)
        offsets = outcome.offsets_of(numbers)
        topic, partition = topic_partition
        columns = repeat(topic), repeat(partition), offsets, times, key_sizes, value_sizes
        return map(RecordMetadata._make, zip(*columns, strict=False))

    def tell(self, number: int, on_delivery: OnDelivery) -> None:
        """Call `on_delivery` in the producer's thread once a record is written or has failed.

        If that is known, call it now.
        """
        with self._lock:
            if not self.is_placed:
                self._on_delivery_later.append((number, on_delivery))
                return
        self._when_done([(number, on_delivery)])

    def _when_done(self, told: Sequence[tuple[int, OnDelivery]]) -> None:
        """Tell functions, of any of the rows, once the deliveries of the rows are done."""
        if not told:
            return
        run_of, number_of = self._places()
        by_run: dict[int, list[tuple[int, int, OnDelivery]]] = {}
        for row, on_delivery in told:
            by_run.setdefault(run_of[row], []).append((number_of[row], row, on_delivery))
        for run, of_run in by_run.items():
            numbers, rows, functions = zip(*sorted(of_run, key=itemgetter(0)), strict=True)
            self._runs[run].delivery.when_done(partial(self._tell, rows, numbers, functions))

    def _tell(
        self,
        rows: Sequence[int],
        numbers: Sequence[int],
        told: Sequence[OnDelivery | None],
        delivery: Delivery,
    ) -> None:
        """Tell each row's function the row's outcome, in the order of the rows."""
        topic_partition = delivery.topic_partition
        for outcome in sorted(delivery.outcomes, key=lambda outcome: outcome.first):
            end = outcome.first + outcome.count
            part = slice(bisect_left(numbers, outcome.first), bisect_left(numbers, end))
            error = outcome.error
            places: Iterable[RecordMetadata | None] = repeat(None)
            if error is None:
                places = self._metadata(rows[part], numbers[part], topic_partition, outcome)
            for on_delivery, place in zip(told[part], places, strict=False):
                if on_delivery is None:
                    continue
                try:
                    on_delivery(place, error)
                except BaseException:
                    # Other records need the producer's thread, so no function may end it.
                    logger.exception("A callback for records of %s raised", topic_partition)


def _numbers(runs: Sequence[Run]) -> tuple[list[int], list[int]]:
    count = sum([run.count for run in runs])
    run_of, number_of = [0] * count, [0] * count
    for place, run in enumerate(runs):
        for number, row in enumerate(run.places(), run.first):
            run_of[row], number_of[row] = place, number
    return run_of, number_of


class SendFuture:
    """One record on its way. The methods have the names of `concurrent.futures.Future`."""

    __slots__ = ("_number", "_parcel")

    def __init__(self, parcel: Parcel, number: int) -> None:
        """`number` is the record's place in the parcel."""
        self._parcel, self._number = parcel, number

    def done(self) -> bool:
        """Whether the record is written or has failed."""
        return self._parcel.is_placed and self._parcel.delivery(self._number)[0].is_done

    def result(self, timeout_seconds: float | None = None) -> RecordMetadata:
        """Wait, and return the record's place. Raises the error of a record that failed.

        Raises `KafkaTimeoutError` if neither is known in time; the record is still on its way. In a
        callback of the producer it raises `LocalError` in place of a wait, as `exception` does.
        """
        error = self.exception(timeout_seconds)
        if error is not None:  # Many records share the error; each raises its own traceback.
            raise error.with_traceback(None)
        return self._parcel.metadata(self._number)

    def exception(self, timeout_seconds: float | None = None) -> KafkaError | None:
        """Wait, and return the record's error, or None if the record is written."""
        parcel, number = self._parcel, self._number
        if not parcel.is_placed:
            refuse_wait(parcel.thread, timeout_seconds)
            done = threading.Event()  # One wait: each switch to this thread and back costs time.
            parcel.tell(number, lambda *_: done.set())
            if not done.wait(timeout_seconds):
                what = f"no answer about a record of topic {parcel.topic!r}"
                raise KafkaTimeoutError(f"{what} within {timeout_seconds:.3f} s; it is on its way")
        delivery, at = parcel.delivery(number)
        wait_for(delivery, timeout_seconds)
        return delivery.outcome(at).error

    def add_done_callback(self, callback: Callable[["SendFuture"], object]) -> None:
        """Call `callback` with this future in the producer's thread, or now if it is done."""
        self._parcel.tell(self._number, lambda *_: callback(self))

    def tell(self, on_delivery: OnDelivery) -> None:
        """Call `on_delivery` once the record is written or has failed."""
        self._parcel.tell(self._number, on_delivery)
