"""What goes wrong with a micro-batch that is to be written exactly once."""

from collections.abc import Sequence

from spark_kafka_source.errors import KafkaError, LocalError, RemoteError
from spark_kafka_source.exactly_once.decision import BatchId
from spark_kafka_source.exactly_once.names import PREFIX_OPTION, TaskId


class PrefixInUseError(LocalError):
    """The decisions under a prefix are of another query, or do not fit this one's checkpoint."""

    def __init__(self, prefix: str, found: BatchId, wanted: BatchId, reason: str) -> None:
        super().__init__(prefix, found, wanted, reason)
        self.prefix, self.found, self.wanted, self.reason = prefix, found, wanted, reason

    def _text(self) -> str:
        return (
            f"Option '{PREFIX_OPTION}': {self.wanted} cannot be written under {self.prefix!r}, "
            f"since the last that was decided there is {self.found}. {self.reason}"
        )


class TransactionTimedOutError(RemoteError):
    """A task's transaction ended before the decision. Nothing is lost: the batch is run anew."""


class DecidedRowsLostError(RemoteError):
    """Rows of a micro-batch are lost that was decided: their transactions timed out before its end.

    `lost` are the transactional ids of those tasks. The rows of all others are there, once.
    """

    def __init__(self, batch: BatchId, lost: Sequence[str], total: int) -> None:
        super().__init__(batch, tuple(lost), total)
        self.batch, self.lost, self.total = batch, tuple(lost), total

    def _text(self) -> str:
        tasks = ", ".join(_named(each) for each in self.lost[:_MOST_NAMED])
        more = len(self.lost) - _MOST_NAMED
        tasks += f" and {more} more" if more > 0 else ""
        return (
            f"{self.batch} was decided, and then stopped for longer than "
            "'kafka.transaction.timeout.ms': the brokers have aborted or forgotten "
            f"{len(self.lost)} of its {self.total} transactions: {tasks}. The rows of the other "
            "tasks are written. Write the rows of these tasks by hand (a batch over the same "
            "offsets, without exactly-once), or accept the loss; then go on with another "
            f"'{PREFIX_OPTION}', and give the transactions more time"
        )


class PartlyCommittedError(RemoteError):
    """A batch that nobody runs again is committed in part: some transactions could not be ended."""

    def __init__(self, failed: Sequence[tuple[str, KafkaError]], total: int) -> None:
        super().__init__(tuple(failed), total)
        self.failed, self.total = tuple(failed), total

    def _text(self) -> str:
        tasks = ", ".join(_named(each) for each, _ in self.failed[:_MOST_NAMED])
        return (
            f"{self.total - len(self.failed)} of {self.total} transactions are committed. Of these "
            f"it is not known, or they are aborted: {tasks}; the first because of: "
            f"{self.failed[0][1]}. 'spark-kafka-source transactions describe' shows how they ended"
        )


_MOST_NAMED = 20


def _named(transactional_id: str) -> str:
    found = TaskId.parse(transactional_id)
    return transactional_id if found is None else f"task {found.task} (attempt {found.attempt})"
