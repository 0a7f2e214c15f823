"""A driver or a worker: `python -m tests.reliability.stopping.process`.

Each line of its standard input is an order as JSON. A line of its standard output is the answer. It
dies or stands still at a statement of the protocol if the order says so.
"""

import json
import os
import signal
import sys
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once import Commits, DecidedRowsLostError, Work
from spark_kafka_source.producer import Generation, KafkaProducer, PreparedTransaction, ProducerId
from tests.exactly_once.query import Query, Run, client_of
from tests.reliability.stopping.statements import Statements

MODULE = "tests.reliability.stopping.process"
STOPS = "stops"
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
    winners: list[Any] = field(default_factory=list)
    """Of each transaction its id, its producer's id and epoch, and its number of partitions."""
    seen: list[Any] = field(default_factory=list)
    """The control id's producer, as each worker saw it."""
    generation: int = 0
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
    winner: Any = None
    seen: Any = None
    generation: int = 0
    statements: list[int] = field(default_factory=list)
    """The numbers of the statements of the protocol that the order took, one for each place."""


class Process:
    """The memory of a process: one part of a worker for each run, and of a driver for each."""

    def __init__(self) -> None:
        self._workers: dict[str, tuple[Run, KafkaProducer]] = {}
        self._producers = ExitStack()
        self._drivers: dict[tuple[str, int], Commits] = {}

    def carry_out(self, order: Order) -> Answer:
        def act(place: list[str]) -> None:
            if not order.dies:
                sys.stdout.write(f"{json.dumps({STOPS: place})}\n")
                sys.stdout.flush()
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
        return Answer(**asdict(found) | {"statements": [*statements.first.values()]})

    def _write(self, query: Query, order: Order) -> Answer:
        if order.run_id not in self._workers:
            run = Run(query, order.run_id)
            self._workers[order.run_id] = run, self._producers.enter_context(run.producer())
        run, producer = self._workers[order.run_id]
        run.query.timeout_ms = query.timeout_ms
        prepared = run.write_task(producer, order.batch_id, order.task)
        assert run.worker is not None
        winner = [prepared.transactional_id, *prepared.producer, prepared.partition_count]
        return Answer(winner=winner, seen=run.worker.seen, generation=run.worker.generation.value)

    def _decide(self, query: Query, order: Order) -> None:
        key = order.run_id, order.generation
        if key not in self._drivers:
            generation = Generation(order.generation)
            client = client_of(query.servers, **query.settings)
            self._drivers[key] = Commits(client, query.names, generation)
        commits = self._drivers[key]
        batch = Run(query, order.run_id).batch(order.batch_id)
        winners = tuple(
            PreparedTransaction(name, ProducerId(producer_id, epoch), count)
            for name, producer_id, epoch, count in order.winners
        )
        if order.what == ABORT:
            commits.abort(batch, winners, query.where)
            return
        seen = frozenset(each and ProducerId(*each) for each in order.seen)
        commits.commit(Work(batch, winners, query.where, seen))


def _lost(error: KafkaError) -> list[Any]:
    if not isinstance(error, DecidedRowsLostError):
        return []
    batch = error.batch
    return [[batch.run_id, batch.batch_id, each] for each in (*error.lost, *error.unknown)]


def main() -> None:
    process = Process()
    for line in iter(sys.stdin.readline, ""):
        answer = process.carry_out(Order(**json.loads(line)))
        sys.stdout.write(f"{json.dumps(asdict(answer))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
