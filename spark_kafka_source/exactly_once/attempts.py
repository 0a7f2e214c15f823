"""The begin of a task's attempt: a transaction under an id that has no open transaction.

Spark runs a stage again if an executor is lost with its shuffle files. The new run counts its
attempts from 0 again. An attempt of the first run may still write, or may be decided. A new begin
under its id would abort its transaction, and only the driver may do that. A decided transaction may
also be open under the id if a user goes on after an error.
"""

from dataclasses import replace

from spark_kafka_source.exactly_once.names import TaskId
from spark_kafka_source.producer import KafkaProducer, TransactionOpenError

# Spark gives up a stage after it has run 4 times (`spark.stage.maxConsecutiveAttempts`), and a
# task after as many attempts. So the numbers of two runs of a stage stay far apart.
_APART = 1_000
_TRIES = 16


def begin_attempt(producer: KafkaProducer, wanted: TaskId, transaction_timeout_ms: int) -> None:
    """Begin an attempt's transaction, under this id or one with a greater attempt number.

    Raises `TransactionOpenError` if a transaction is open under each of these ids.
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
