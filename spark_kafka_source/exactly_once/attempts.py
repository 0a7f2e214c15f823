"""The beginning of a task's attempt: a transaction under an id that nobody has one open under.

A stage that Spark runs again, since an executor was lost with its shuffle files, counts its
attempts from 0 again. One of the first run may still write, or be decided by now: to begin under
its id would abort its transaction, which the driver alone may. So may one be open that is decided,
where a user goes on after an error.
"""

from dataclasses import replace

from spark_kafka_source.exactly_once.names import TaskId
from spark_kafka_source.producer import KafkaProducer, TransactionOpenError

# Spark gives a stage up that is run again 4 times (`spark.stage.maxConsecutiveAttempts`), and a
# task after as many attempts: so the numbers of two runs of a stage are far apart.
_APART = 1_000
_TRIES = 16


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
