"""The driver's steps: it decides about a micro-batch, and ends its transactions.

Attempts of tasks have written their rows in transactions, and left them open. The driver writes its
decision in a transaction under the control id. Once that is committed, the micro-batch is decided.
`docs/contributors/exactly-once-protocol.md` has what follows from a stop at each step.

**Why a sweep does no harm, whenever it comes.** A driver sweeps only after its decision, and only
transactions that it listed before that. Take a transaction that another driver listed. It had
begun, so its task had looked, before that driver's decision. So the task's own driver finds two
changes after its fence: its epoch is not the next one after the epoch that the task saw, and the
last decision is another one. One of the two, unchanged, is proof enough. Each may change without
another driver: a fence that is repeated after a lost answer raises the epoch twice, and brokers
tell a decision somewhat after it is made.

**Several writes.** Code in foreachBatch may write a micro-batch to several topics, one write after
the other. Each write has decisions of its own (`LastDecisions`), with which its replay is compared.

**What a driver remembers.** The id and epoch of the control id, the last decision of each write,
and which of these it has seen committed. Before it decides, it settles all of them, also its own:
code in foreachBatch may have swallowed the error. So only decisions about the latest micro-batch
can be open. Spark may let another process of the same run decide in between. Brokers refuse what
this one writes from its memory then. So it begins without memory.

The module is long, so that all steps stand under these rules.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from spark_kafka_source.admin.transactions import ONGOING, Begun, TransactionDescription
from spark_kafka_source.errors import KafkaError, listed
from spark_kafka_source.exactly_once.checks import (
    Checkpoint,
    check_left,
    check_not_written,
    check_open,
    check_owner,
    check_place,
)
from spark_kafka_source.exactly_once.decision import (
    NO_CONTENT,
    BatchId,
    Content,
    Decision,
    LastDecisions,
    Outcome,
    Seen,
    StoredDecision,
    Winner,
)
from spark_kafka_source.exactly_once.endings import is_over
from spark_kafka_source.exactly_once.errors import OtherDriverError, TransactionTimedOutError
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.exactly_once.replays import Caution
from spark_kafka_source.exactly_once.requests import (
    ConfirmDecisions,
    Confirmed,
    DescribeTransactions,
    EndTxn,
    FetchDecisions,
    FetchTopicIds,
    InitProducerId,
    ListTransactions,
    ReadOutcomes,
    RecordDecision,
    Steps,
    ask,
    described,
    end_each,
)
from spark_kafka_source.exactly_once.settling import commit_all, lost, settle
from spark_kafka_source.logs import logger_of
from spark_kafka_source.producer import Generation, PreparedTransaction, ProducerId, is_next
from spark_kafka_source.topic_partition import TopicPartition

logger = logger_of(__name__)

_USUAL = Caution.WARN
_ANY_CHECKPOINT = Checkpoint()
_MOST_COPIES = 8
# Somebody may have used a tool on transactions that are open for longer.
_BY_HAND_MS = 30_000
Transaction = tuple[str, ProducerId]


@dataclass(frozen=True, slots=True)
class PreparedWrite:
    """What the tasks of a micro-batch say that they have written."""

    batch: BatchId
    prepared: tuple[PreparedTransaction, ...]
    seen: frozenset[Seen]
    """What the workers saw before their first transactions of the run."""
    content: Content = NO_CONTENT
    write: str = ""
    """The topic of the write, by which it is named; "" if a column names topics."""
    checkpoint: Checkpoint = _ANY_CHECKPOINT

    @property
    def wheres(self) -> tuple[TopicPartition, ...]:
        """The partitions at whose offsets the decision is kept, since the topics were written to.

        Brokers delete an offset with its topic. The rows of other topics are still there then, and
        so is the decision.
        """
        topics = sorted({topic for each in self.prepared for topic in each.topics})
        return tuple(TopicPartition(topic, 0) for topic in topics[:_MOST_COPIES])


class Driver:
    """The decisions of one process for one run, under one prefix. One thread may use it at a time.

    Before a decision, its methods raise `PrefixInUseError`, `ReplayDiffersError`,
    `DoubtfulReplayError`, `TransactionTimedOutError` and `OtherDriverError`. After it, they raise
    `NotYetCommittedError` and `DecidedRowsLostError`. At any time, they raise the errors of
    requests.
    """

    def __init__(self, names: Names, generation: Generation, caution: Caution = _USUAL) -> None:
        self._names, self._generation, self._caution = names, generation, caution
        self._control: ProducerId | None = None
        """The control id's producer between two decisions; None before this process has fenced."""
        self._decisions = LastDecisions()
        """The last decisions, unless another driver has fenced this one."""
        self._settled: frozenset[Decision] = frozenset()
        """Those of them that this process has seen committed."""

    def commit(self, prepared_write: PreparedWrite) -> Steps[None]:
        """Decide that these transactions are the write of a micro-batch, and commit them.

        A write without rows needs no decision. It ends the earlier ones.
        """
        if not prepared_write.prepared:
            yield from self._commit_nothing(prepared_write)
            return
        if self._can_skip_fence():
            try:
                yield from self._commit(prepared_write)
                return
            except OtherDriverError:  # It may be another process of this run.
                self._control = None
        leftovers = yield from self._list_open()
        yield from self._take_control(prepared_write)
        yield from self._commit(prepared_write, leftovers)

    def _can_skip_fence(self) -> bool:
        """Whether this process can decide by what it remembers, without a fence."""
        is_settled = all(self._is_settled(decision) for _, decision in self._decisions.latest())
        return self._control is not None and self._generation.keeps_control and is_settled

    def _commit(
        self, prepared_write: PreparedWrite, leftovers: frozenset[Transaction] | None = None
    ) -> Steps[None]:
        """Decide, or drop a replay. `leftovers` is None if they are not listed yet."""
        replayed = self._replayed(self._decisions, prepared_write)
        for kept in self._decisions.at(prepared_write.wheres):
            check_place(self._names.prefix, kept, prepared_write.batch, prepared_write.write)
        if not self._decisions.stored and not self._settled:
            yield from self._check_first(prepared_write.batch)
        yield from self._settle_all(self._decisions, prepared_write.batch)
        if replayed is not None and self._is_settled(replayed):
            yield from self._drop_replay(prepared_write, replayed, leftovers or frozenset())
            return
        yield from self._decide(
            prepared_write, 0 if replayed is None else replayed.number + 1, leftovers
        )

    def _commit_nothing(self, prepared_write: PreparedWrite) -> Steps[None]:
        decisions: LastDecisions = yield from ask(FetchDecisions())
        replayed = self._replayed(decisions, prepared_write)
        yield from self._settle_all(decisions, prepared_write.batch, given_up=replayed)
        if replayed is not None:
            self._caution.compare(
                self._names, replayed, prepared_write.batch, prepared_write.content
            )

    def abort(
        self, batch: BatchId, attempts: Iterable[PreparedTransaction], where: TopicPartition | None
    ) -> Steps[None]:
        """Abort the run's transactions that are open and not decided, also of lost attempts.

        Spark also calls it for a micro-batch whose `commit` raised. That batch may be decided: then
        it is committed. The fence stops a process of this run that still decides. `where` is a
        partition that exists; None if none is known. Another run's transactions are left alone: its
        driver may decide, and the next decision sweeps them.
        """
        of_tasks = frozenset(attempt[:2] for attempt in attempts)
        if not of_tasks:
            return
        listed = yield from self._list_open()
        self._control = None
        control: ProducerId = yield from ask(InitProducerId(self._names.control_id))
        if where is None:
            self._decisions = yield from ask(FetchDecisions())
        else:
            confirmed: Confirmed = yield from ask(ConfirmDecisions(control, where))
            self._control, self._decisions = confirmed.control, confirmed.decisions
        yield from self._sweep(of_tasks | self._of_run(batch.run_id, listed))
        for _, decision in self._decisions.latest():
            if decision.batch == batch:
                try:
                    yield from self._settle(decision, runs_again=True)
                except KafkaError as error:  # Spark shows the error of `commit`, and not this one.
                    logger.warning("%s is decided, and not ended: %s", batch, error)

    def abort_undecided(self, run_id: str, attempts: Iterable[PreparedTransaction]) -> Steps[None]:
        """Abort these transactions and all open ones of a run, of which nothing is decided."""
        listed = yield from self._list_open()
        yield from self._sweep(self._of_run(run_id, listed) | {attempt[:2] for attempt in attempts})

    def _of_run(self, run_id: str, listed: frozenset[Transaction]) -> frozenset[Transaction]:
        return frozenset(each for each in listed if self._names.is_in(each[0], run_id))

    # -- the control id ----------------------------------------------------------------------------

    def _take_control(self, prepared_write: PreparedWrite) -> Steps[None]:
        """Fence other drivers, and read the last decisions."""
        before = self._control
        self._control = None
        control: ProducerId = yield from ask(InitProducerId(self._names.control_id))
        if before is None or not is_next(before, control):
            confirmed: Confirmed = yield from ask(
                ConfirmDecisions(control, prepared_write.wheres[0])
            )
            self._decisions = confirmed.decisions
            self._check_control(prepared_write, control)
            control = confirmed.control
        self._control = control

    def _check_control(self, prepared_write: PreparedWrite, control: ProducerId) -> None:
        """Raise `OtherDriverError` if another driver may have decided since the tasks looked.

        A fence that is repeated, since its answer was lost, raises the epoch by more than one.
        Then the last decisions tell: each is this run's, or the tasks have seen it. They alone
        tell it if the brokers did not know the control id: it may have expired since once more.
        """
        unsure = [
            seen
            for seen in prepared_write.seen
            if seen.control is None or not is_next(seen.control, control)
        ]
        for _, decision in self._decisions.latest():
            is_own = decision.batch.run_id == prepared_write.batch.run_id
            if not is_own and not all(decision.id in seen.decisions for seen in unsure):
                problem = f"{decision.batch} was decided after a task began"
                raise OtherDriverError(self._names.prefix, problem)

    def _check_first(self, batch: BatchId) -> Steps[None]:
        """Warn if this micro-batch may be written already, and its decision is gone.

        Nothing comes before micro-batch 0, and before 1 often nothing with rows: a new query that
        begins at the latest offsets has none in its micro-batch 0. These two are doubtful only if
        rows were ever committed.
        """
        if batch.batch_id > 1 or (yield from ask(ListTransactions(committed=True))):
            self._doubt(
                f"{batch}: nothing was decided before it under {self._names.prefix!r}, or the "
                "brokers have forgotten it ('offsets.retention.minutes'). If it was written "
                "before, its rows are written twice"
            )

    # -- decisions ---------------------------------------------------------------------------------

    def _replayed(self, decisions: LastDecisions, replay: PreparedWrite) -> Decision | None:
        """Return the decision about the same write of the same micro-batch.

        Raises `PrefixInUseError` if the last decisions cannot come before this write.
        """
        for _, decision in decisions.stored:
            check_owner(self._names.prefix, decision, replay.batch, replay.checkpoint)
        last = decisions.of(replay.write)
        if last is None or last.batch.batch_id != replay.batch.batch_id:
            return None
        check_not_written(self._names.prefix, last.batch, replay.batch, replay.write)
        return last

    def _settle_all(
        self, decisions: LastDecisions, batch: BatchId, given_up: Decision | None = None
    ) -> Steps[None]:
        """Bring all last decisions to their end, before one about this micro-batch.

        A run repeats all writes of a micro-batch that another run has decided, in any order, but
        for the one that is `given_up`.
        """
        for _, decision in decisions.latest():
            is_repeated = decision.batch.batch_id == batch.batch_id and decision.batch != batch
            yield from self._settle(decision, runs_again=is_repeated and decision != given_up)

    def _settle(self, decision: Decision, *, runs_again: bool) -> Steps[None]:
        """Commit a decision's open transactions, unless all are aborted.

        In that case raises `DecidedRowsLostError` if the query does not repeat the micro-batch.
        """
        if self._is_settled(decision):
            return
        if (yield from settle(decision, self._doubt, runs_again=runs_again)):
            self._has_settled(decision)
        elif not runs_again:
            outcomes = dict.fromkeys(decision.winners, Outcome.ABORTED)
            raise lost(decision, outcomes, runs_again=False)

    def _doubt(self, text: str) -> None:
        self._caution.doubt(self._names, text)

    def _is_settled(self, decision: Decision) -> bool:
        return decision in self._settled or not decision.winners

    def _has_settled(self, decision: Decision) -> None:
        batch_id = decision.batch.batch_id
        same = {settled for settled in self._settled if settled.batch.batch_id == batch_id}
        self._settled = frozenset({*same, decision})

    def _decide(
        self, prepared_write: PreparedWrite, number: int, leftovers: frozenset[Transaction] | None
    ) -> Steps[None]:
        """Make a decision, and commit its transactions. `leftovers` is None if none were listed."""
        winners, left_ms, now_ms, listed = yield from self._check_winners(
            prepared_write, lists=leftovers is None
        )
        safe_until_ms = now_ms + left_ms // 2
        decision = _decision(prepared_write, winners, number, prepared_write.content)
        now_ms = yield from self._record_decision(decision, prepared_write.wheres)
        if now_ms > safe_until_ms:
            yield from ask(EndTxn(self._names.control_id, self._producer(), commit=False))
            self._control = None
            raise _stood_still(decision, "is not decided")
        now_ms = yield from self._commit_decision(decision, prepared_write.wheres)
        end = commit_all if now_ms <= safe_until_ms else settle
        if not (yield from end(decision, self._doubt)):
            raise _stood_still(decision, "was decided too late, and no reader has seen a row of it")
        self._has_settled(decision)
        yield from self._sweep(leftovers or listed)

    def _drop_replay(
        self, prepared_write: PreparedWrite, last: Decision, leftovers: frozenset[Transaction]
    ) -> Steps[None]:
        """Abort this run's transactions of a micro-batch that an earlier run has written.

        The decision becomes that of this run. So a second write of the micro-batch by this run is
        refused, and not taken for another replay.
        """
        self._caution.compare(self._names, last, prepared_write.batch, prepared_write.content)
        self._compare_topics(prepared_write, last)
        own = _decision(prepared_write, (), last.number + 1, last.content)
        yield from self._record_decision(own, prepared_write.wheres)
        yield from self._commit_decision(own, prepared_write.wheres)
        ended = {winner[:2] for winner in last.winners}
        yield from self._sweep((leftovers | {each[:2] for each in prepared_write.prepared}) - ended)

    def _compare_topics(self, prepared_write: PreparedWrite, last: Decision) -> None:
        """Doubt the rows of a topic at which the decision is no longer kept.

        Brokers delete the offsets of a deleted topic. Version 0.3 kept a decision at one topic.
        """
        is_old = bool(last.winners) and not any(winner.place for winner in last.winners)
        (kept,) = (wheres for wheres, decision in self._decisions.stored if decision == last)
        gone = [where.topic for where in prepared_write.wheres if where not in kept]
        if gone and not is_old:
            self._doubt(
                f"{last} is a replay. Its decision is gone from {listed(map(repr, gone))}, deleted "
                "since: the rows that were written there are gone, and are not written again"
            )

    def _record_decision(
        self, decision: Decision, wheres: tuple[TopicPartition, ...]
    ) -> Steps[int]:
        """Write a decision, which does not count yet. Return the time."""
        control = self._producer()
        # After an error a late copy may come: the next decision needs a fence.
        self._control = None
        answered = yield (RecordDecision(control, decision, wheres),)
        self._control = control
        return answered.now_ms

    def _commit_decision(
        self, decision: Decision, wheres: tuple[TopicPartition, ...]
    ) -> Steps[int]:
        """Commit the recorded decision: the micro-batch is decided. Return the time."""
        control = self._producer()
        self._control = None  # Until the answer comes, it is unknown whether it is decided.
        answered = yield (EndTxn(self._names.control_id, control, commit=True),)
        (answer,) = answered.answers
        if isinstance(answer, KafkaError):
            if is_over(answer):
                raise OtherDriverError(self._names.prefix, str(answer)) from answer
            raise answer
        self._control = answer
        self._decisions = self._decisions.after(StoredDecision(wheres, decision))
        return answered.now_ms

    def _producer(self) -> ProducerId:
        if self._control is None:
            raise ValueError("this driver has not fenced")
        return self._control

    # -- transactions ------------------------------------------------------------------------------

    def _check_winners(
        self, prepared_write: PreparedWrite, *, lists: bool
    ) -> Steps[tuple[tuple[Winner, ...], int, int, frozenset[Transaction]]]:
        """Return the winners, the least time left, the time, and other open transactions.

        Raises `TransactionTimedOutError` if a winner is not open, not whole, or not for long.
        """
        begun = tuple(
            (prepared.transactional_id, Begun(prepared.producer, generation=self._generation))
            for prepared in prepared_write.prepared
        )
        topics = {
            each.place.topic_partition.topic for each in prepared_write.prepared if each.place
        }
        looks = (described(begun), FetchTopicIds(tuple(sorted(topics))))
        answered = yield (*looks, ListTransactions()) if lists else looks
        by_id, topic_ids, *ids = answered.answers
        states = [
            check_open(prepared, by_id[prepared.transactional_id])
            for prepared in prepared_write.prepared
        ]
        left_ms = [state.remaining_ms(answered.now_ms) for state in states]
        for state, left in zip(states, left_ms, strict=True):
            check_left(state, left)
        winners = tuple(
            _winner(prepared, state, topic_ids)
            for prepared, state in zip(prepared_write.prepared, states, strict=True)
        )
        if min(state.started_at_ms for state in states) < answered.now_ms - _BY_HAND_MS:
            yield from _check_whole(winners)
        others = yield from _open_transactions(set(*ids) - dict(begun).keys())
        return winners, min(left_ms), answered.now_ms, others

    def _list_open(self) -> Steps[frozenset[Transaction]]:
        return (yield from _open_transactions((yield from ask(ListTransactions()))))

    def _sweep(self, leftovers: Iterable[Transaction]) -> Steps[None]:
        """Abort leftovers, but no decided ones. One that cannot be aborted ends by its timeout."""
        yield from end_each(sorted({*leftovers} - self._decided_transactions()), commit=False)

    def _decided_transactions(self) -> frozenset[Transaction]:
        return frozenset(
            winner[:2] for _, last in self._decisions.stored for winner in last.winners
        )


def _open_transactions(ids: Iterable[str]) -> Steps[frozenset[Transaction]]:
    """Return the ids that have an open transaction, with its exact epoch.

    If brokers do not describe them, their transactions end by their timeouts.
    """
    transactional_ids = tuple(sorted(ids))
    if not transactional_ids:
        return frozenset()
    try:
        states = yield from ask(DescribeTransactions(transactional_ids))
    except KafkaError as error:
        logger.warning("Open transactions are left to their timeouts: %s", error)
        return frozenset()
    return frozenset(
        (state.transactional_id, state.producer)
        for state in states.values()
        if state is not None and state.state == ONGOING
    )


def _check_whole(winners: tuple[Winner, ...]) -> Steps[None]:
    """Raise `TransactionTimedOutError` if a tool has ended one in some of its partitions."""
    for winner, (outcome, _) in (yield from ask(ReadOutcomes(winners))).items():
        if outcome is not Outcome.OPEN:
            raise TransactionTimedOutError(f"{winner.transactional_id} is {outcome.value}")


def _winner(
    prepared: PreparedTransaction, state: TransactionDescription, topic_ids: Mapping[str, UUID]
) -> Winner:
    """Return a winner. Raises `TransactionTimedOutError` if its topic is another one by now."""
    place = prepared.place
    if place is not None:
        topic = place.topic_partition.topic
        if place.is_gone(topic_ids[topic]):
            problem = f"topic {topic!r} was made again after {prepared[0]} had written"
            raise TransactionTimedOutError(f"{problem}. The next start writes the batch again")
        place = place._replace(topic_id=topic_ids[topic])
    return Winner(*prepared[:2], state.started_at_ms, place)


def _decision(
    prepared_write: PreparedWrite,
    winners: tuple[Winner, ...],
    number: int,
    content: Content,
) -> Decision:
    location = prepared_write.checkpoint.location
    batch, write = prepared_write.batch, prepared_write.write
    return Decision(batch, winners, number, content, write, location)


def _stood_still(decision: Decision, what: str) -> TransactionTimedOutError:
    return TransactionTimedOutError(
        f"{decision.batch} {what}: the driver or brokers stood still for longer than was safe, or "
        "somebody ended its transactions. Start the query again: it writes the batch again"
    )
