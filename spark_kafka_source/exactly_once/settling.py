"""The ends of what is decided: all at once, or the most urgent first. Anybody may do it.

A decision is irrevocable, as long as one of its transactions can be committed. If all of them have
timed out, or the most urgent has and none is committed, no reader has seen a row. Then the rest is
aborted, and the micro-batch can be decided anew.

The outcome of a decided transaction is read from the last transaction under its id:

- The same start: its state tells the outcome, whatever its epoch. Some brokers of the second
  generation (4.0.0, KAFKA-19367) raise the epoch twice when a transaction times out. So an epoch
  alone cannot tell an aborted transaction from a later one.
- Another start: the worker that owns the id went on. It does so only after a commit, or so early
  that its transaction could not have timed out (`slots`). So the decided one is committed.
- No transaction: brokers have forgotten it, and nobody knows.
"""

from collections.abc import Iterable, Mapping

from spark_kafka_source.admin.transactions import TransactionDescription
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once.decision import Decision, Winner
from spark_kafka_source.exactly_once.endings import Outcome, is_over, outcome
from spark_kafka_source.exactly_once.errors import DecidedRowsLostError, NotYetCommittedError
from spark_kafka_source.exactly_once.stories import Story, describe, end_each

Described = Mapping[str, TransactionDescription | None]


def settle(decision: Decision, *, runs_again: bool = True) -> Story[bool]:
    """Commit what is open of a decision. Return False if all of it is aborted, so that none counts.

    `runs_again` says whether the query repeats the micro-batch. Raises `NotYetCommittedError`, and
    `DecidedRowsLostError` if some rows are lost.
    """
    found = yield from _described(decision)
    outcomes = outcomes_of(decision, found)
    if set(outcomes.values()) == {Outcome.OPEN}:
        # Its fate is the fate of all.
        outcomes = yield from _commit(decision, outcomes, by_urgency(decision, found)[:1])
    if set(outcomes.values()) == {Outcome.ABORTED, Outcome.OPEN}:
        outcomes = yield from _abort(decision, outcomes)
    outcomes = yield from _commit(decision, outcomes, of_kind(outcomes, Outcome.OPEN))
    if set(outcomes.values()) == {Outcome.ABORTED}:
        return False
    _check_not_lost(decision, outcomes, runs_again=runs_again)
    return True


def settle_for_others(decision: Decision) -> Story[None]:
    """Commit what is open of a decision, unless something of it is lost: a driver tells that.

    For tasks, which do not hold the control id.
    """
    found = yield from _described(decision)
    outcomes = outcomes_of(decision, found)
    urgent = [each for each in by_urgency(decision, found) if outcomes[each] is Outcome.OPEN]
    for some in (urgent[:1], urgent[1:]):
        if not set(outcomes.values()) <= {Outcome.OPEN, Outcome.COMMITTED}:
            return
        outcomes = yield from _commit(decision, outcomes, some)


def commit_all(decision: Decision) -> Story[None]:
    """Commit a decision's transactions, all at once: they have just been seen open.

    Raises `NotYetCommittedError` and `DecidedRowsLostError`.
    """
    outcomes = dict.fromkeys(decision.winners, Outcome.OPEN)
    outcomes = yield from _commit(decision, outcomes, decision.winners)
    _check_not_lost(decision, outcomes, runs_again=True)


def outcomes_of(decision: Decision, found: Described) -> dict[Winner, Outcome]:
    """Return the outcome of each decided transaction."""
    return {each: _outcome(each, found[each.transactional_id]) for each in decision.winners}


def _outcome(winner: Winner, found: TransactionDescription | None) -> Outcome:
    if found is not None and found.started_at_ms != winner.started_at_ms:
        return Outcome.COMMITTED
    return outcome(winner, found)


def by_urgency(decision: Decision, found: Described) -> list[Winner]:
    """Return the decided transactions, those first that time out first."""

    def ends_ms(winner: Winner) -> int:
        known = found[winner.transactional_id]
        return winner.started_at_ms + (0 if known is None else known.timeout_ms)

    return sorted(decision.winners, key=ends_ms)


def of_kind(outcomes: Mapping[Winner, Outcome], kind: Outcome) -> list[Winner]:
    """Return the decided transactions with this outcome."""
    return [each for each, found in outcomes.items() if found is kind]


def _described(decision: Decision) -> Story[Described]:
    return (yield from describe(each[:2] for each in decision.winners))


def _commit(
    decision: Decision, outcomes: dict[Winner, Outcome], some: Iterable[Winner]
) -> Story[dict[Winner, Outcome]]:
    """Commit some open transactions. Return the outcomes of all. Raises `NotYetCommittedError`."""
    asked = list(some)
    answers = yield from end_each([each[:2] for each in asked], commit=True)
    errors = {
        each: answer
        for each, answer in zip(asked, answers, strict=True)
        if isinstance(answer, KafkaError)
    }
    for error in errors.values():
        if not is_over(error):
            left = {*of_kind(outcomes, Outcome.OPEN)} - {*asked} | {*errors}
            ids = [each.transactional_id for each in decision.winners if each in left]
            total = len(decision.winners)
            raise NotYetCommittedError(decision.batch, ids, total, error) from error
    outcomes = outcomes | dict.fromkeys(asked, Outcome.COMMITTED)
    if errors:
        found = yield from _described(decision)
        outcomes |= {each: _outcome(each, found[each.transactional_id]) for each in errors}
    return outcomes


def _abort(decision: Decision, outcomes: Mapping[Winner, Outcome]) -> Story[dict[Winner, Outcome]]:
    """Abort the rest of a decided micro-batch. Return the outcomes of all its transactions.

    A driver that stood still, or a task, may commit it just now.
    """
    left = [each[:2] for each in of_kind(outcomes, Outcome.OPEN)]
    for answer in (yield from end_each(left, commit=False)):
        if isinstance(answer, KafkaError) and not is_over(answer):
            raise answer
    return outcomes_of(decision, (yield from _described(decision)))


def _check_not_lost(
    decision: Decision, outcomes: Mapping[Winner, Outcome], *, runs_again: bool
) -> None:
    lost = [each.transactional_id for each in of_kind(outcomes, Outcome.ABORTED)]
    unknown = [each.transactional_id for each in of_kind(outcomes, Outcome.UNKNOWN)]
    if lost or unknown:
        raise DecidedRowsLostError(
            decision.batch, lost, len(outcomes), unknown, runs_again=runs_again
        )
