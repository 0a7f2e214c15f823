"""The driver's side of a write: it decides about a micro-batch, and has its transactions ended.

Each attempt of a task has written its rows in a transaction of its own and left it open. The driver
writes its decision down in a transaction under the control id: which micro-batch, and which
transactions make it up. That fences all other drivers. Then it ends the transactions. A driver that
comes after it reads the decision: the same micro-batch is not written again, but ended.
`docs/exactly-once.md` has what follows from a crash at each step.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto

from spark_kafka_source.admin.transactions import (
    COMMITTED,
    ONGOING,
    TransactionDescription,
    describe_transactions,
    list_transactions,
)
from spark_kafka_source.client import KafkaClient, Lookup, Lookups
from spark_kafka_source.errors import BrokerError, KafkaError
from spark_kafka_source.exactly_once.decision import BatchId, Decision
from spark_kafka_source.exactly_once.decisions import Decisions
from spark_kafka_source.exactly_once.errors import (
    DecidedRowsLostError,
    PartlyCommittedError,
    PrefixInUseError,
    TransactionTimedOutError,
)
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.net import Deadline, Wakeup
from spark_kafka_source.producer import PreparedTransaction, TransactionCoordinator
from spark_kafka_source.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

# What a transaction must still have when the decision is made: ending all takes a while.
_LEAST_LEFT_MS = 10_000
_LEAST_LEFT_SHARE = 0.2
# Brokers end within so long what is out of time: what is open for longer shows clocks that differ.
_CLEANUP_MS = 30_000
_SEEN_WITHIN_MS = 10_000
_FIRST_PAUSE_SECONDS = 0.01


class Step(Enum):
    """What a commit has done by now, for tests that end it there."""

    FENCED = auto()
    READ = auto()
    CHECKED = auto()
    RECORDED = auto()
    DECIDED = auto()
    ONE_ENDED = auto()
    ENDED = auto()
    SWEPT = auto()


class TwoPhaseCommit:
    """Commits and aborts the micro-batches of one prefix. Belongs to one thread at a time."""

    def __init__(
        self,
        client: KafkaClient,
        names: Names,
        reached: Callable[[Step], object] = lambda _: None,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        """`reached` is called after each step, `pause` with seconds."""
        self._client = client
        self._names = names
        self._reached = reached
        self._pause = pause
        self._decisions = Decisions(client, names)
        self._lookups = Lookups(client, Wakeup())

    def close(self) -> None:
        """Close all connections."""
        self._lookups.close()
        self._client.close()

    def commit(
        self, batch: BatchId, winners: Sequence[PreparedTransaction], where: TopicPartition
    ) -> None:
        """Decide that these transactions are the micro-batch, and commit them.

        `where` is a partition that exists, which the decision is kept at. Raises
        `PrefixInUseError`, `TransactionTimedOutError` before a decision, `DecidedRowsLostError`
        after one, `ProducerFencedError` where another driver decides just now, and what brokers
        that are gone lead to.
        """
        if not winners:
            self._finish_if_decided(batch)
            return
        control = self._decisions.fence()
        self._reached(Step.FENCED)
        last = self._decisions.last()
        self._check_owner(last, batch)
        self._reached(Step.READ)
        if last is not None and last.batch.batch_id == batch.batch_id and self._finish(last):
            self.abort_all(winners)
            self.abort_all(self._abandoned(winners))
            self._reached(Step.SWEPT)
            return
        self._check_open(winners)
        abandoned = self._abandoned(winners)
        self._reached(Step.CHECKED)
        decision = Decision(batch, tuple(winners))
        self._decisions.record(control, decision, where)
        self._reached(Step.RECORDED)
        self._decisions.decide(control)
        self._reached(Step.DECIDED)
        self._commit_all(decision)
        self._reached(Step.ENDED)
        # Each by its exact epoch: a late driver must not abort what its successor has begun.
        self.abort_all(abandoned)
        self._reached(Step.SWEPT)

    def abort(self, batch: BatchId, attempts: Iterable[PreparedTransaction]) -> None:
        """Abort what attempts have left, unless the micro-batch was decided with them.

        Spark calls it for a micro-batch whose `commit` raised, too: by then it may be decided.
        """
        self._decisions.fence()
        last = self._decisions.last()
        if last is not None and last.batch == batch:
            logger.info("%s is decided, and is not aborted", batch)
            return
        self.abort_all(attempts)

    def end_all(self, transactions: Sequence[PreparedTransaction]) -> None:
        """Commit these without a decision: those of a write that nobody will run again.

        Raises `TransactionTimedOutError` while nothing is committed, and then
        `PartlyCommittedError`.
        """
        self._check_open(transactions)
        ended = self._end_all(transactions, commit=True)
        lost = [(each.transactional_id, error) for each, error in ended if error is not None]
        if lost:
            raise PartlyCommittedError(lost, len(transactions)) from lost[0][1]
        self._wait_until_seen(transactions)

    def _wait_until_seen(self, transactions: Sequence[PreparedTransaction]) -> None:
        """Wait until readers see what is committed: a user may read at once what was written.

        A coordinator answers as soon as the end is certain, and tells the partitions after that.
        """
        deadline = Deadline.after_ms(_SEEN_WITHIN_MS)
        tries = 0
        left = transactions
        while left and not deadline.expired:
            found = self._described(left)
            left = [each for each, state in found if state is not None and state.is_open]
            tries += 1
            if left:
                self._pause(min(tries * _FIRST_PAUSE_SECONDS, 1.0))
        if left:
            logger.warning("%s transactions are committed, and not seen yet", len(left))

    def abort_all(self, transactions: Iterable[PreparedTransaction]) -> None:
        """Abort these as far as they are open; what cannot be aborted times out."""
        for each, error in self._end_all(list(transactions), commit=False):
            if error is not None:
                logger.info("%s is not aborted: %s", each.transactional_id, error)

    # -- what was decided before -------------------------------------------------------------------

    def _finish_if_decided(self, batch: BatchId) -> None:
        """End a micro-batch that was decided, and of which this run has no rows."""
        last = self._decisions.last()
        self._check_owner(last, batch)
        if last is not None and last.batch.batch_id == batch.batch_id:
            self._decisions.fence()
            self._finish(last)

    def _check_owner(self, last: Decision | None, batch: BatchId) -> None:
        """Raise `PrefixInUseError` where the last decision cannot be before this batch."""
        if last is None:
            if batch.batch_id > 0:
                logger.warning(
                    "%s: nothing was decided before it under %r, or the brokers have forgotten it "
                    "('offsets.retention.minutes'): if it was written before, it is written twice",
                    batch,
                    self._names.prefix,
                )
            return
        found = last.batch
        if found.query_id != batch.query_id:
            reason = (
                "That is another query, or the same with another checkpoint: give each its own. If"
                f" the other one is gone for good, delete the group {self._names.prefix!r}"
            )
        elif found.batch_id > batch.batch_id:
            reason = (
                "The checkpoint was rolled back, or the query runs twice: the rows of these"
                " batches are written already. Give another prefix to write them again"
            )
        elif found.batch_id == batch.batch_id and found.run_id == batch.run_id:
            reason = (
                "This run has written this batch already: give each write of a foreachBatch a"
                " prefix of its own, and do not repeat one that failed"
            )
        else:
            return
        raise PrefixInUseError(self._names.prefix, found, batch, reason)

    def _finish(self, decision: Decision) -> bool:
        """Commit what was decided and is not ended; False where all of it is gone.

        Then nothing of it is seen, and the micro-batch can be decided anew. Raises
        `DecidedRowsLostError` where a part of it is gone.
        """
        found = self._described(decision.winners)
        lost = [each for each, state in found if not _can_be_committed(each, state)]
        # What the brokers have forgotten may have been committed long ago.
        is_seen = any(state is None or _is_committed(each, state) for each, state in found)
        if lost and not is_seen:
            logger.warning("%s was decided and timed out whole; it is decided anew", decision.batch)
            self.abort_all(each for each in decision.winners if each not in lost)
            return False
        self._commit_all(decision, but=lost)
        return True

    # -- transactions ------------------------------------------------------------------------------

    def _check_open(self, winners: Sequence[PreparedTransaction]) -> None:
        """Raise `TransactionTimedOutError` where one is not open, or not for long enough."""
        for each, state in self._described(winners):
            if state is None or state.state != ONGOING or state.producer != each.producer:
                found = "unknown to the brokers" if state is None else f"in state {state.state}"
                reason = "it was open for longer than 'kafka.transaction.timeout.ms', or fenced"
                raise TransactionTimedOutError(f"{each.transactional_id} is {found}: {reason}")
            least_ms = min(_LEAST_LEFT_MS, _LEAST_LEFT_SHARE * state.timeout_ms)
            if -_CLEANUP_MS < state.remaining_ms() < least_ms:
                reason = (
                    f"only {state.remaining_ms()} ms of 'kafka.transaction.timeout.ms' are left"
                )
                raise TransactionTimedOutError(
                    f"{each.transactional_id}: {reason}, of {state.timeout_ms}. Give it more, or "
                    "write less in a micro-batch"
                )

    def _described(
        self, transactions: Sequence[PreparedTransaction]
    ) -> list[tuple[PreparedTransaction, TransactionDescription | None]]:
        ids = [each.transactional_id for each in transactions]
        found = describe_transactions(self._client, ids)
        return [(each, found[each.transactional_id]) for each in transactions]

    def _abandoned(self, winners: Sequence[PreparedTransaction]) -> list[PreparedTransaction]:
        """Return what other attempts have left open under this prefix; readers wait for them.

        Brokers that do not answer, or deny it, cost no more than the timeout of what they know.
        """
        known = {each.transactional_id for each in winners}
        try:
            listed, _ = list_transactions(self._client, [ONGOING])
            ids = [
                each.transactional_id
                for each in listed
                if self._names.is_task_id(each.transactional_id)
                and each.transactional_id not in known
            ]
            found = describe_transactions(self._client, ids)
        except KafkaError as error:
            logger.warning(
                "Open transactions of %r cannot be listed: %s", self._names.prefix, error
            )
            return []
        return [
            PreparedTransaction(each.transactional_id, each.producer)
            for each in found.values()
            if each is not None and each.state == ONGOING
        ]

    def _commit_all(self, decision: Decision, but: Sequence[PreparedTransaction] = ()) -> None:
        """Commit what was decided. Raises `DecidedRowsLostError`, or why brokers do not answer."""
        wanted = [each for each in decision.winners if each not in but]
        found = self._end_all(wanted, commit=True)
        lost = [*but, *(each for each, error in found if isinstance(error, BrokerError))]
        if lost:
            ids = [each.transactional_id for each in lost]
            raise DecidedRowsLostError(decision.batch, ids, len(decision.winners))
        for _, error in found:
            if error is not None:
                raise error

    def _end_all(
        self, transactions: Sequence[PreparedTransaction], *, commit: bool
    ) -> list[tuple[PreparedTransaction, KafkaError | None]]:
        """End these, several at once; return each with what went wrong."""

        def end(client: KafkaClient, each: PreparedTransaction) -> None:
            TransactionCoordinator(client, each.transactional_id).end(each.producer, commit=commit)
            if commit:
                self._reached(Step.ONE_ENDED)

        ended = self._lookups.ask_each(end, transactions)
        return list(zip(transactions, map(_error_of, ended), strict=True))


def _error_of(ended: Lookup[None]) -> KafkaError | None:
    try:
        ended.result()
    except KafkaError as error:
        return error
    return None


def _is_committed(transaction: PreparedTransaction, found: TransactionDescription) -> bool:
    return found.state in COMMITTED and found.producer == transaction.producer


def _can_be_committed(
    transaction: PreparedTransaction, found: TransactionDescription | None
) -> bool:
    """Whether it is open still, or committed."""
    if found is None or found.producer != transaction.producer:
        return False
    return found.state == ONGOING or found.state in COMMITTED
