"""One attempt of one task to write its rows, and what it tells the driver at its end."""

from dataclasses import dataclass

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from spark_kafka_source.producer import PreparedTransaction

_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"
_RUN_ID = "spark.jobGroup.id"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A try of a task, the `number`th from 0 on, to write `partition` of a DataFrame.

    The query is None in a plain batch. Within `foreachBatch` it is that of the stream. The same
    micro-batch that is run once more, after a restart, has the same `query_id` and `batch_id`.
    """

    partition: int
    number: int
    query_id: str | None = None
    run_id: str | None = None
    """Another one each time that the query is started."""
    batch_id: int | None = None

    @classmethod
    def current(cls) -> "Attempt":
        """That of the task in which this is called; outside of a task the first of partition 0."""
        context = TaskContext.get()
        if context is None:
            return cls(0, 0)
        query_id = context.getLocalProperty(_QUERY_ID)
        batch_id = context.getLocalProperty(_BATCH_ID)
        return cls(
            context.partitionId(),
            context.attemptNumber(),
            query_id,
            # The job group of a plain batch is the user's.
            context.getLocalProperty(_RUN_ID) if query_id is not None else None,
            int(batch_id) if batch_id is not None else None,
        )


@dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):
    """What one attempt has written: all of its rows, and the brokers have them."""

    attempt: Attempt
    row_count: int
    byte_count: int
    """Of the rows as Arrow has them, before they were compressed."""
    topic: str | None = None
    """One that it has written to, if it had a row."""
    prepared: PreparedTransaction | None = None
    """The transaction that the rows are in, where they are to be written exactly once."""
