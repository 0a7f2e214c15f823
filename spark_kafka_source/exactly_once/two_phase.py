"""The driver's side of a write: it decides about a micro-batch, and ends its transactions.

Each attempt of a task has written its rows in a separate transaction, and left it open. The driver
writes its decision in a transaction under the control id: the micro-batch, and the transactions
that make it up. That fences all other drivers. Then the driver ends the transactions. A later
driver reads the decision: it does not write the same micro-batch again, but ends it.
`docs/exactly-once.md` says what follows from a crash at each step.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import Enum, auto

from spark_kafka_source.admin.transactions import ONGOING
from spark_kafka_source.chance import CHANCE
from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once.checks import (
    check_left,
    check_owner,
    open_transaction,
    stands,
)
from spark_kafka_source.exactly_once.decision import (
    BatchId,
    Content,
    Decision,
    Winner,
    part_count,
)
from spark_kafka_source.exactly_once.decisions import Decisions, existing
from spark_kafka_source.exactly_once.endings import Outcome, Transactions, begun, is_over
from spark_kafka_source.exactly_once.errors import (
    DecidedRowsLostError,
    NotYetCommittedError,
    OtherDriverError,
    TransactionTimedOutError,
)
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.exactly_once.replays import Caution
from spark_kafka_source.exactly_once.undecided import end_all
from spark_kafka_source.exactly_once.unsettled import UNSETTLED
from spark_kafka_source.net import Deadline
from spark_kafka_source.producer import PreparedTransaction, ProducerId
from spark_kafka_source.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

_USUAL = Caution()


class Step(Enum):
    """The steps of a commit, for tests that end it there."""

    FENCED = auto()
    READ = auto()
    CHECKED = auto()
    RECORDED = auto()
    DECIDED = auto()
    ONE_ENDED = auto()
    ENDED = auto()
    SWEPT = auto()


class TwoPhaseCommit:
    """Commit and abort the micro-batches of one prefix. One thread may use it at a time."""

    def __init__(
        self,
        client: KafkaClient,
        names: Names,
        reached: Callable[[Step], object] = lambda _: None,
        pause: Callable[[float], object] = time.sleep,
        caution: Caution = _USUAL,
    ) -> None:
        """`reached` is called after each step. `pause` is called with seconds."""
        self._client = client
        self._names = names
        self._caution = caution
        self._reached = reached
        self._pause = pause
        self._decisions = Decisions(client, names)
        self._transactions = Transactions(client, names)
        self._ended: BatchId | None = None
        """The last micro-batch whose transactions this object has all seen committed."""
        self._own: tuple[ProducerId | None, Decision] | None = None
        """What `fence` returns next if no other driver comes, and this object's last decision."""

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def commit(
        self,
        batch: BatchId,
        winners: Sequence[PreparedTransaction],
        where: TopicPartition | None,
        content: Content | None = None,
    ) -> None:
        """Decide that these transactions are the micro-batch, and commit them.

        `where` is an existing partition, at whose offset the decision is kept. It is None if there
        are no winners. `content` is the amount of the winners' rows; None if it is not known.
        Before the decision, raises `PrefixInUseError`, `PrefixIsGroupError`, `ReplayDiffersError`,
        `DoubtfulReplayError`, `TransactionTimedOutError` and `OtherDriverError`. After the
        decision, raises `NotYetCommittedError` and `DecidedRowsLostError`. At any time, raises the
        errors of brokers that cannot be reached.
        """
        control = self._client.run(self._decisions.fence())
        self._reached(Step.FENCED)
        control, last = self._last(control, where)
        if last is not None and where is not None and last.batch == batch == self._ended:
            # This write is refused. But its tasks have begun new transactions under the ids, so a
            # later driver could not tell how the decided ones ended.
            self._replace(control, last.without_winners(), where)
        if last is not None:
            check_owner(self._names.prefix, last.batch, batch)
        elif winners:
            self._check_first(batch)
        self._reached(Step.READ)
        is_replay = last is not None and last.batch.batch_id == batch.batch_id
        if last is not None and not is_replay:
            self._end_earlier(last)
        if last is not None and is_replay and self._finish(last):
            self._reached(Step.ENDED)
            self._caution.compare(self._names, last, batch, content)
            if winners and where is not None:
                self._drop(control, last, batch, winners, where)
        elif winners:
            if where is None:
                raise ValueError("a decision needs a partition whose offset keeps it")
            number = last.number + 1 if last is not None and is_replay else 0
            self._decide(control, Decision(batch, (), number, content), winners, where)
        self._reached(Step.SWEPT)

    def abort(
        self,
        batch: BatchId,
        attempts: Sequence[PreparedTransaction],
        where: TopicPartition | None = None,
    ) -> None:
        """Abort the transactions of attempts, unless the micro-batch was decided with them.

        Spark also calls it for a micro-batch whose `commit` raised. That batch may be decided; then
        it is committed, if the brokers can be reached. `where` is as for `commit`.
        """
        if where is not None:
            where = self._client.run(
                existing(self._client, [where])
            )  # No broker takes an offset of a deleted topic.
        last = self._fence_and_read(where)
        # Keep earlier decided transactions, too: a user may go on after an error, and they be open.
        kept = {each.transaction[:2] for each in last.winners} if last else set()
        self._transactions.abort(
            each for each in attempts if (each.transactional_id, each.producer) not in kept
        )
        if last is not None and last.batch == batch and last.batch != self._ended:
            try:
                self._finish(last)
            except KafkaError as error:
                logger.warning("%s is decided, and not ended: %s", batch, error)

    def _fence_and_read(self, where: TopicPartition | None) -> Decision | None:
        """Return the last decision, for a driver that decides nothing more.

        Another driver may fence this one meanwhile. Then this one fences that one, which runs its
        micro-batch again. Two that read at once would fence each other by turns, for as long as
        their pauses are shorter than a read. So a pause is up to twice the time gone so far.
        """
        began_seconds = time.monotonic()
        deadline = Deadline.after_ms(self._client.config.default_api_timeout_ms)
        while True:
            try:
                return self._last(self._client.run(self._decisions.fence()), where)[1]
            except OtherDriverError:
                if deadline.expired:
                    raise
            pause_seconds = CHANCE.uniform(0, 2 * (time.monotonic() - began_seconds))
            self._pause(min(pause_seconds, deadline.remaining_seconds()))

    # -- in the first task of a process ------------------------------------------------------------

    def settle(self, batch: BatchId) -> None:
        """End what was decided before, as long as no task of `batch` has begun under its ids.

        Anybody may commit a decided transaction. If an earlier run has decided about this
        micro-batch, and the replay's rows take long, it would time out before this run's driver
        commits it. If the first of them cannot be committed, all others are left to the driver,
        which tells what is lost.

        Raises `DecidedRowsLostError` if this run itself has lost rows of an earlier micro-batch. A
        driver whose process is new cannot tell that after this micro-batch has used the ids.
        """
        last = self._client.run(self._decisions.last(require_stable=False))
        if last is None or last.batch == batch or last.batch.query_id != batch.query_id:
            return
        is_of_this_run = last.batch.run_id == batch.run_id
        if not is_of_this_run and last.batch.batch_id != batch.batch_id:
            return
        outcomes = self._transactions.outcomes(last.winners)
        if is_of_this_run:
            _check_not_lost(last, outcomes)
        found = set(outcomes.values())
        if Outcome.OPEN not in found or not found <= {Outcome.OPEN, Outcome.COMMITTED}:
            return
        logger.info("%s was not ended; it is committed before tasks write", last.batch)
        wanted = [each.transaction for each in self._transactions.by_urgency(last.winners)]
        for some in (wanted[:1], wanted[1:]):
            if any(self._end(some)):
                return

    # -- without a decision ------------------------------------------------------------------------

    def end_all(self, transactions: Sequence[PreparedTransaction]) -> None:
        """Commit these without a decision: those of a write that will not run again.

        Raises `TransactionTimedOutError` before anything is committed, and `PartlyCommittedError`
        after that.
        """
        end_all(self._transactions, transactions, self._pause)

    def abort_all(self, transactions: Sequence[PreparedTransaction]) -> None:
        """Abort the open ones of these transactions. One that cannot be aborted times out."""
        self._transactions.abort(transactions)

    # -- earlier decisions -------------------------------------------------------------------------

    def _last(
        self, control: ProducerId, where: TopicPartition | None
    ) -> tuple[ProducerId, Decision | None]:
        """Return the id and epoch to go on with, and the last decision.

        A former coordinator of the group is not believed, unless it tells this object's own
        decision, and no other driver has come since.
        """
        last = self._client.run(self._decisions.last(where))
        if where is None or (control, last) == self._own:
            return control, last
        control, kept = self._client.run(self._decisions.confirmed(control, where))
        return control, None if kept is None else kept.decision

    def _check_first(self, batch: BatchId) -> None:
        """Warn if this micro-batch may be written already, and its decision is gone.

        Nothing comes before micro-batch 0: it is doubtful only if another run has committed rows.
        """
        prefix = self._names.prefix
        forgotten = "the brokers have forgotten it ('offsets.retention.minutes')"
        if batch.batch_id > 0:
            found = f"nothing was decided before it under {prefix!r}, or {forgotten}"
        elif self._transactions.has_committed(but_run=batch.run_id):
            found = f"another run has committed rows under {prefix!r}, but nothing is decided there"
        else:
            return
        if_so = "If it was written before, its rows are written twice"
        self._caution.doubt(self._names, f"{batch}: {found}. {if_so}")

    def _finish(self, decision: Decision) -> bool:
        """Commit the decided transactions that are open. Return False if all are aborted.

        If all are aborted, no reader has seen the batch, and it can be decided again. Raises
        `DecidedRowsLostError` if a part of the batch is lost.
        """
        outcomes = self._outcomes_by_first(decision)
        if _are_aborted(outcomes):
            logger.warning(
                "%s was decided, but all of it timed out; it is decided again", decision.batch
            )
            return False
        self._commit_all(decision, outcomes)
        return True

    def _replace(self, control: ProducerId, decision: Decision, where: TopicPartition) -> None:
        """Replace a decision whose transactions are all committed by one that has none to end."""
        deadline = Deadline.after_ms(self._client.config.default_api_timeout_ms)
        self._client.run(self._decisions.begin(control, 1))
        self._client.run(self._decisions.record(control, decision, where, deadline))
        self._client.run(self._decisions.decide(control, deadline))
        self._own = control.bumped(), decision

    def _outcomes_by_first(self, decision: Decision) -> dict[Winner, Outcome]:
        """End the transaction with the least time left, alone: its fate is the fate of all.

        If it is aborted, no reader has seen the batch, and the others are aborted, too. Return the
        outcomes of all. Raises `NotYetCommittedError`.
        """
        outcomes = self._transactions.outcomes(decision.winners)
        if set(outcomes.values()) == {Outcome.OPEN}:
            first = self._transactions.by_urgency(decision.winners)[:1]
            errors = self._end([each.transaction for each in first])
            outcomes = self._transactions.outcomes(decision.winners)
            for error in errors:
                if error is not None and not is_over(error):
                    names = [each.transactional_id for each in decision.winners]
                    raise NotYetCommittedError(decision.batch, names, len(names), error) from error
        if set(outcomes.values()) == {Outcome.ABORTED, Outcome.OPEN}:
            outcomes = self._undone(decision, outcomes)
        return outcomes

    def _undone(self, decision: Decision, outcomes: dict[Winner, Outcome]) -> dict[Winner, Outcome]:
        """Abort the rest of a decided batch. Return the outcomes of all its transactions.

        The driver that decided it may still run, and commit it just now.
        """
        left = [each.transaction for each, found in outcomes.items() if found is Outcome.OPEN]
        errors = self._transactions.end(left, commit=False)
        for error in errors:
            if error is not None and not is_over(error):
                raise error
        return self._transactions.outcomes(decision.winners)

    def _end_earlier(self, last: Decision) -> None:
        """Commit what is open of the earlier micro-batch: its driver had an error and went on.

        Raises `DecidedRowsLostError` if rows of it are lost. If new transactions have begun under
        its ids, brokers no longer tell how it ended. Then it counts as committed, unless this
        process itself has decided it and not seen its end.
        """
        if last.batch == self._ended:
            return
        outcomes = self._transactions.outcomes(last.winners)
        if not UNSETTLED.has(self._client, self._names, last):
            outcomes = {
                each: Outcome.COMMITTED if found is Outcome.UNKNOWN else found
                for each, found in outcomes.items()
            }
        if Outcome.OPEN in outcomes.values():
            logger.warning("%s was not ended; its transactions are committed now", last.batch)
        self._commit_all(last, outcomes, runs_again=False)

    def _has_ended(self, batch: BatchId) -> None:
        self._ended = batch
        UNSETTLED.remove(self._client, self._names)

    # -- transactions ------------------------------------------------------------------------------

    def _decide(
        self,
        control: ProducerId,
        wanted: Decision,
        winners: Sequence[PreparedTransaction],
        where: TopicPartition,
    ) -> None:
        """Make a decision, which has no winners yet, and commit its winners."""
        # List them before the decision, and abort them after it. No other driver was there until
        # then, so none has decided on them.
        abandoned = self._transactions.abandoned(winners)
        try:
            decision, safe_until = self._recorded(control, wanted, winners, where)
        except TransactionTimedOutError:
            with suppress(KafkaError):
                self._client.run(self._decisions.undo(control))
            raise
        UNSETTLED.add(self._client, self._names, decision)
        self._client.run(self._decisions.decide(control, self._soon(safe_until)))
        self._own = control.bumped(), decision
        self._reached(Step.DECIDED)
        # After a standstill some transactions may be out of time.
        outcomes = self._outcomes_by_first(decision) if safe_until.expired else None
        if outcomes is not None and _are_aborted(outcomes):
            raise TransactionTimedOutError(
                f"{decision.batch} was decided too late: the driver stood still, and its "
                "transactions have timed out. No reader has seen a row of it. Start the query "
                "again: it writes the batch again"
            )
        self._commit_all(decision, outcomes)
        self._reached(Step.ENDED)
        self._transactions.abort(abandoned)

    def _recorded(
        self,
        control: ProducerId,
        wanted: Decision,
        winners: Sequence[PreparedTransaction],
        where: TopicPartition,
    ) -> tuple[Decision, Deadline]:
        """Check the winners and write the decision. It must be made and done by the deadline.

        Raises `TransactionTimedOutError` if one winner is not open, or if the time is up.
        """
        began_seconds = time.monotonic()
        self._client.run(self._decisions.begin(control, part_count(len(winners))))
        checked, safe_until = self._checked(control, winners, began_seconds)
        self._reached(Step.CHECKED)
        decision = replace(wanted, winners=tuple(checked))
        _check_time(decision, safe_until)
        self._client.run(self._decisions.record(control, decision, where, self._soon(safe_until)))
        self._reached(Step.RECORDED)
        _check_time(decision, safe_until)
        return decision, safe_until

    def _soon(self, deadline: Deadline) -> Deadline:
        return deadline.within_ms(self._client.config.default_api_timeout_ms)

    def _checked(
        self, control: ProducerId, winners: Sequence[PreparedTransaction], began_seconds: float
    ) -> tuple[list[Winner], Deadline]:
        """Return the winners, and half of the time for which all of them stay open.

        The other half is for the ends. The time counts from the check, whatever happens after it.

        Raises `TransactionTimedOutError` if one is not open, or not for long enough. The brokers'
        clock counts: the start of the control transaction tells the time.
        """
        control_id = self._names.control_id
        found = self._transactions.described({control_id: control, **begun(winners)})
        own = found[control_id]
        if own is None or own.state != ONGOING or own.producer != control:
            raise OtherDriverError(self._names.prefix, f"{control_id} is {stands(own)}")
        now_seconds = time.monotonic()
        passed_ms = int((now_seconds - began_seconds) * 1000)
        states = [open_transaction(each, found[each.transactional_id]) for each in winners]
        left_ms = [each.remaining_ms(own.started_at_ms + passed_ms) for each in states]
        for state, left in zip(states, left_ms, strict=True):
            check_left(state, left)
        checked = [
            Winner(each.transactional_id, each.producer, state.started_at_ms)
            for each, state in zip(winners, states, strict=True)
        ]
        half_ms = min(left_ms) // 2
        return checked, Deadline(now_seconds + half_ms / 1000, half_ms)

    def _drop(
        self,
        control: ProducerId,
        last: Decision,
        batch: BatchId,
        winners: Sequence[PreparedTransaction],
        where: TopicPartition,
    ) -> None:
        """Abort this run's transactions of a micro-batch that an earlier run has decided.

        The decision becomes that of this run. So a second write of the micro-batch by this run is
        refused, and not taken for another replay. What other runs have left open is aborted with
        the next decision: here another driver may decide on it meanwhile.
        """
        self._replace(control, replace(last.without_winners(), batch=batch), where)
        self._transactions.abort(winners)
        self._transactions.abort(self._transactions.abandoned(winners, batch.run_id))

    def _commit_all(
        self,
        decision: Decision,
        outcomes: dict[Winner, Outcome] | None = None,
        *,
        runs_again: bool = True,
    ) -> None:
        """Commit the transactions that are open by `outcomes`; by default all.

        `runs_again` says whether the query repeats the micro-batch after an error. Raises
        `NotYetCommittedError`, or `DecidedRowsLostError`.
        """
        outcomes = dict.fromkeys(decision.winners, Outcome.OPEN) if outcomes is None else outcomes
        wanted = [each for each, found in outcomes.items() if found is Outcome.OPEN]
        ended = zip(wanted, self._end([each.transaction for each in wanted]), strict=True)
        errors = {each: error for each, error in ended if error is not None}
        over = [each for each, error in errors.items() if is_over(error)]
        outcomes = outcomes | dict.fromkeys(wanted, Outcome.COMMITTED)
        outcomes |= dict.fromkeys(errors, Outcome.OPEN)
        outcomes |= self._transactions.outcomes(over)
        by_outcome = {
            kind: [each.transactional_id for each, found in outcomes.items() if found is kind]
            for kind in Outcome
        }
        total = len(decision.winners)
        if left := by_outcome[Outcome.OPEN]:
            first = next(error for each, error in errors.items() if each.transactional_id in left)
            raise NotYetCommittedError(decision.batch, left, total, first) from first
        lost, unknown = by_outcome[Outcome.ABORTED], by_outcome[Outcome.UNKNOWN]
        if lost or unknown:
            raise DecidedRowsLostError(decision.batch, lost, total, unknown, runs_again=runs_again)
        self._has_ended(decision.batch)

    def _end(self, transactions: Sequence[PreparedTransaction]) -> list[KafkaError | None]:
        return self._transactions.end(
            transactions, commit=True, reached=lambda: self._reached(Step.ONE_ENDED)
        )


def _check_not_lost(decision: Decision, outcomes: Mapping[Winner, Outcome]) -> None:
    lost = [each.transactional_id for each, found in outcomes.items() if found is Outcome.ABORTED]
    if lost:
        raise DecidedRowsLostError(decision.batch, lost, len(outcomes), runs_again=False)


def _check_time(decision: Decision, safe_until: Deadline) -> None:
    if safe_until.expired:
        raise TransactionTimedOutError(
            f"{decision.batch} is not decided: the driver or brokers stood still for longer than "
            f"the {safe_until.timeout_ms} ms that were safe"
        )


def _are_aborted(outcomes: Mapping[Winner, Outcome]) -> bool:
    """Whether nobody has seen a row of a decision, and nobody will."""
    return set(outcomes.values()) == {Outcome.ABORTED}
