"""Checks before a decision: of the last one, and of transactions: open, complete, in time."""

from dataclasses import dataclass

from spark_kafka_source.admin.transactions import ONGOING, TransactionDescription
from spark_kafka_source.exactly_once.decision import BatchId, Decision, written_to
from spark_kafka_source.exactly_once.errors import PrefixInUseError, TransactionTimedOutError
from spark_kafka_source.exactly_once.names import PREFIX_OPTION
from spark_kafka_source.producer import PreparedTransaction

MOVED_OPTION = "checkpointMovedFrom"

# The time that a transaction must have left at the decision: to end all of them takes a while.
_LEAST_LEFT_MS = 10_000
_LEAST_LEFT_SHARE = 0.2
# The topic of group offsets, which a transaction may hold, too.
_OFFSETS_TOPIC = "__consumer_offsets"


def check_open(
    transaction: PreparedTransaction, state: TransactionDescription | None
) -> TransactionDescription:
    """Return the open transaction's state. Raises `TransactionTimedOutError` if it has changed."""
    name = transaction.transactional_id
    if state is None or state.state != ONGOING or state.producer != transaction.producer:
        reason = (
            "it was open for longer than 'kafka.transaction.timeout.ms', or fenced, or aborted. If"
            " foreachBatch writes in several threads at once, write one after the other"
        )
        expected = f"not open with epoch {transaction.producer.epoch}"
        raise TransactionTimedOutError(f"{name} is {state_text(state)}, {expected}: {reason}")
    written = len([where for where in state.topic_partitions if where.topic != _OFFSETS_TOPIC])
    if transaction.partition_count and written != transaction.partition_count:
        raise TransactionTimedOutError(
            f"{name} has {written} of the {transaction.partition_count} partitions that were "
            "written to: another process has aborted it in the middle of its rows"
        )
    return state


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The location of a query's checkpoint, and the one from which it was moved, if it was."""

    location: str | None = None
    """None if the query's options do not give it."""
    moved_from: str | None = None


def check_owner(prefix: str, decided: Decision, batch: BatchId, checkpoint: Checkpoint) -> None:
    """Raise `PrefixInUseError` if a last decision cannot come before this micro-batch."""
    if decided.batch.query_id != batch.query_id:
        reason = (
            "That is another query, or the same with another checkpoint: give each its own. If"
            f" the other one is gone for good, delete the group {prefix!r}"
        )
    elif _is_other(decided.checkpoint, checkpoint):
        reason = (
            f"Its checkpoint was at {decided.checkpoint!r}, and this one is at"
            f" {checkpoint.location!r}: a copy? Two queries that begin with one checkpoint would"
            f" drop each other's rows: give the copy '{PREFIX_OPTION}'. If the checkpoint was"
            f" moved, and nobody uses the old one, set '{MOVED_OPTION}' to"
            f" {decided.checkpoint!r}"
        )
    elif decided.batch.batch_id > batch.batch_id:
        reason = (
            "The checkpoint was rolled back, or the query runs twice: the rows of these"
            " batches are written already. Put back the checkpoint that was in use last: each row"
            " is then there once. Another prefix writes every batch since that copy again: their"
            " rows are then there twice"
        )
    else:
        return
    raise PrefixInUseError(prefix, decided.batch, batch, reason)


def _is_other(decided_at: str | None, checkpoint: Checkpoint) -> bool:
    if None in (decided_at, checkpoint.location):
        return False
    return decided_at not in (checkpoint.location, checkpoint.moved_from)


def check_not_written(prefix: str, decided: BatchId, batch: BatchId, write: str) -> None:
    """Raise `PrefixInUseError` if this run has decided about the same write already."""
    if decided == batch:
        reason = (
            f"This run has written this batch to {written_to(write)} already. Write all rows of"
            " it in one write ('union'), or give the second write a prefix of its own. Do not"
            " repeat a write that failed"
        )
        raise PrefixInUseError(prefix, decided, batch, reason)


def check_place(prefix: str, kept: Decision, batch: BatchId, write: str) -> None:
    """Raise `PrefixInUseError` if a decision would replace another write's.

    That one tells a replay of its write, as long as both are about the same micro-batch.
    """
    if kept.write == write or kept.batch.batch_id != batch.batch_id:
        return
    reason = (
        f"That is the write to {written_to(kept.write)}, and this one is to"
        f" {written_to(write)}. Both have rows for the same topic, and only one of them can be"
        " remembered there: give this write a prefix of its own"
    )
    raise PrefixInUseError(prefix, kept.batch, batch, reason)


def state_text(state: TransactionDescription | None) -> str:
    """Return the state of a transactional id, for an error."""
    if state is None:
        return "unknown to the brokers"
    return f"in state {state.state} with epoch {state.producer.epoch}"


def is_soon_over(state: TransactionDescription, left_ms: int) -> bool:
    """Whether a transaction has too little time left for a decision and all ends."""
    return left_ms < _least_ms(state)


def check_left(state: TransactionDescription, left_ms: int) -> None:
    """Raise `TransactionTimedOutError` if a transaction has too little time left."""
    if is_soon_over(state, left_ms):
        raise TransactionTimedOutError(
            f"{state.transactional_id}: only {left_ms} ms of 'kafka.transaction.timeout.ms' are "
            f"left, of {state.timeout_ms}. Give it more, or write less in a micro-batch"
        )


def _least_ms(state: TransactionDescription) -> float:
    return min(_LEAST_LEFT_MS, _LEAST_LEFT_SHARE * state.timeout_ms)
