"""A query without Spark. Its runs write micro-batches, and each task writes in a transaction."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once.checks import Checkpoint
from spark_kafka_source.exactly_once.committing import Commits
from spark_kafka_source.exactly_once.decision import NO_CONTENT, BatchId, Content
from spark_kafka_source.exactly_once.driver import PreparedWrite
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.exactly_once.replays import Caution
from spark_kafka_source.exactly_once.requests import Steps
from spark_kafka_source.exactly_once.slots import Slot
from spark_kafka_source.exactly_once.step_runner import StepRunner
from spark_kafka_source.exactly_once.worker import Worker
from spark_kafka_source.producer import (
    Generation,
    KafkaProducer,
    PreparedTransaction,
    generation_of,
)
from spark_kafka_source.producer.producer_config import config_from_arguments
from spark_kafka_source.topic_partition import TopicPartition
from tests.exactly_once.steps import Step, SteppedRunner

T = TypeVar("T")

ROWS = 3
"""So many rows a task writes, unless a test says otherwise."""
TIMEOUT_MS = 60_000
IN_TIME_SECONDS = 60.0

Reached = Callable[[Step], object]
"""Is told of each step."""


def client_of(servers: str, **settings: object) -> KafkaClient:
    """Return a new client."""
    given = {"bootstrap_servers": servers, "transactional_id": "-", **settings}
    return KafkaClient(config_from_arguments(given, None).client)


@dataclass
class Query:
    """A query that writes to a topic. `written` has the rows that must be there once in the end."""

    servers: str
    topic: str
    partitions: int
    prefix: str = field(default_factory=lambda: f"p-{uuid.uuid4().hex[:8]}")
    query_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    written: set[bytes] = field(default_factory=set)
    timeout_ms: int = TIMEOUT_MS
    settings: dict[str, object] = field(default_factory=dict)
    """Those of its driver's client, and of its producers."""
    caution: Caution = Caution.WARN
    checkpoint: Checkpoint = field(default_factory=Checkpoint)

    @property
    def names(self) -> Names:
        return Names(self.prefix)

    @property
    def where(self) -> TopicPartition:
        return TopicPartition(self.topic, 0)

    def values(self, batch_id: int, task: int, count: int = ROWS) -> list[bytes]:
        """Return the rows of a task. They are the same in each run of the micro-batch."""
        return [f"{self.prefix}:{batch_id}:{task}:{row}".encode() for row in range(count)]

    def start(self) -> "Run":
        """Start the query, or start it again."""
        return Run(self, str(uuid.uuid4()))


@dataclass
class Run:
    """One run of a query: its driver, and its executors, which are one process here."""

    query: Query
    run_id: str
    worker: Worker | None = None
    """What the executors' process remembers; None before its first task."""
    generation: Generation | None = None

    def batch(self, batch_id: int) -> BatchId:
        return BatchId(self.query.query_id, self.run_id, batch_id)

    @contextmanager
    def producer(self) -> Iterator[KafkaProducer]:
        """Return a producer like an executor's."""
        given = {"bootstrap_servers": self.query.servers, **self.query.settings}
        producer = KafkaProducer.of(
            config_from_arguments({**given, "transactional_id": "-", "linger_ms": 0}, None)
        )
        try:
            yield producer
        finally:
            producer.close(5)

    def look(self, batch_id: int) -> Worker:
        """Return the executors' process. Before its first task it looks at the brokers."""
        query = self.query
        if self.worker is None or self.worker.transaction_timeout_ms != query.timeout_ms:
            with client_of(query.servers, **query.settings) as client:
                generation = client.run(generation_of(client))
                self.worker = Worker(query.names, self.run_id, generation, query.timeout_ms)
                self._run(self.worker.look(self.batch(batch_id)))
        return self.worker

    def _run(self, story: Steps[T]) -> T:
        query, worker = self.query, self.worker
        assert worker is not None
        with client_of(query.servers, **query.settings) as client:
            telling = StepRunner(client, query.names, worker.generation, query.timeout_ms)
            return telling.run(story)

    def write(
        self, batch_id: int, tasks: int = 2, *, count: int = ROWS
    ) -> list[PreparedTransaction]:
        """Write the rows of all tasks of a micro-batch. The transactions stay open."""
        with self.producer() as producer:
            return [self.write_task(producer, batch_id, task, count=count) for task in range(tasks)]

    def write_task(
        self, producer: KafkaProducer, batch_id: int, task: int, *, count: int = ROWS
    ) -> PreparedTransaction:
        """Write the rows of one task."""
        return self.write_values(producer, batch_id, self.query.values(batch_id, task, count), task)

    def write_values(
        self, producer: KafkaProducer, batch_id: int, values: Sequence[bytes], first: int = 0
    ) -> PreparedTransaction:
        """Write rows in a transaction, from this partition on."""
        query = self.query
        slot = self.begin(producer, batch_id)
        try:
            self.send(producer, values, first)
        except KafkaError:
            if not slot.is_guess:
                raise
            assert self.worker is not None
            slot = self._run(self.worker.replace_refused(slot))
            producer.begin_at(self.worker.beginning(slot))
            self.send(producer, values, first)
        query.written |= set(values)
        prepared = producer.prepare_transaction()
        assert prepared is not None
        return prepared

    def begin(self, producer: KafkaProducer, batch_id: int) -> Slot:
        """Begin a task's transaction."""
        worker = self.look(batch_id)
        slot = self._run(worker.begin(batch_id))
        producer.begin_at(worker.beginning(slot))
        return slot

    def send(self, producer: KafkaProducer, values: Sequence[bytes], first: int = 0) -> None:
        """Send rows, from this partition on, and wait for the answers."""
        query = self.query
        sent = [
            producer.send(query.topic, value, partition=(first + row) % query.partitions)
            for row, value in enumerate(values)
        ]
        for each in sent:
            each.result(IN_TIME_SECONDS)

    @contextmanager
    def driver(self, reached: Reached | None = None) -> Iterator["RunDriver"]:
        """Return a new driver without memory, like that of a new process."""
        client = client_of(self.query.servers, **self.query.settings)
        driver = RunDriver(self, client, reached)
        try:
            yield driver
        finally:
            client.close()

    def commit(
        self,
        batch_id: int,
        winners: Sequence[PreparedTransaction],
        reached: Reached | None = None,
        content: Content = NO_CONTENT,
    ) -> None:
        with self.driver(reached) as driver:
            driver.commit(self.batch(batch_id), winners, content=content)

    def abort(self, batch_id: int, attempts: Sequence[PreparedTransaction]) -> None:
        with self.driver() as driver:
            driver.abort(self.batch(batch_id), attempts)


def write_to_all(runs: Sequence[Run], batch_id: int) -> PreparedTransaction:
    """Write the rows of one task to the topic of each of these runs, as a column of topics does."""
    with runs[0].producer() as producer:
        runs[0].begin(producer, batch_id)
        for each in runs:
            values = each.query.values(batch_id, 0)
            each.send(producer, values)
            each.query.written |= set(values)
        prepared = producer.prepare_transaction()
    assert prepared is not None
    return prepared


class RunDriver:
    """A driver's process. `reached` is told of each step of a commit."""

    def __init__(self, run: Run, client: KafkaClient, reached: Reached | None = None) -> None:
        self._run, self._client, self._reached = run, client, reached
        names, worker = run.query.names, run.worker
        generation = run.generation
        if generation is None:
            generation = Generation.FIRST if worker is None else worker.generation
        self.commits = Commits(client, names, generation, run.query.caution)
        if reached is not None:
            self.commits._runner = SteppedRunner(client, names, generation, reached)

    def commit(
        self,
        batch: BatchId,
        winners: Sequence[PreparedTransaction],
        _: TopicPartition | None = None,
        content: Content = NO_CONTENT,
        write: str | None = None,
    ) -> None:
        """Commit a micro-batch. Programs may still say where the decision is kept."""
        query = self._run.query
        write = query.topic if write is None else write
        worker = self._run.worker
        seen = frozenset({worker.seen} if worker else ())
        self.commits.commit(
            PreparedWrite(batch, tuple(winners), seen, content, write, query.checkpoint)
        )
        if self._reached is not None:
            self._reached(Step.SWEPT)

    def abort(self, batch: BatchId, attempts: Sequence[PreparedTransaction]) -> None:
        self.commits.abort(batch, attempts)

    def end_all(self, transactions: Sequence[PreparedTransaction]) -> None:
        self.commits.end_all(transactions)

    def abort_all(self, transactions: Sequence[PreparedTransaction]) -> None:
        self.commits.abort_all(transactions, self._run.run_id)
