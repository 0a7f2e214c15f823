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
from spark_kafka_source.exactly_once.decisions import Decisions, Kept, existing
from spark_kafka_source.exactly_once.endings import Outcome, Transactions, is_over
from spark_kafka_source.exactly_once.errors import (
    DecidedTransactionError,
    NothingDecidedError,
    NothingSeenError,
    NotYetCommittedError,
)
from spark_kafka_source.exactly_once.names import Names, TaskId, query_of_prefix
from spark_kafka_source.producer import ProducerId


@dataclass(frozen=True, slots=True)
class TaskTransaction:
    """The known facts of a task's transaction, from its id and from the last decision."""

    task_id: TaskId
    last: Decision | None
    """The last decision under its prefix; None if there is none, or it cannot be read."""
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
    lasts: dict[str, Decision | KafkaError | None] = {}
    found = {}
    for each in transactions:
        task_id = TaskId.parse(each.transactional_id)
        if task_id is None:
            continue
        if task_id.prefix not in lasts:
            lasts[task_id.prefix] = _last(client, Names(task_id.prefix))
        last = lasts[task_id.prefix]
        if isinstance(last, KafkaError):
            found[each.transactional_id] = TaskTransaction(task_id, None, False, last)
        else:
            found[each.transactional_id] = TaskTransaction(task_id, last, _counts(last, each))
    return found


def _last(client: KafkaClient, names: Names) -> Decision | KafkaError | None:
    try:
        return client.run(Decisions(client, names).last(require_stable=False))
    except KafkaError as error:
        return error


def _counts(last: Decision | None, found: TransactionDescription) -> bool:
    """Whether the last transaction under an id is one of the last decision's."""
    if last is None:
        return False
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
        last = _last_for_certain(client, Names(task_id.prefix), transactional_id)
        decided = [] if last is None else [each.transaction[:2] for each in last.winners]
        if last is not None and (transactional_id, producer) in decided:
            raise DecidedTransactionError(transactional_id, last.batch)
    client.run(abort_transaction(client, transactional_id, producer))


def _last_for_certain(client: KafkaClient, names: Names, transactional_id: str) -> Decision | None:
    """Return the last decision, and let no driver decide on the transaction right now."""
    decisions = Decisions(client, names)
    control = client.run(decisions.fence())
    found = client.run(describe_transactions(client, [transactional_id]))[transactional_id]
    where = None if found is None else client.run(existing(client, found.topic_partitions))
    kept = (
        client.run(decisions.kept())
        if where is None
        else client.run(decisions.confirmed(control, where)).kept
    )
    return None if kept is None else kept.decision


@dataclass(frozen=True, slots=True)
class Finished:
    """The last micro-batch under a prefix, and the outcome of each of its transactions."""

    decision: Decision
    outcomes: dict[Winner, Outcome]

    def of(self, *kinds: Outcome) -> list[Winner]:
        """Return the winners with these outcomes."""
        return [each for each, found in self.outcomes.items() if found in kinds]


def look_at_last(client: KafkaClient, names: Names) -> Finished:
    """Return the last decision and its outcomes. Raises `NothingDecidedError`."""
    kept = _found(names, client.run(Decisions(client, names).kept(require_stable=False)))
    return client.run(_outcomes(Transactions(client, names), kept.decision))


def finish(client: KafkaClient, names: Names, *, accept_loss: bool = False) -> Finished:
    """Commit the decided transactions that are still open, as the query's next run would.

    With `accept_loss`, lost transactions and those with an unknown end leave the decision: the next
    run then takes the micro-batch as written. Running drivers are fenced. Raises
    `NothingDecidedError`, `NotYetCommittedError`, and `NothingSeenError` without `accept_loss`.
    """
    return client.run(_finished(client, names, accept_loss=accept_loss))


async def _finished(client: KafkaClient, names: Names, *, accept_loss: bool) -> Finished:
    decisions = Decisions(client, names)
    control = await decisions.fence()
    where, _ = _found(names, await decisions.kept())
    look = await decisions.confirmed(control, where)
    where, decision = _found(names, look.kept)
    transactions = Transactions(client, names)
    found = await _outcomes(transactions, decision)
    lost = [each.transactional_id for each in found.of(Outcome.ABORTED)]
    if lost and not accept_loss and not found.of(Outcome.COMMITTED, Outcome.UNKNOWN):
        raise NothingSeenError(decision.batch, lost)
    found = await _ended(transactions, found)
    if accept_loss and found.of(Outcome.ABORTED, Outcome.UNKNOWN):
        committed = tuple(found.of(Outcome.COMMITTED))
        accepted = replace(decision, winners=committed, number=decision.number + 1)
        await decisions.record(look.control, accepted, where)
        await decisions.decide(look.control)
    return found


async def _outcomes(transactions: Transactions, decision: Decision) -> Finished:
    return Finished(decision, await transactions.outcomes(decision.winners))


async def _ended(transactions: Transactions, found: Finished) -> Finished:
    left = [each[:2] for each in found.of(Outcome.OPEN)]
    answers = await transactions.end(left, commit=True)
    found = await _outcomes(transactions, found.decision)
    for error in answers:
        if isinstance(error, KafkaError) and not is_over(error):
            ids = [each.transactional_id for each in found.of(Outcome.OPEN)]
            raise NotYetCommittedError(found.decision.batch, ids, len(found.outcomes), error)
    return found


def _found(names: Names, kept: Kept | None) -> Kept:
    if kept is None:
        raise NothingDecidedError(names.prefix)
    return kept
