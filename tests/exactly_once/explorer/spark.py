"""What Spark does around the stories: runs of a query, each with a driver and workers.

Each process is a story, too. Besides requests to brokers it yields the steps below.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once.decision import BatchId, Content
from spark_kafka_source.exactly_once.driver import Driver, Work
from spark_kafka_source.exactly_once.errors import DecidedRowsLostError
from spark_kafka_source.exactly_once.looking import Seen, look
from spark_kafka_source.exactly_once.slots import Slot, Slots
from spark_kafka_source.producer import PreparedTransaction, ProducerId
from spark_kafka_source.producer.generation import Generation
from spark_kafka_source.topic_partition import TopicPartition
from tests.exactly_once.explorer.brokers import NAMES, REFUSED_EPOCH, TIMEOUT_MS, Row

WHERE = TopicPartition("t", 0)
TASKS = 2


@dataclass(frozen=True, slots=True)
class Start:
    """Start the next micro-batch of a run. Answer: its number, or None after the last one."""

    run_id: str
    """For the first one of a run, look into the checkpoint."""
    after: int | None


@dataclass(frozen=True, slots=True)
class Await:
    """A worker waits for a micro-batch after this one. Answer: its number."""

    run_id: str
    after: int


@dataclass(frozen=True, slots=True)
class Report:
    """A task has written."""

    run_id: str
    batch_id: int
    task: int
    prepared: PreparedTransaction
    seen: Seen


@dataclass(frozen=True, slots=True)
class Collect:
    """The driver waits for all tasks of a micro-batch. Answer: their reports."""

    run_id: str
    batch_id: int


@dataclass(frozen=True, slots=True)
class LogCommit:
    """Write a micro-batch into Spark's commit log. `swallowed`: code has hidden an error."""

    run_id: str
    batch_id: int
    swallowed: bool


@dataclass(frozen=True, slots=True)
class Produce:
    """Write a row. Answer: None, or an error."""

    transactional_id: str
    producer: ProducerId
    row: Row
    until_ms: int | None = None
    """The row is not sent after this time. Then the answer is the same as for a refused epoch."""


@dataclass(frozen=True, slots=True)
class Happens:
    """Whether a fault happens now. Answer: a bool. There are only so many of them."""

    fault: str


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of the protocol. A mutant replaces one of them by a wrong one."""

    generation: Generation
    rows: int
    """How many rows a task writes, each in a partition of its own."""

    driver: Callable[..., Any] = Driver
    slots: Callable[..., Any] = Slots
    look: Callable[..., Any] = look


def driver(run_id: str, parts: Parts) -> Any:
    """The driver of a run. Its error ends the run, unless code in foreachBatch swallows it."""
    story, batch_id = parts.driver(NAMES, parts.generation), None
    while True:
        batch_id = (yield (Start(run_id, batch_id),)).answers[0]
        if batch_id is None:
            return None
        reports = (yield (Collect(run_id, batch_id),)).answers[0]
        if (yield (Happens("memory"),)).answers[0]:
            story = parts.driver(NAMES, parts.generation)
        prepared = tuple(each.prepared for each in reports)
        batch = BatchId("q", run_id, batch_id)
        seen = frozenset(each.seen for each in reports)
        work = Work(batch, prepared, WHERE, seen, Content(parts.rows * TASKS, 1))
        swallowed = False
        try:
            yield from story.commit(work)
        except KafkaError as error:
            if not (yield (Happens("swallow"),)).answers[0]:
                if not isinstance(error, DecidedRowsLostError):
                    yield from _aborted(story, batch, prepared)
                return error
            swallowed = True
        yield (LogCommit(run_id, batch_id, swallowed),)


def _aborted(story: Any, batch: BatchId, prepared: tuple[PreparedTransaction, ...]) -> Any:
    try:
        yield from story.abort(batch, prepared, WHERE)
    except KafkaError:
        return


def worker(run_id: str, task: int, parts: Parts) -> Any:
    """The worker of a run that runs this task of each micro-batch, until an attempt fails."""
    try:
        yield from _works(run_id, task, parts)
    except KafkaError as error:
        return error


def _works(run_id: str, task: int, parts: Parts) -> Any:
    slots = parts.slots(NAMES, run_id, task << 22, parts.generation, TIMEOUT_MS)
    batch_id, seen = -1, None
    while True:
        heard = yield (Await(run_id, batch_id),)
        batch_id = heard.answers[0]
        if seen is None:
            seen = yield from parts.look(NAMES, BatchId("q", run_id, batch_id))
        if (yield (Happens("worker"),)).answers[0]:
            slot = yield from slots.begin(batch_id, heard.now_ms)
            yield (_first(slot, (batch_id, task, 0)),)
        slot = yield from slots.begin(batch_id, heard.now_ms)
        rows = [(batch_id, task, place) for place in range(parts.rows)]
        slot = yield from _written(slots, slot, rows, heard.now_ms)
        prepared = PreparedTransaction(slot.transactional_id, slot.producer, parts.rows)
        yield (Report(run_id, batch_id, task, prepared, seen),)


def _written(slots: Any, slot: Slot, rows: list[Row], now_ms: int) -> Any:
    """Write a task's rows. Return the slot."""
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
    return Produce(slot.transactional_id, slot.producer, row, slot.until_ms)
