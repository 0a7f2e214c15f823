"""The end of a write without a decision: a plain batch, which Spark does not run again."""

import logging
from collections.abc import Callable, Sequence

from spark_kafka_source.exactly_once.checks import check_left, open_transaction
from spark_kafka_source.exactly_once.endings import Transactions, begun
from spark_kafka_source.exactly_once.errors import PartlyCommittedError
from spark_kafka_source.net import Deadline
from spark_kafka_source.producer import PreparedTransaction

logger = logging.getLogger(__name__)

# Brokers end an expired transaction within this time. One that is open longer means that the
# clocks differ.
_CLEANUP_MS = 30_000
_SEEN_WITHIN_MS = 30_000
_FIRST_PAUSE_SECONDS = 0.02


def end_all(
    transactions: Transactions,
    prepared: Sequence[PreparedTransaction],
    pause: Callable[[float], object],
) -> None:
    """Commit all of these, once all are known to be open. See `TwoPhaseCommit.end_all`."""
    found = transactions.described(begun(prepared))
    for each in prepared:
        state = open_transaction(each, found[each.transactional_id])
        left_ms = state.remaining_ms()
        if left_ms > -_CLEANUP_MS:
            check_left(state, left_ms)
    ended = zip(prepared, transactions.end(prepared, commit=True), strict=True)
    failed = [(each.transactional_id, error) for each, error in ended if error is not None]
    if failed:
        raise PartlyCommittedError(failed, len(prepared)) from failed[0][1]
    _wait_until_seen(transactions, prepared, pause)


def _wait_until_seen(
    transactions: Transactions,
    prepared: Sequence[PreparedTransaction],
    pause: Callable[[float], object],
) -> None:
    """Wait until readers see the committed rows: a user may read them at once.

    A coordinator answers as soon as the end is certain, and tells the partitions after that.
    """
    deadline = Deadline.after_ms(_SEEN_WITHIN_MS)
    tries = 0
    left = begun(prepared)
    while left and not deadline.expired:
        found = transactions.described(left)
        left = {each: left[each] for each, state in found.items() if state and state.is_open}
        tries += 1
        if left:
            pause(min(tries * _FIRST_PAUSE_SECONDS, 1.0))
    if left:
        logger.warning("%s transactions are committed, but not visible yet", len(left))
