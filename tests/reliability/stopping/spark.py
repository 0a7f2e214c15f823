"""Runs of a query as Spark makes them, with tasks and a commit log. The processes are real."""

import time
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from random import Random

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once.repair import finish
from spark_kafka_source.producer import Generation
from tests.exactly_once.judge import Found, Verdict, judge
from tests.exactly_once.query import Query, client_of
from tests.reliability.stopping.child import Children, Meanwhile, Strike
from tests.reliability.stopping.process import ABORT, COMMIT, WRITE, Answer, Order

WORKERS = 2
_MOST_ATTEMPTS = 4
LOST = "DecidedRowsLostError"
DEAD = "dead"
# Errors that no stop of a process explains.
_WRONG = {"ReplayDiffersError", "DoubtfulReplayError", "PrefixIsGroupError"}

Draw = Callable[[str], Strike | None]
"""Draws the strike for an order of this kind, or none."""


def unharmed(_: str) -> None:
    """Draw no strike."""


class RunEndedError(Exception):
    """A run of the query has ended by an error, or by a death."""


@dataclass
class Table:
    """A query, its commit log, and what has come of it so far."""

    query: Query
    task_counts: tuple[int, int] = (1, 4)
    """The least and the largest number of tasks of a micro-batch."""
    about: str = ""
    is_patient: bool = False
    """Whether no transaction may time out, so that no row may be lost."""
    next_batch: int = 0
    """The commit log: the first micro-batch that is not known to be written."""
    given_up: set[bytes] = field(default_factory=set)
    """Rows that an error has named as lost."""
    ends: Counter[str] = field(default_factory=Counter)
    """The errors and deaths that have ended runs."""
    rows: dict[tuple[str, int, str], list[bytes]] = field(default_factory=dict)
    """The rows of each transaction, by its run, its micro-batch and its id."""
    texts: list[str] = field(default_factory=list)
    """The texts of errors of lost rows."""

    def tasks(self, batch_id: int) -> int:
        """Return the number of tasks of a micro-batch. It is the same in each run."""
        return Random(f"{self.query.prefix} {batch_id}").randint(*self.task_counts)

    def log(self, batch_id: int) -> None:
        """Note that a micro-batch is written."""
        self.next_batch = max(self.next_batch, batch_id + 1)

    def verdict(self, found: Found) -> Verdict:
        """Judge this query's rows up to its commit log. Those given up may be there or not."""
        query = self.query
        written = {
            value
            for batch_id in range(self.next_batch)
            for task in range(self.tasks(batch_id))
            for value in query.values(batch_id, task)
        }
        of_query = [each for each in found.values if each.startswith(f"{query.prefix}:".encode())]
        gone = self.given_up - {*of_query}
        return judge(Found(of_query, found.held_up), written - gone)


class SparkRun:
    """One run of a query, with a driver and workers. Its processes may be struck."""

    def __init__(self, table: Table, children: Children, draw: Draw, chance: Random) -> None:
        self._table, self._children, self._draw, self._chance = table, children, draw, chance
        self.run_id = str(uuid.uuid4())
        self.driver = children.take()
        self._workers = [children.take() for _ in range(WORKERS)]

    def close(self) -> None:
        """Leave the processes to other runs."""
        self._children.put(self.driver, *self._workers)

    def run(self, until: int) -> None:
        """Write micro-batches from the commit log on. Raises `RunEndedError`."""
        batch_id = self._table.next_batch
        while batch_id < until:
            self.commit(batch_id, self.write(batch_id))
            if self._draw("log") is not None:
                self._end("before the commit log")
            self._table.log(batch_id)
            batch_id += 1

    def write(self, batch_id: int) -> list[Answer]:
        """Write all tasks of a micro-batch. Return the answers about one attempt of each."""
        answers = [self._task(batch_id, task) for task in range(self._table.tasks(batch_id))]
        slow = self._draw("slow")
        if slow is not None:
            time.sleep(slow.after_seconds)
        return answers

    def commit(
        self,
        batch_id: int,
        written: list[Answer],
        strike: Strike | None = None,
        meanwhile: Meanwhile | None = None,
    ) -> Answer:
        """Commit a micro-batch. After an error abort, as Spark does, and raise `RunEndedError`."""
        both = {each.generation for each in written}
        given = {
            "winners": tuple(each.winner for each in written),
            "seen": frozenset(each.seen for each in written),
            "generation": both.pop() if len(both) == 1 else Generation.FIRST,
        }
        order = self._order(COMMIT, batch_id, **given)
        if self._draw("new driver") is not None:
            self.driver.close()
            self.driver = self._children.take()
        answer = self.driver.ask(order, strike or self._draw(COMMIT), meanwhile)
        if answer is None:
            self._end(f"the driver is {DEAD}")
        elif answer.error is not None:
            self.driver.ask(self._order(ABORT, batch_id, **given), self._draw(ABORT))
            self._fail(answer)
        assert answer is not None
        return answer

    def _task(self, batch_id: int, task: int) -> Answer:
        """Write a task, again and again if it fails. Perhaps there are two attempts, as of one."""
        done: list[Answer] = []
        wanted = 1 if self._draw("speculation") is None else 2
        for _ in range(_MOST_ATTEMPTS):
            place = self._chance.randrange(WORKERS)
            worker = self._workers[place]
            answer = worker.ask(self._order(WRITE, batch_id, task=task), self._draw(WRITE))
            if answer is None:
                self._table.ends[f"a worker is {DEAD}"] += 1
                self._workers[place] = self._children.take()
            elif answer.error is not None:
                self._note(answer)
            else:
                assert answer.winner is not None
                key = self.run_id, batch_id, answer.winner.transactional_id
                self._table.rows[key] = self._table.query.values(batch_id, task)
                done.append(answer)
            if len(done) == wanted:
                break
        if not done:
            self._end("a task failed for good")
        return self._chance.choice(done)

    def _order(self, what: str, batch_id: int, **more: object) -> Order:
        query = self._table.query
        given = {
            "servers": query.servers,
            "topic": query.topic,
            "partitions": query.partitions,
            "prefix": query.prefix,
            "query_id": query.query_id,
            "timeout_ms": query.timeout_ms,
        }
        return Order(what, given, self.run_id, batch_id, **more)  # type: ignore[arg-type]

    def _fail(self, answer: Answer) -> None:
        self._note(answer)
        if answer.error == LOST:
            self._give_up(answer)
        raise RunEndedError(f"{answer.error}: {answer.text}")

    def _note(self, answer: Answer) -> None:
        assert answer.error not in _WRONG, answer.text
        assert "This run has written this batch already" not in answer.text, answer.text
        self._table.ends[str(answer.error)] += 1

    def _give_up(self, answer: Answer) -> None:
        """Go on without the rows that an error names, as the error says how."""
        table = self._table
        assert not table.is_patient, answer.text
        _, batch_id, _ = answer.lost[0]
        assert len(answer.lost) < table.tasks(batch_id), f"no reader has seen any: {answer.text}"
        table.texts.append(answer.text)
        for run_id, batch_id, name in answer.lost:
            table.given_up |= {*table.rows[run_id, batch_id, name]}
        with client_of(table.query.servers) as client, suppress(KafkaError):
            finish(client, table.query.names, accept_loss=True)

    def _end(self, how: str) -> None:
        self._table.ends[how] += 1
        raise RunEndedError(how)


def go_on(table: Table, children: Children, draw: Draw, chance: Random, until: int) -> None:
    """Run the query once, to a micro-batch or to its error."""
    run = SparkRun(table, children, draw, chance)
    with closing(run), suppress(RunEndedError):
        run.run(until)
