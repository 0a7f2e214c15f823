"""One attempt of one task to write its rows, and its message to the driver."""

from dataclasses import dataclass, field

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from spark_kafka_source.exactly_once import Seen
from spark_kafka_source.producer import Generation, PreparedTransaction

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
    fingerprint: int | None = None
    """The checksum of the rows' keys and values, if replays are compared by it."""
    seen: Seen = field(default_factory=Seen)
    """What the task's process has seen of the prefix before its first transaction of the run."""
    generation: Generation = Generation.FIRST
    """The generation of the transaction."""
