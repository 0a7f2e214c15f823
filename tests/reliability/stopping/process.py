"""A driver or a worker, in a process of its own.

Its standard input has orders, and its standard output the answers, pickled. It dies or stands still
at a statement of the protocol if the order says so.
"""

import os
import pickle
import signal
import sys
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once.committing import Commits
from spark_kafka_source.exactly_once.decision import Seen
from spark_kafka_source.exactly_once.driver import PreparedWrite
from spark_kafka_source.exactly_once.errors import DecidedRowsLostError
from spark_kafka_source.producer import Generation, KafkaProducer, PreparedTransaction
from tests.exactly_once.query import Query, Run, client_of
from tests.reliability.stopping.statements import Statements

WRITE, COMMIT, ABORT = "write", "commit", "abort"


@dataclass(frozen=True, slots=True)
class Order:
    """An order: to write a task of a micro-batch, or to commit or abort the micro-batch."""

    what: str
    query: dict[str, Any]
    """Arguments of `Query`."""
    run_id: str
    batch_id: int
    task: int = 0
    winners: tuple[PreparedTransaction, ...] = ()
    seen: frozenset[Seen] = frozenset()
    generation: Generation = Generation.FIRST
    statement: int | None = None
    """The number of the statement at which the process dies or stands still."""
    dies: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to an order."""

    error: str | None = None
    text: str = ""
    lost: list[Any] = field(default_factory=list)
    """The transactions that `DecidedRowsLostError` names: run, micro-batch and id of each."""
    winner: PreparedTransaction | None = None
    seen: Seen = field(default_factory=Seen)
    generation: Generation = Generation.FIRST
    statements: list[int] = field(default_factory=list)
    """The numbers of the statements of the protocol that the order took, one for each place."""


@dataclass(frozen=True, slots=True)
class Stop:
    """The notice that the process is about to stand still at this place."""

    place: list[str]


class Process:
    """The memory of a process: one part of a worker for each run, and of a driver for each."""

    def __init__(self) -> None:
        self._workers: dict[str, tuple[Run, KafkaProducer]] = {}
        self._producers = ExitStack()
        self._drivers: dict[tuple[str, Generation], Commits] = {}

    def carry_out(self, order: Order) -> Answer:
        def act(place: list[str]) -> None:
            if not order.dies:
                _tell(Stop(place))
            os.kill(os.getpid(), signal.SIGKILL if order.dies else signal.SIGSTOP)

        query = Query(**order.query)
        with Statements(order.statement, act) as statements:
            try:
                found = self._write(query, order) if order.what == WRITE else Answer()
                if order.what != WRITE:
                    self._decide(query, order)
            except KafkaError as error:
                found = Answer(type(error).__name__, str(error), _lost(error))
                # As in Spark's worker after an error. The transaction is left open.
                self._workers.pop(order.run_id, None)
        return replace(found, statements=[*statements.first.values()])

    def _write(self, query: Query, order: Order) -> Answer:
        if order.run_id not in self._workers:
            run = Run(query, order.run_id)
            self._workers[order.run_id] = run, self._producers.enter_context(run.producer())
        run, producer = self._workers[order.run_id]
        run.query.timeout_ms = query.timeout_ms
        prepared = run.write_task(producer, order.batch_id, order.task)
        assert run.worker is not None
        return Answer(winner=prepared, seen=run.worker.seen, generation=run.worker.generation)

    def _decide(self, query: Query, order: Order) -> None:
        key = order.run_id, order.generation
        if key not in self._drivers:
            client = client_of(query.servers, **query.settings)
            self._drivers[key] = Commits(client, query.names, order.generation)
        commits = self._drivers[key]
        batch = Run(query, order.run_id).batch(order.batch_id)
        if order.what == ABORT:
            commits.abort(batch, order.winners)
        else:
            commits.commit(PreparedWrite(batch, order.winners, order.seen, write=query.topic))


def _lost(error: KafkaError) -> list[Any]:
    if not isinstance(error, DecidedRowsLostError):
        return []
    batch = error.batch
    return [[batch.run_id, batch.batch_id, each] for ids in error.found.values() for each in ids]


def _tell(what: Answer | Stop) -> None:
    pickle.dump(what, sys.stdout.buffer)
    sys.stdout.flush()


def main() -> None:
    """Carry out orders until there are no more."""
    process = Process()
    with suppress(EOFError):
        while True:
            _tell(process.carry_out(pickle.load(sys.stdin.buffer)))
