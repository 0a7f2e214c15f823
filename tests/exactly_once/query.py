"""A query without Spark. Its runs write micro-batches, and each task writes in a transaction."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.exactly_once import (
    BatchId,
    Caution,
    Content,
    Names,
    TwoPhaseCommit,
    begin_attempt,
)
from spark_kafka_source.exactly_once.two_phase import Step
from spark_kafka_source.producer import KafkaProducer, PreparedTransaction
from spark_kafka_source.producer.producer_config import config_from_arguments
from spark_kafka_source.topic_partition import TopicPartition

ROWS = 3
"""So many rows a task writes, unless a test says otherwise."""
TIMEOUT_MS = 60_000

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
    caution: Caution = field(default_factory=Caution)

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
    """One run of a query: its driver, and its executors, which share a producer."""

    query: Query
    run_id: str

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

    def write(
        self, batch_id: int, tasks: int = 2, *, attempt: int = 0, count: int = ROWS
    ) -> list[PreparedTransaction]:
        """Write the rows of all tasks of a micro-batch. The transactions stay open."""
        with self.producer() as producer:
            return [
                self.write_task(producer, batch_id, task, attempt=attempt, count=count)
                for task in range(tasks)
            ]

    def write_task(
        self,
        producer: KafkaProducer,
        batch_id: int,
        task: int,
        *,
        attempt: int = 0,
        count: int = ROWS,
    ) -> PreparedTransaction:
        """Write the rows of one task."""
        query = self.query
        task_id = query.names.task_id(self.run_id, task, attempt)
        begin_attempt(producer, task_id, query.timeout_ms)
        for row, value in enumerate(query.values(batch_id, task, count)):
            producer.send(query.topic, value, partition=(task + row) % query.partitions)
            query.written.add(value)
        prepared = producer.prepare_transaction()
        assert prepared is not None
        return prepared

    @contextmanager
    def driver(self, reached: Reached = lambda _: None) -> Iterator[TwoPhaseCommit]:
        """Return a new object for a `commit` or an `abort`, as Spark makes one for each."""
        client = client_of(self.query.servers, **self.query.settings)
        two_phase = TwoPhaseCommit(client, self.query.names, reached, caution=self.query.caution)
        try:
            yield two_phase
        finally:
            two_phase.close()

    def commit(
        self,
        batch_id: int,
        winners: Sequence[PreparedTransaction],
        reached: Reached = lambda _: None,
        content: Content | None = None,
    ) -> None:
        where = self.query.where if winners else None
        with self.driver(reached) as driver:
            driver.commit(self.batch(batch_id), winners, where, content)

    def abort(self, batch_id: int, attempts: Sequence[PreparedTransaction]) -> None:
        with self.driver() as driver:
            driver.abort(self.batch(batch_id), attempts, self.query.where)
