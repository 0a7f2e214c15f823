"""What Spark does around the steps: runs of a query, each with a driver and workers.

Each process has steps, too. Besides requests to brokers it yields those below.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from spark_kafka_source.exactly_once.leases import Owner

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once.decision import BatchId, Content, Seen
from spark_kafka_source.exactly_once.driver import Driver, PreparedWrite
from spark_kafka_source.exactly_once.errors import DecidedRowsLostError
from spark_kafka_source.exactly_once.slots import Slot, Slots
from spark_kafka_source.exactly_once.worker import look
from spark_kafka_source.producer import PreparedTransaction, ProducerId
from spark_kafka_source.producer.generation import Generation
from spark_kafka_source.topic_partition import TopicPartition
from tests.exactly_once.explorer.brokers import NAMES, REFUSED_EPOCH, TIMEOUT_MS, Row

TASKS = 2
At = tuple[int, int]
"""A micro-batch, and the place of a write in it."""


@dataclass(frozen=True, slots=True)
class Start:
    """Start the next micro-batch of a run, and its first write.

    Answer: the micro-batch's number, or None after the last one.
    """

    run_id: str
    """For the first one of a run, look into the checkpoint."""
    after: int | None


@dataclass(frozen=True, slots=True)
class Go:
    """Start the next write of a micro-batch."""

    run_id: str
    at: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Await:
    """A worker waits for a write after this one. Answer: its micro-batch, and its place there."""

    run_id: str
    after: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Report:
    """A task has written."""

    run_id: str
    batch_id: int
    write: str
    task: int
    prepared: PreparedTransaction
    seen: Seen


@dataclass(frozen=True, slots=True)
class Collect:
    """The driver waits for all tasks of a write. Answer: their reports."""

    run_id: str
    batch_id: int
    write: str


@dataclass(frozen=True, slots=True)
class LogCommit:
    """Write a micro-batch into Spark's commit log. Code has hidden the errors of some writes."""

    run_id: str
    batch_id: int
    swallowed: frozenset[str]


@dataclass(frozen=True, slots=True)
class Produce:
    """Write a row. Answer: None, or an error."""

    transactional_id: str
    producer: ProducerId
    row: Row


@dataclass(frozen=True, slots=True)
class Happens:
    """Whether a fault happens now. Answer: a bool. There are only so many of them."""

    fault: str


@dataclass(frozen=True, slots=True)
class TakeLease:
    """Take a lease that no process has, or a new one. Answer: its number, and its notes."""

    holder: str
    new: int
    """The owner number of a new lease."""
    is_shared: bool = False
    """A mutant: take one that another process has."""


class Note(NamedTuple):
    """What is about to begin, in the file of a lease."""

    owner: int
    slot: int
    producer: ProducerId | None


NOTES: list[Note] = []
"""What the process that runs now has noted since its last request.

A process notes it in the step in which it has heard the answer. If it dies between the two, its
request is answered after its death.
"""


class Lease(Owner):
    """A lease of a process that may die."""

    def __init__(self, number: int, begun: Any) -> None:
        super().__init__(number)
        self.begun = begun

    def note(self, slot: int, producer: ProducerId | None) -> None:
        NOTES.append(Note(self.number, slot, producer))


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of the protocol. A mutant replaces one of them by a wrong one."""

    generation: Generation
    rows: int
    """How many rows a task writes, each in a partition of its own."""
    writes: tuple[str, ...]
    """The topics to which each micro-batch is written, one after the other."""

    driver: Callable[..., Any] = Driver
    slots: Callable[..., Any] = Slots
    take: Callable[..., Any] = TakeLease
    look: Callable[..., Any] = look

    def of(self, run_id: str) -> tuple[str, ...]:
        """Return the writes of a run in their order. All runs but the first have the other one."""
        return self.writes if run_id == "r0" else self.writes[::-1]


def driver(run_id: str, parts: Parts) -> Any:
    """The driver of a run. Its error ends the run, unless code in foreachBatch swallows it."""
    driver, other = (parts.driver(NAMES, parts.generation) for _ in range(2))
    batch_id = None
    while True:
        batch_id = (yield (Start(run_id, batch_id),)).answers[0]
        if batch_id is None:
            return None
        swallowed = set()
        for place, write in enumerate(parts.of(run_id)):
            if place:
                yield (Go(run_id, (batch_id, place)),)
            reports = (yield (Collect(run_id, batch_id, write),)).answers[0]
            if (yield (Happens("memory"),)).answers[0]:
                driver = parts.driver(NAMES, parts.generation)
            if (yield (Happens("turn"),)).answers[0]:
                driver, other = other, driver
            work = _work(BatchId("q", run_id, batch_id), write, reports, parts)
            try:
                yield from driver.commit(work)
            except KafkaError as error:
                if not (yield (Happens("swallow"),)).answers[0]:
                    if not isinstance(error, DecidedRowsLostError):
                        yield from _aborted(driver, work)
                    return error
                swallowed.add(write)
        yield (LogCommit(run_id, batch_id, frozenset(swallowed)),)


def _work(batch: BatchId, write: str, reports: tuple[Report, ...], parts: Parts) -> PreparedWrite:
    prepared = tuple(each.prepared for each in reports)
    seen = frozenset(each.seen for each in reports)
    content = Content(parts.rows * TASKS, 1)
    return PreparedWrite(batch, prepared, TopicPartition(write, 0), seen, content, write)


def _aborted(driver: Any, work: PreparedWrite) -> Any:
    try:
        yield from driver.abort(work.batch, work.prepared, work.where)
    except KafkaError:
        return


def worker(run_id: str, task: int, parts: Parts, after: At = (-1, 0), life: int = 0) -> Any:
    """The worker of a run that runs this task of each micro-batch, until an attempt fails.

    Its second life is that of a process that follows it.
    """
    try:
        yield from _works(run_id, task, parts, after, life)
    except KafkaError as error:
        return error


def _works(run_id: str, task: int, parts: Parts, after: At, life: int) -> Any:
    at, seen = after, None
    while True:
        heard = yield (Await(run_id, at),)
        at = heard.answers[0]
        batch_id, write = at[0], parts.of(run_id)[at[1]]
        if seen is None:
            lease = yield from _leased(run_id, task, life, parts)
            slots = parts.slots(NAMES, NAMES.space, lease, parts.generation, TIMEOUT_MS)
            seen = yield from parts.look(NAMES, BatchId("q", run_id, batch_id))
            yield from slots.inherit()
        if (yield (Happens("worker"),)).answers[0]:
            slot = yield from slots.begin(batch_id, heard.now_ms)
            yield (_first(slot, (batch_id, write, task, 0)),)
        rows = [(batch_id, write, task, place) for place in range(parts.rows)]
        slot = yield from _written(slots, rows, heard.now_ms)
        prepared = PreparedTransaction(slot.transactional_id, slot.producer, parts.rows)
        yield (Report(run_id, batch_id, write, task, prepared, seen),)


def _leased(run_id: str, task: int, life: int, parts: Parts) -> Any:
    number = (int(run_id.strip("rjudge") or 0) * TASKS + task) * 2 + life
    take = parts.take(f"{run_id}.{task}.{life}", number << 22)
    return Lease(*(yield (take,)).answers[0])


def _written(slots: Any, rows: list[Row], now_ms: int) -> Any:
    """Write a task's rows. Return the slot."""
    slot = yield from slots.begin(rows[0][0], now_ms)
    error = (yield (_first(slot, rows[0]),)).answers[0]
    if error is REFUSED_EPOCH:
        slots.retire(slot)
        slot = yield from slots.new(rows[0][0], now_ms)
        error = (yield (_first(slot, rows[0]),)).answers[0]
    for row in rows[1:]:
        if error is None:
            error = (yield (Produce(slot.transactional_id, slot.producer, row),)).answers[0]
    if error is not None:
        raise error
    return slot


def _first(slot: Slot, row: Row) -> Produce:
    return Produce(slot.transactional_id, slot.producer, row)
