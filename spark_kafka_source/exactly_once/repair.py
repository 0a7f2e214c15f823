"""Inspection and repair of the transactions of exactly-once queries, from outside the query."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from spark_kafka_source.admin.errors import TransactionNotFoundError
from spark_kafka_source.admin.transactions import (
    ONGOING,
    TransactionDescription,
    abort_transaction,
    describe_transactions,
)
from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import BrokerError, KafkaError, RemoteError
from spark_kafka_source.exactly_once.decision import (
    BatchId,
    Decision,
    LastDecisions,
    Outcome,
    StoredDecision,
    Winner,
)
from spark_kafka_source.exactly_once.decision_store import DecisionStore, existing
from spark_kafka_source.exactly_once.endings import Transactions, is_over, outcomes_of
from spark_kafka_source.exactly_once.errors import (
    DecidedTransactionError,
    LateAbortError,
    NothingDecidedError,
    NothingSeenError,
    NotYetCommittedError,
    OtherDriverError,
    PrefixIsGroupError,
)
from spark_kafka_source.exactly_once.names import Names, TaskId, query_of_prefix
from spark_kafka_source.exactly_once.settling import DOUBTFUL, LOST, with_outcome
from spark_kafka_source.producer import ProducerId
from spark_kafka_source.topic_partition import TopicPartition

# Each driver that comes between fences a look.
_MOST_LOOKS = 3
_TO_LOOK = {
    "GROUP_AUTHORIZATION_FAILED": "READ on groups that begin with {prefix!r}",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": (
        "WRITE on transactional ids that begin with '{prefix}.'"
    ),
    "TOPIC_AUTHORIZATION_FAILED": "READ on the topic",
}
"""The rights for a look at the decisions, by the name of a denial."""

_PERHAPS_SEEN = (Outcome.COMMITTED, Outcome.REPLACED, *DOUBTFUL)


@dataclass(frozen=True, slots=True)
class TaskTransaction:
    """The known facts of a task's transaction, from its id and from the last decisions."""

    task_id: TaskId
    last: Decision | None
    """The last decision that has it, or else a latest one under its prefix.

    None if there is none, or it cannot be read.
    """
    is_decided: bool
    error: KafkaError | None = None
    """Why the decisions cannot be read."""

    @property
    def query_id(self) -> str | None:
        """The query of the transaction; None if it is not known."""
        if self.last is not None:
            return self.last.batch.query_id
        return query_of_prefix(self.task_id.prefix)

    @property
    def run_id(self) -> str:
        """The run of the transaction."""
        if self.last is not None and self.is_decided:
            return self.last.batch.run_id
        return self.task_id.space

    @property
    def batch_id(self) -> int | None:
        """The micro-batch of a decided transaction. None if undecided: then it is a later one."""
        return self.last.batch.batch_id if self.last is not None and self.is_decided else None


def task_transactions(
    client: KafkaClient, transactions: Iterable[TransactionDescription]
) -> dict[str, TaskTransaction]:
    """Return the facts of the transactions that belong to tasks, by transactional id."""
    by_prefix: dict[str, LastDecisions | KafkaError] = {}
    by_id = {}
    for transaction in transactions:
        task_id = TaskId.parse(transaction.transactional_id)
        if task_id is None:
            continue
        if task_id.prefix not in by_prefix:
            by_prefix[task_id.prefix] = _last_decisions(client, Names(task_id.prefix))
        decisions = by_prefix[task_id.prefix]
        if isinstance(decisions, KafkaError):
            by_id[transaction.transactional_id] = TaskTransaction(task_id, None, False, decisions)
        else:
            by_id[transaction.transactional_id] = _of_task(task_id, decisions, transaction)
    return by_id


def _last_decisions(client: KafkaClient, names: Names) -> LastDecisions | KafkaError:
    try:
        control = client.run(describe_transactions(client, [names.control_id]))[names.control_id]
        if control is not None and control.is_open:
            return RemoteError(f"one is being made ({control.state}): look again")
        return client.run(DecisionStore(client, names).last_decisions(require_stable=False))
    except KafkaError as error:
        return error


def _of_task(
    task_id: TaskId, decisions: LastDecisions, transaction: TransactionDescription
) -> TaskTransaction:
    for _, decision in decisions.stored:
        if _counts(decision, transaction):
            return TaskTransaction(task_id, decision, True)
    latest = [decision for _, decision in decisions.latest()]
    return TaskTransaction(task_id, latest[0] if latest else None, False)


def _counts(last: Decision, transaction: TransactionDescription) -> bool:
    """Whether the last transaction under an id is one of a last decision's."""
    winners = {winner.transactional_id: winner for winner in last.winners}
    winner = winners.get(transaction.transactional_id)
    if winner is None or winner.started_at_ms != transaction.started_at_ms:
        return False
    return transaction.state != ONGOING or winner.producer == transaction.producer


def abort_undecided(client: KafkaClient, transactional_id: str, producer: ProducerId) -> None:
    """Abort a transaction, unless it is a task's and decided. This fences a driver that decides.

    No request to Kafka aborts on a condition, so a driver may decide between a look at the
    decisions and the abort. A second look, after the abort, finds that. It is final: a driver that
    begins to decide after it finds the transaction aborted.

    Raises `DecidedTransactionError`, `LateAbortError`, and the errors of
    `KafkaAdmin.abort_transaction`.
    """
    task_id = TaskId.parse(transactional_id)
    if task_id is None:
        client.run(abort_transaction(client, transactional_id, producer))
        return
    try:
        wheres = client.run(_wheres(client, task_id))
        batch = client.run(_decided_with(client, task_id, producer, wheres))
    except BrokerError as error:
        raise _naming_right(error, task_id) from error
    if batch is not None:
        raise DecidedTransactionError(transactional_id, batch)
    client.run(abort_transaction(client, transactional_id, producer))
    try:
        batch = client.run(_decided_with(client, task_id, producer, wheres))
    except KafkaError as error:
        raise LateAbortError(transactional_id, None, error) from error
    if batch is not None:
        raise LateAbortError(transactional_id, batch)


async def _wheres(client: KafkaClient, task_id: TaskId) -> tuple[TopicPartition, ...]:
    """Return partitions of the transaction and of the decisions, by which a look is confirmed."""
    described = await describe_transactions(client, [str(task_id)])
    if (description := described[str(task_id)]) is None:
        raise TransactionNotFoundError(str(task_id))
    stored = await _stored(client, Names(task_id.prefix))
    return (*description.topic_partitions, *(where for wheres, _ in stored for where in wheres))


async def _stored(client: KafkaClient, names: Names) -> tuple[StoredDecision, ...]:
    try:
        return (await DecisionStore(client, names).last_decisions(require_stable=False)).stored
    except PrefixIsGroupError:
        return ()


async def _decided_with(
    client: KafkaClient, task_id: TaskId, producer: ProducerId, wheres: Sequence[TopicPartition]
) -> BatchId | None:
    """Return the micro-batch that is decided with a transaction, and fence drivers before that."""
    decisions = await _confirmed(client, Names(task_id.prefix), await existing(client, wheres))
    for _, last in decisions.stored:
        if (str(task_id), producer) in [winner[:2] for winner in last.winners]:
            return last.batch
    return None


async def _confirmed(
    client: KafkaClient, names: Names, where: TopicPartition | None
) -> LastDecisions:
    """Return the last decisions under a prefix. No driver can decide by an earlier fence then.

    The prefix of an id that only looks like a task's, as a plain batch's, has no decision. No fence
    makes a control id for it.
    """
    store = DecisionStore(client, names)
    described = await describe_transactions(client, [names.control_id])
    if described[names.control_id] is None and not await _stored(client, names):
        return LastDecisions()
    for _ in range(_MOST_LOOKS):
        control = await store.fence()
        try:
            if where is None:  # Nothing can be confirmed, and no reader waits.
                return await store.last_decisions()
            return (await store.confirmed(control, where)).decisions
        except OtherDriverError as error:  # It may decide on the transaction.
            failure = error
    raise failure


def _naming_right(error: BrokerError, task_id: TaskId) -> BrokerError:
    """Return the error of a look before an abort, with the right that the user lacks for it."""
    needed = _TO_LOOK.get(error.error.name)
    if needed is None:
        return error
    right = f"the user needs {needed.format(prefix=task_id.prefix)}"
    detail = f"{right}, to look whether {task_id} is decided. Nothing is aborted"
    return BrokerError(error.error, error.what, detail)


@dataclass(frozen=True, slots=True)
class Finished:
    """A write of the last micro-batch under a prefix, and the outcome of each transaction."""

    stored: StoredDecision
    outcomes: dict[Winner, Outcome]

    @property
    def decision(self) -> Decision:
        """The last decision about the write."""
        return self.stored.decision

    def of(self, *kinds: Outcome) -> list[Winner]:
        """Return the winners with these outcomes."""
        return with_outcome(self.outcomes, *kinds)


def last_outcomes(client: KafkaClient, names: Names) -> list[Finished]:
    """Return the outcomes of the last micro-batch, write by write. Raises `NothingDecidedError`."""
    decisions = client.run(DecisionStore(client, names).last_decisions(require_stable=False))
    return client.run(_outcomes(Transactions(client, names), _latest_or_raise(names, decisions)))


def finish(client: KafkaClient, names: Names, *, accept_loss: bool = False) -> list[Finished]:
    """Commit the decided transactions that are still open, as the query's next run would.

    With `accept_loss`, lost transactions and those with an unknown end leave the decision: the next
    run then takes the micro-batch as written. Running drivers are fenced. Raises
    `NothingDecidedError`, `NotYetCommittedError`, and `NothingSeenError` without `accept_loss`.
    """
    return client.run(_finished(client, names, accept_loss=accept_loss))


async def _finished(client: KafkaClient, names: Names, *, accept_loss: bool) -> list[Finished]:
    decisions = DecisionStore(client, names)
    control = await decisions.fence()
    where = _latest_or_raise(names, await decisions.last_decisions())[0].wheres[0]
    look = await decisions.confirmed(control, where)
    transactions = Transactions(client, names)
    writes = await _outcomes(transactions, _latest_or_raise(names, look.decisions))
    for write in writes:
        ended = write.of(Outcome.ABORTED, Outcome.BROKEN)
        lost = [winner.transactional_id for winner in ended]
        if lost and not accept_loss and not write.of(*_PERHAPS_SEEN):
            raise NothingSeenError(write.decision.batch, lost)
    writes = [await _ended(transactions, write, accept_loss=accept_loss) for write in writes]
    lossy = [write for write in writes if write.of(*LOST, *DOUBTFUL)]
    if accept_loss and lossy:
        for write in lossy:
            await decisions.record(look.control, _accepted(write), write.stored.wheres)
        await decisions.decide(look.control)
    return writes


def _accepted(write: Finished) -> Decision:
    """Return the decision without the transactions that are lost."""
    committed, number = tuple(write.of(Outcome.COMMITTED)), write.decision.number + 1
    return replace(write.decision, winners=committed, number=number)


async def _outcomes(
    transactions: Transactions, decisions: Iterable[StoredDecision]
) -> list[Finished]:
    return [
        Finished(each, outcomes_of(await transactions.outcomes(each.decision.winners)))
        for each in decisions
    ]


async def _ended(transactions: Transactions, write: Finished, *, accept_loss: bool) -> Finished:
    """Commit what is open. What is open in part only, too, if its loss is accepted.

    That stays among the lost: its place may be in a partition that has its rows.
    """
    broken = write.of(Outcome.BROKEN)
    left = [*write.of(Outcome.OPEN), *(broken if accept_loss else ())]
    answers = await transactions.end([winner[:2] for winner in left], commit=True)
    (write,) = await _outcomes(transactions, [write.stored])
    write = replace(write, outcomes=write.outcomes | dict.fromkeys(broken, Outcome.BROKEN))
    for error in answers:
        if isinstance(error, KafkaError) and not is_over(error):
            ids = [winner.transactional_id for winner in write.of(Outcome.OPEN)]
            raise NotYetCommittedError(write.decision.batch, ids, len(write.outcomes), error)
    return write


def _latest_or_raise(names: Names, decisions: LastDecisions) -> tuple[StoredDecision, ...]:
    if not decisions.stored:
        raise NothingDecidedError(names.prefix)
    return decisions.latest()
