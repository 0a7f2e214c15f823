"""The attempts of a write, and its guarantee: the steps that decide how often readers see a row."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from spark_kafka_source.client import ClientConfig, KafkaClient
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once import Seen
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
    topic: str | None = None
    """A topic that the attempt has written to; None without a row."""
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


@dataclass(eq=False, slots=True)
class Begun:
    """An attempt that has begun to write. Its producer is for its rows, and for no other rows."""

    producer: KafkaProducer

    @property
    def is_guess(self) -> bool:
        """Whether brokers may refuse the first rows, which then go elsewhere; see `begin_anew`."""
        return False


B = TypeVar("B", bound=Begun)


class Guarantee(Protocol, Generic[B]):
    """Begin and end of each attempt, in a task; then commit or abort of all, on the driver.

    The object is pickled into each of these places, so one step passes results to the next only in
    a message. A task without a row only settles.
    """

    def settle(self, attempt: Attempt) -> None:
        """End what earlier writes left undone, before the attempt asks for its first row."""

    def begin(self, attempt: Attempt) -> B:
        """Begin the attempt's writes."""

    def begin_anew(self, begun: B, error: KafkaError) -> None:
        """Begin again, after an error of the first rows of a guess. Raises the error if need be."""

    def end(self, begun: B, written: Written) -> Written:
        """Return the message for the driver, once the brokers have all rows of the attempt."""

    def give_up(self, begun: B) -> None:
        """Release the producer after an error, whatever it has sent. Must not raise."""

    def commit(self, messages: Messages, batch_id: int | None) -> None:
        """Make the written rows count. `batch_id` is the micro-batch's, or None."""

    def abort(self, messages: Messages, batch_id: int | None) -> None:
        """Take the written rows back, if that is possible. Also called if `commit` raised."""


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


@dataclass(frozen=True, slots=True)
class AtLeastOnce(Guarantee[Begun]):
    """Rows count as soon as the brokers have them, so the driver has nothing to do.

    Readers also see the rows of an attempt that failed or lost to another one. They see the rows
    of a micro-batch twice if it runs again after a restart.
    """

    config: ProducerConfig

    def settle(self, _: Attempt) -> None:
        """Do nothing: earlier writes leave nothing undone."""

    def begin(self, _: Attempt) -> Begun:
        """Take a producer of an earlier attempt, or a new one."""
        return Begun(kept_producers.take(self.config))

    def begin_anew(self, _: Begun, error: KafkaError) -> None:
        """Raise the error: nothing was guessed."""
        raise error

    def end(self, begun: Begun, written: Written) -> Written:
        """Keep the producer for the next attempt in this process."""
        kept_producers.put(self.config, begun.producer)
        return written

    def give_up(self, begun: Begun) -> None:
        """Close the producer: its unsent rows must not mix with those of the next attempt."""
        begun.producer.close(timeout_seconds=0)

    def commit(self, messages: Messages, batch_id: int | None) -> None:
        """Do nothing: the rows are there."""

    def abort(self, messages: Messages, batch_id: int | None) -> None:
        """Do nothing: Kafka takes nothing back."""
