"""What Spark does around the steps: runs of a query, each with a driver and workers.

Each process has steps, too. Besides requests to brokers it yields those below.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once.checks import Checkpoint
from spark_kafka_source.exactly_once.decision import BatchId, Content, Seen
from spark_kafka_source.exactly_once.driver import Driver, PreparedWrite
from spark_kafka_source.exactly_once.errors import DecidedRowsLostError
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.exactly_once.slots import Slots
from spark_kafka_source.exactly_once.worker import look
from spark_kafka_source.producer import PreparedTransaction, ProducerId
from spark_kafka_source.producer.generation import Generation
from tests.exactly_once.explorer.brokers import NAMES, REFUSED, Row

TASKS = 2
SAME, OTHER, MORE, COPIED = range(4)
"""The kinds of rows: of the first plan; as many, but other ones; more; of the copied query.

The copied query has rows that look like those of the first plan. So no check of contents helps.
"""


class At(NamedTuple):
    """The micro-batch of a run, the place of the present write in it, and the kind of its rows."""

    batch_id: int = -1
    place: int = 0
    kind: int = SAME


_BEFORE = At()


@dataclass(frozen=True, slots=True)
class Start:
    """Start the next micro-batch of a run, and its first write.

    Answer: `At`, or None after the last one.
    """

    run_id: str
    """For the first one of a run, look into the checkpoint."""
    after: At | None


@dataclass(frozen=True, slots=True)
class Go:
    """Start the next write of a micro-batch."""

    run_id: str
    at: At


@dataclass(frozen=True, slots=True)
class Await:
    """A worker waits for a write after this one. Answer: `At`."""

    run_id: str
    after: At


@dataclass(frozen=True, slots=True)
class Report:
    """A task has written."""

    run_id: str
    at: At
    task: int
    prepared: PreparedTransaction
    seen: Seen


@dataclass(frozen=True, slots=True)
class Collect:
    """The driver waits for all tasks of a write. Answer: their reports."""

    run_id: str
    at: At


@dataclass(frozen=True, slots=True)
class LogCommit:
    """Write a micro-batch into Spark's commit log. Code has hidden the errors of some writes."""

    run_id: str
    at: At
    swallowed: frozenset[str]


@dataclass(frozen=True, slots=True)
class Produce:
    """Write a row. Answer: its place, or an error."""

    transactional_id: str
    producer: ProducerId
    row: Row


@dataclass(frozen=True, slots=True)
class Happens:
    """Whether a fault happens now. Answer: a bool. There are only so many of them."""

    fault: str


class NumberedSlots(Slots):
    """Slots of a process that has a number in place of a random one."""

    def __init__(self, names: Names, space: str, generation: Generation, process: int) -> None:
        super().__init__(names, space, generation)
        del self._numbers
        self._process, self._begun = process, 0

    def _next_id(self) -> str:
        self._begun += 1
        return str(self._names.task_id(self._space, self._process, self._begun))


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of the protocol. A mutant replaces one of them by a wrong one."""

    generation: Generation
    rows: int
    """How many rows a task writes, each in a partition of its own."""
    writes: tuple[str, ...]
    """The topics to which each micro-batch is written, one after the other."""

    driver: Callable[..., Any] = Driver
    slots: Callable[..., Any] = NumberedSlots
    look: Callable[..., Any] = look

    def of(self, run_id: str) -> tuple[str, ...]:
        """Return the writes of a run in their order. All runs but the first have the other one."""
        return self.writes if run_id == "r0" else self.writes[::-1]


def is_copy(run_id: str) -> bool:
    """Whether a run has a copy of the checkpoint."""
    return run_id.startswith("c")


def content_of(rows: int, kind: int) -> Content:
    """Return the content of a write whose tasks have this many rows each, of a kind."""
    return Content(rows * TASKS + (kind == MORE), 1, 0 if kind == COPIED else kind)


def driver(run_id: str, parts: Parts) -> Any:
    """The driver of a run. Its error ends the run, unless code in foreachBatch swallows it."""
    driver, other = (parts.driver(NAMES, parts.generation) for _ in range(2))
    at = None
    while True:
        at = (yield (Start(run_id, at),)).answers[0]
        if at is None:
            return None
        swallowed = set()
        for place, write in enumerate(parts.of(run_id)):
            at = at._replace(place=place)
            if place:
                yield (Go(run_id, at),)
            reports = (yield (Collect(run_id, at),)).answers[0]
            if (yield (Happens("memory"),)).answers[0]:
                driver = parts.driver(NAMES, parts.generation)
            if (yield (Happens("turn"),)).answers[0]:
                driver, other = other, driver
            work = _work(run_id, at, write, reports, parts)
            try:
                yield from driver.commit(work)
            except KafkaError as error:
                if not (yield (Happens("swallow"),)).answers[0]:
                    if not isinstance(error, DecidedRowsLostError):
                        yield from _aborted(driver, work)
                    return error
                swallowed.add(write)
        yield (LogCommit(run_id, at, frozenset(swallowed)),)


def _work(
    run_id: str, at: At, write: str, reports: tuple[Report, ...], parts: Parts
) -> PreparedWrite:
    return PreparedWrite(
        BatchId("q", run_id, at.batch_id),
        tuple(each.prepared for each in reports),
        frozenset(each.seen for each in reports),
        content_of(parts.rows, at.kind),
        write,
        Checkpoint("copy" if is_copy(run_id) else "here"),
    )


def _aborted(driver: Any, work: PreparedWrite) -> Any:
    try:
        yield from driver.abort(work.batch, work.prepared, work.wheres[0])
    except KafkaError:
        return


def worker(run_id: str, task: int, parts: Parts, after: At = _BEFORE, life: int = 0) -> Any:
    """The worker of a run that runs this task of each micro-batch, until an attempt fails.

    Its second life is that of a process that follows it.
    """
    try:
        yield from _works(run_id, task, parts, after, life)
    except KafkaError as error:
        return error


def _works(run_id: str, task: int, parts: Parts, after: At, life: int) -> Any:
    at, seen = after, None
    slots = parts.slots(NAMES, run_id, parts.generation, task + life * TASKS)
    while True:
        at = (yield (Await(run_id, at),)).answers[0]
        write = parts.of(run_id)[at.place]
        rows = [Row(at.batch_id, write, task, place, at.kind) for place in range(parts.rows)]
        if seen is None:
            seen = yield from parts.look(NAMES, BatchId("q", run_id, at.batch_id))
        if (yield (Happens("worker"),)).answers[0]:
            slot = yield from slots.begin(at.batch_id)
            yield (Produce(slot.transactional_id, slot.producer, rows[0]),)
        slot, place = yield from _written(slots, rows)
        prepared = PreparedTransaction(
            slot.transactional_id, slot.producer, parts.rows, place, (write,)
        )
        yield (Report(run_id, at, task, prepared, seen),)


def _written(slots: Any, rows: list[Row]) -> Any:
    """Write a task's rows. Return the slot, and the place of the last row."""
    slot = yield from slots.begin(rows[0].batch_id)
    for row in rows:
        answer = (yield (Produce(slot.transactional_id, slot.producer, row),)).answers[0]
        if answer is REFUSED and row == rows[0]:
            slots.retire(slot)
            slot = yield from slots.new(row.batch_id)
            answer = (yield (Produce(slot.transactional_id, slot.producer, row),)).answers[0]
        if isinstance(answer, KafkaError):
            raise answer
    return slot, answer
