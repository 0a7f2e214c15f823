"""Errors of transactions, told apart by the remedy, as in Kafka's producer.

KIP-98, KIP-360, KIP-588 and KIP-1050: a fenced producer cannot go on. A failed transaction can be
aborted. Any other error without a remedy also ends the producer.
"""

from collections.abc import Mapping, Sequence

from spark_kafka_source.errors import BrokerError, ErrorCode, LocalError


class ProducerFencedError(BrokerError):
    """This producer cannot go on: its transactional id has a newer epoch.

    Another producer has begun with the id, or the broker aborted a transaction that was open for
    too long.
    """


class TransactionAbortableError(BrokerError):
    """This transaction has failed, but the producer has not: abort it, and begin another."""


class TransactionStateError(LocalError):
    """A call that does not fit the state of the producer's transaction."""


class TransactionAbortedError(LocalError):
    """A record was not sent because its transaction was aborted."""


_KINDS: Mapping[str, type[BrokerError]] = {
    # Brokers before 2.7 send the first code here. In Produce it means something else.
    "INVALID_PRODUCER_EPOCH": ProducerFencedError,
    "PRODUCER_FENCED": ProducerFencedError,
    "TRANSACTION_ABORTABLE": TransactionAbortableError,
    "UNKNOWN_PRODUCER_ID": TransactionAbortableError,
    # Errors of partitions that were added to the transaction.
    "OPERATION_NOT_ATTEMPTED": TransactionAbortableError,
    "TOPIC_AUTHORIZATION_FAILED": TransactionAbortableError,
    # Errors of a group's offsets. For a metadata text that is too long, Java ends the producer.
    "FENCED_INSTANCE_ID": TransactionAbortableError,
    "GROUP_AUTHORIZATION_FAILED": TransactionAbortableError,
    "ILLEGAL_GENERATION": TransactionAbortableError,
    "OFFSET_METADATA_TOO_LARGE": TransactionAbortableError,
    "STALE_MEMBER_EPOCH": TransactionAbortableError,
    "UNKNOWN_MEMBER_ID": TransactionAbortableError,
}

_REBALANCED = "the group has since given the partitions to other members; abort, they read again"
_FENCED = (
    "another producer has begun with this 'kafka.transactional.id' since, or the transaction was "
    "open for longer than 'kafka.transaction.timeout.ms'"
)
_ADVICE: Mapping[str, str] = {
    "INVALID_PRODUCER_EPOCH": _FENCED,
    "PRODUCER_FENCED": _FENCED,
    "INVALID_TXN_STATE": "it has ended already, the other way or because it was open for longer "
    "than 'kafka.transaction.timeout.ms', or there is nothing in it",
    "INVALID_PRODUCER_ID_MAPPING": "the cluster knows the 'kafka.transactional.id' by another "
    "producer id, or has forgotten it, see the broker's 'transactional.id.expiration.ms'",
    "INVALID_TRANSACTION_TIMEOUT": "'kafka.transaction.timeout.ms' is not between 1 and the "
    "broker's 'transaction.max.timeout.ms'",
    "ILLEGAL_GENERATION": _REBALANCED,
    "STALE_MEMBER_EPOCH": _REBALANCED,
    "UNKNOWN_MEMBER_ID": _REBALANCED,
}


def transaction_error(error: BrokerError) -> BrokerError:
    """Return a coordinator's error as the transaction's error, with advice for the user.

    Do not use it for errors of Produce. There an abort can cause INVALID_PRODUCER_EPOCH, and only
    the coordinator knows whether the producer is fenced.
    """
    name = error.error.name
    kind = _KINDS.get(name, BrokerError)
    return kind(error.error, error.what, error.detail or _ADVICE.get(name))


class UnsendableRecordError(LocalError):
    """A record that cannot be written because of its own content. No other record is lost."""

    def __init__(self, topic: str, field: str, reason: str) -> None:
        super().__init__(topic, field, reason)
        self.topic, self.field, self.reason = topic, field, reason

    def _text(self) -> str:
        return f"A record for topic {self.topic!r}: its {self.field} cannot be sent: {self.reason}"


OF_RECORDS = frozenset(
    {"INVALID_RECORD", "INVALID_TIMESTAMP", "MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"}
)
"""The errors by which a leader refuses records for their own content."""


class RefusedRowsError(BrokerError):
    """Rows that a leader refuses for their own content. No other row is lost.

    `rows` are all rows that are known to have the fault, by their place in the sent columns.
    """

    def __init__(
        self, error: ErrorCode, what: str, detail: str | None, rows: Sequence[int]
    ) -> None:
        super().__init__(error, what, detail)
        self.rows = tuple(rows)
        self.args = (error, what, detail, self.rows)

    @property
    def row(self) -> int:
        """The first of the rows."""
        return self.rows[0]

    def counted_from(self, first_row: int) -> "RefusedRowsError":
        """Return the error with row numbers for a caller that sent so many rows before."""
        rows = [first_row + row for row in self.rows]
        return RefusedRowsError(self.error, self.what, self.detail, rows)

    def _text(self) -> str:
        others = f" (and {len(self.rows) - 1} more rows)" if len(self.rows) > 1 else ""
        return f"Row {self.row}{others}: {super()._text()}"
