"""Inspection and repair of the transactions of exactly-once queries, from outside."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from spark_kafka_source.admin.transactions import (
    ONGOING,
    TransactionDescription,
    abort_transaction,
    describe_transactions,
)
from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once.decision import Decision, Winner
from spark_kafka_source.exactly_once.decisions import Decisions, existing
from spark_kafka_source.exactly_once.endings import Outcome, Transactions, is_over
from spark_kafka_source.exactly_once.errors import (
    DecidedTransactionError,
    NothingDecidedError,
    NothingSeenError,
    NotYetCommittedError,
)
from spark_kafka_source.exactly_once.lasts import Kept, Lasts
from spark_kafka_source.exactly_once.names import Names, TaskId, query_of_prefix
from spark_kafka_source.producer import ProducerId


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
    def run_id(self) -> str | None:
        """The run of a decided transaction. For others it is known only from ids of 0.2.0."""
        if self.last is not None and self.is_decided:
            return self.last.batch.run_id
        is_of_query = self.task_id.space == Names(self.task_id.prefix).space
        return None if is_of_query else self.task_id.space

    @property
    def batch_id(self) -> int | None:
        """The micro-batch of a decided transaction. None if undecided: then it is a later one."""
        return self.last.batch.batch_id if self.last is not None and self.is_decided else None


def task_transactions(
    client: KafkaClient, transactions: Iterable[TransactionDescription]
) -> dict[str, TaskTransaction]:
    """Return the facts of the transactions that belong to tasks, by transactional id."""
    lasts: dict[str, Lasts | KafkaError] = {}
    found = {}
    for each in transactions:
        task_id = TaskId.parse(each.transactional_id)
        if task_id is None:
            continue
        if task_id.prefix not in lasts:
            lasts[task_id.prefix] = _lasts(client, Names(task_id.prefix))
        last = lasts[task_id.prefix]
        if isinstance(last, KafkaError):
            found[each.transactional_id] = TaskTransaction(task_id, None, False, last)
        else:
            found[each.transactional_id] = _of_task(task_id, last, each)
    return found


def _lasts(client: KafkaClient, names: Names) -> Lasts | KafkaError:
    try:
        return client.run(Decisions(client, names).lasts(require_stable=False))
    except KafkaError as error:
        return error


def _of_task(task_id: TaskId, lasts: Lasts, found: TransactionDescription) -> TaskTransaction:
    for _, each in lasts.kept:
        if _counts(each, found):
            return TaskTransaction(task_id, each, True)
    latest = [each for _, each in lasts.latest()]
    return TaskTransaction(task_id, latest[0] if latest else None, False)


def _counts(last: Decision, found: TransactionDescription) -> bool:
    """Whether the last transaction under an id is one of a last decision's."""
    winners = {each.transactional_id: each for each in last.winners}
    each = winners.get(found.transactional_id)
    if each is None or each.started_at_ms != found.started_at_ms:
        return False
    return found.state != ONGOING or each.producer == found.producer


def abort_undecided(client: KafkaClient, transactional_id: str, producer: ProducerId) -> None:
    """Abort a transaction, unless it is a task's and decided. This fences a driver that decides.

    Raises `DecidedTransactionError`, and the errors of `abort_transaction`.
    """
    task_id = TaskId.parse(transactional_id)
    if task_id is not None:
        for _, last in _lasts_for_certain(client, Names(task_id.prefix), transactional_id).kept:
            if (transactional_id, producer) in [each.transaction[:2] for each in last.winners]:
                raise DecidedTransactionError(transactional_id, last.batch)
    client.run(abort_transaction(client, transactional_id, producer))


def _lasts_for_certain(client: KafkaClient, names: Names, transactional_id: str) -> Lasts:
    """Return the last decisions, and let no driver decide on the transaction right now."""
    decisions = Decisions(client, names)
    control = client.run(decisions.fence())
    found = client.run(describe_transactions(client, [transactional_id]))[transactional_id]
    where = None if found is None else client.run(existing(client, found.topic_partitions))
    if where is None:
        return client.run(decisions.lasts())
    return client.run(decisions.confirmed(control, where)).lasts


@dataclass(frozen=True, slots=True)
class Finished:
    """A write of the last micro-batch under a prefix, and the outcome of each transaction."""

    kept: Kept
    outcomes: dict[Winner, Outcome]

    @property
    def decision(self) -> Decision:
        """The last decision about the write."""
        return self.kept.decision

    def of(self, *kinds: Outcome) -> list[Winner]:
        """Return the winners with these outcomes."""
        return [each for each, found in self.outcomes.items() if found in kinds]


def look_at_last(client: KafkaClient, names: Names) -> list[Finished]:
    """Return the outcomes of the last micro-batch, write by write. Raises `NothingDecidedError`."""
    lasts = client.run(Decisions(client, names).lasts(require_stable=False))
    return client.run(_outcomes(Transactions(client, names), _found(names, lasts)))


def finish(client: KafkaClient, names: Names, *, accept_loss: bool = False) -> list[Finished]:
    """Commit the decided transactions that are still open, as the query's next run would.

    With `accept_loss`, lost transactions and those with an unknown end leave the decision: the next
    run then takes the micro-batch as written. Running drivers are fenced. Raises
    `NothingDecidedError`, `NotYetCommittedError`, and `NothingSeenError` without `accept_loss`.
    """
    return client.run(_finished(client, names, accept_loss=accept_loss))


async def _finished(client: KafkaClient, names: Names, *, accept_loss: bool) -> list[Finished]:
    decisions = Decisions(client, names)
    control = await decisions.fence()
    where = _found(names, await decisions.lasts())[0].where
    look = await decisions.confirmed(control, where)
    transactions = Transactions(client, names)
    found = await _outcomes(transactions, _found(names, look.lasts))
    for each in found:
        lost = [winner.transactional_id for winner in each.of(Outcome.ABORTED)]
        if lost and not accept_loss and not each.of(Outcome.COMMITTED, Outcome.UNKNOWN):
            raise NothingSeenError(each.decision.batch, lost)
    found = [await _ended(transactions, each) for each in found]
    lossy = [each for each in found if each.of(Outcome.ABORTED, Outcome.UNKNOWN)]
    if accept_loss and lossy:
        for each in lossy:
            await decisions.record(look.control, _accepted(each), each.kept.where)
        await decisions.decide(look.control)
    return found


def _accepted(found: Finished) -> Decision:
    """Return the decision without the transactions that are lost."""
    committed, number = tuple(found.of(Outcome.COMMITTED)), found.decision.number + 1
    return replace(found.decision, winners=committed, number=number)


async def _outcomes(transactions: Transactions, lasts: Iterable[Kept]) -> list[Finished]:
    return [Finished(each, await transactions.outcomes(each.decision.winners)) for each in lasts]


async def _ended(transactions: Transactions, found: Finished) -> Finished:
    left = [each[:2] for each in found.of(Outcome.OPEN)]
    answers = await transactions.end(left, commit=True)
    (found,) = await _outcomes(transactions, [found.kept])
    for error in answers:
        if isinstance(error, KafkaError) and not is_over(error):
            ids = [each.transactional_id for each in found.of(Outcome.OPEN)]
            raise NotYetCommittedError(found.decision.batch, ids, len(found.outcomes), error)
    return found


def _found(names: Names, lasts: Lasts) -> tuple[Kept, ...]:
    if not lasts.kept:
        raise NothingDecidedError(names.prefix)
    return lasts.latest()
