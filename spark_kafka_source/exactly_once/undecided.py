"""The end of a write without a decision: a plain batch, which Spark does not run again."""

import logging
from collections.abc import Sequence

from spark_kafka_source.admin.transactions import Begun
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once.checks import check_left, open_transaction
from spark_kafka_source.exactly_once.endings import Transactions
from spark_kafka_source.exactly_once.errors import PartlyCommittedError
from spark_kafka_source.net import Deadline, pause
from spark_kafka_source.producer import PreparedTransaction

logger = logging.getLogger(__name__)

# Brokers end an expired transaction within this time. One that is open longer means that the
# clocks differ.
_CLEANUP_MS = 30_000
_SEEN_WITHIN_MS = 30_000
_FIRST_PAUSE_SECONDS = 0.02


async def end_all(transactions: Transactions, prepared: Sequence[PreparedTransaction]) -> None:
    """Commit these without a decision: those of a write that will not run again.

    Raises `TransactionTimedOutError` before anything is committed, and `PartlyCommittedError`
    after that.
    """
    begun = {
        each.transactional_id: Begun(each.producer, generation=transactions.generation)
        for each in prepared
    }
    found = await transactions.described(begun, begun)
    for each in prepared:
        state = open_transaction(each, found[each.transactional_id])
        left_ms = state.remaining_ms()
        if left_ms > -_CLEANUP_MS:
            check_left(state, left_ms)
    answers = await transactions.end([each[:2] for each in prepared], commit=True)
    failed = [
        (each.transactional_id, answer)
        for each, answer in zip(prepared, answers, strict=True)
        if isinstance(answer, KafkaError)
    ]
    if failed:
        raise PartlyCommittedError(failed, len(prepared)) from failed[0][1]
    await _wait_until_seen(transactions, begun)


async def _wait_until_seen(transactions: Transactions, left: dict[str, Begun]) -> None:
    """Wait until readers see the committed rows: a user may read them at once.

    A coordinator answers as soon as the end is certain, and tells the partitions after that.
    """
    deadline = Deadline.after_ms(_SEEN_WITHIN_MS)
    tries = 0
    while left and not deadline.expired:
        found = await transactions.described(left, left)
        left = {each: left[each] for each, state in found.items() if state and state.is_open}
        tries += 1
        if left:
            await pause(min(tries * _FIRST_PAUSE_SECONDS, 1.0))
    if left:
        logger.warning("%s transactions are committed, but not visible yet", len(left))
