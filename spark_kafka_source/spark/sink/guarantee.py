"""The attempts of a write, and its guarantee: the steps that decide how often readers see a row."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from spark_kafka_source.client import ClientConfig, KafkaClient
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once.decision import Seen
from spark_kafka_source.producer import (
    Generation,
    KafkaProducer,
    PreparedTransaction,
    ProducerConfig,
)
from spark_kafka_source.spark.pool import Pool
from spark_kafka_source.spark.python_worker import in_this_rack

_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"
_RUN_ID = "spark.jobGroup.id"


@dataclass(frozen=True, slots=True)
class Attempt:
    """The `number`th attempt, from 0, of a task that writes `partition` of a DataFrame.

    The query is None in a plain batch. Within `foreachBatch` it is the stream's query. A
    micro-batch that runs again after a restart has the same `query_id` and `batch_id`.
    """

    partition: int
    number: int
    query_id: str | None = None
    run_id: str | None = None
    """A new one each time that the query is started."""
    batch_id: int | None = None

    @property
    def goes_on(self) -> bool:
        """Whether an earlier micro-batch has reached the brokers."""
        return bool(self.batch_id)

    @classmethod
    def current(cls) -> "Attempt":
        """Return the running task's attempt. Outside of a task: the first of partition 0."""
        context = TaskContext.get()
        if context is None:
            return cls(0, 0)
        query_id = context.getLocalProperty(_QUERY_ID)
        batch_id = context.getLocalProperty(_BATCH_ID)
        return cls(
            context.partitionId(),
            context.attemptNumber(),
            query_id,
            # In a plain batch, the user sets the job group.
            context.getLocalProperty(_RUN_ID) if query_id is not None else None,
            int(batch_id) if batch_id is not None else None,
        )


@dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):
    """The report of one attempt: all of its rows are written, and the brokers have them."""

    attempt: Attempt
    row_count: int
    byte_count: int
    """The size of the rows' keys and values, before compression."""
    prepared: PreparedTransaction | None = None
    """The transaction of the rows, if they are written exactly once."""
    fingerprint: int = 0
    """That of the rows' keys and values, if they are written exactly once."""
    seen: Seen = field(default_factory=Seen)
    """What the task's process has seen of the prefix before its first transaction of the run."""
    generation: Generation = Generation.FIRST
    """The generation of the transaction."""


Messages = Sequence[Written | None]
"""The messages of the attempts that count, by partition; None for a task that failed."""


# By then all records have been written.
_CLOSE_SECONDS = 5.0


def _open(config: ProducerConfig) -> KafkaProducer:
    return KafkaProducer.of(in_this_rack(config))


def _close(producer: KafkaProducer) -> None:
    producer.close(_CLOSE_SECONDS)


kept_producers: Pool[ProducerConfig, KafkaProducer] = Pool(_open, _close)
"""Producers that have written all of their records, by their configurations."""
kept_clients: Pool[ClientConfig, KafkaClient] = Pool(KafkaClient, KafkaClient.close)
"""Clients for questions to coordinators, by their configurations."""


@dataclass(eq=False)
class Begun:
    """An attempt that has begun to write. Its producer is for its rows, and for no other rows."""

    config: ProducerConfig
    producer: KafkaProducer

    @property
    def is_guess(self) -> bool:
        """Whether brokers may refuse the first rows, which then go elsewhere; see `begin_anew`."""
        return False

    def begin_anew(self, error: KafkaError) -> None:
        """Begin again, after an error of the first rows of a guess. Raises the error if need be."""
        raise error

    def end(self, written: Written) -> Written:
        """Return the message for the driver, once the brokers have all rows of the attempt.

        Keeps the producer for the next attempt in this process.
        """
        kept_producers.put(self.config, self.producer)
        return written

    def give_up(self) -> None:
        """Close the producer after an error: unsent rows must not mix with the next attempt's.

        Must not raise.
        """
        self.producer.close(timeout_seconds=0)


@dataclass(frozen=True, slots=True)
class AtLeastOnce:
    """Rows count as soon as the brokers have them.

    Readers also see the rows of an attempt that failed or lost to another one. They see the rows
    of a micro-batch twice if it runs again after a restart. A stronger guarantee overrides the
    steps: in a task, and then on the driver. The object is pickled into each of these places, so
    one step passes results to the next only in a message.
    """

    config: ProducerConfig

    def settle(self, attempt: Attempt) -> None:
        """End what earlier writes left undone, before the attempt asks for its first row."""

    def begin(self, _: Attempt) -> Begun:
        """Begin the attempt's writes. An attempt without a row only settles."""
        return Begun(self.config, kept_producers.take(self.config))

    def commit(self, messages: Messages, batch_id: int | None) -> None:
        """Make the written rows count. `batch_id` is the micro-batch's, or None."""

    def abort(self, messages: Messages, batch_id: int | None) -> None:
        """Take the written rows back, if that is possible. Also called if `commit` raised."""
