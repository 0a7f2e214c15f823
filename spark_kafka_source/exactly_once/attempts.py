"""The beginning of a task's attempt: a transaction under an id that nobody else has one open under.

Spark counts the attempts of a task from 0 again where it runs a stage once more, and while some of
the first run go on. By InitProducerId one would abort another's transaction, which may be decided
by then. So an id under which one is open is left alone, whoever has begun it.
"""

from dataclasses import replace

from spark_kafka_source.exactly_once.names import TaskId
from spark_kafka_source.producer import KafkaProducer, TransactionOpenError

# Spark's own numbers are below `spark.task.maxFailures`.
_APART = 1_000
_TRIES = 8


def begin_attempt(producer: KafkaProducer, wanted: TaskId, transaction_timeout_ms: int) -> None:
    """Begin the transaction of an attempt, under this id or one with a greater number.

    Raises `TransactionOpenError` where all of them are in use.
    """
    for added in range(0, _TRIES * _APART, _APART):
        task_id = replace(wanted, attempt=wanted.attempt + added)
        try:
            producer.begin_as(str(task_id), transaction_timeout_ms)
        except TransactionOpenError as error:
            refused = error
        else:
            return
    raise refused
