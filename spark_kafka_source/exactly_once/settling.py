"""The ends of what is decided: all at once, or the most urgent first. Anybody may do it.

A decision is irrevocable once one of its transactions is committed. If one has timed out before, or
is about to, no reader has seen a row, and the query writes the micro-batch again. Then the rest is
aborted, and the micro-batch can be decided anew. That loses nothing. Ends that come too late do.
So the most urgent transaction is committed first, alone: its fate is the fate of all.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from spark_kafka_source.admin.transactions import ONGOING, TransactionDescription
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once.checks import is_soon_over
from spark_kafka_source.exactly_once.decision import Decision, Winner
from spark_kafka_source.exactly_once.endings import Outcome, begun, is_over, outcome
from spark_kafka_source.exactly_once.errors import DecidedRowsLostError, NotYetCommittedError
from spark_kafka_source.exactly_once.stories import Story, describe, described, end_each

Described = Mapping[str, TransactionDescription | None]


def settle(decision: Decision, *, runs_again: bool = True) -> Story[bool]:
    """Commit what is open of a decision. Return False if all of it is aborted, so that none counts.

    `runs_again` says whether the query repeats the micro-batch. Raises `NotYetCommittedError`, and
    `DecidedRowsLostError` if some rows are lost.
    """
    found, urgent = yield from _looked_at(decision)
    outcomes = outcomes_of(decision, found)
    if set(outcomes.values()) == {Outcome.OPEN}:
        if urgent.is_soon_over and runs_again:
            outcomes = yield from _abort(decision, urgent.winners[:1])
        else:
            outcomes = yield from _commit(decision, outcomes, urgent.winners[:1])
    if set(outcomes.values()) == {Outcome.ABORTED, Outcome.OPEN} and runs_again:
        outcomes = yield from _abort(decision, of_kind(outcomes, Outcome.OPEN))
    outcomes = yield from _commit(decision, outcomes, of_kind(outcomes, Outcome.OPEN))
    return _is_committed(decision, outcomes, runs_again=runs_again)


def settle_for_others(decision: Decision) -> Story[None]:
    """Commit what is open of a decision, unless something of it is lost: a driver tells that.

    For tasks, which do not hold the control id.
    """
    found, urgent = yield from _looked_at(decision)
    outcomes = outcomes_of(decision, found)
    if urgent.is_soon_over:
        return
    for some in (urgent.winners[:1], urgent.winners[1:]):
        if not set(outcomes.values()) <= {Outcome.OPEN, Outcome.COMMITTED}:
            return
        left = [each for each in some if outcomes[each] is Outcome.OPEN]
        outcomes = yield from _commit(decision, outcomes, left)


def commit_all(decision: Decision) -> Story[bool]:
    """Commit a decision's transactions, all at once: they have just been seen open.

    Return False if all of it is aborted, so that none counts. Raises `NotYetCommittedError`, and
    `DecidedRowsLostError` if some rows are lost.
    """
    outcomes = dict.fromkeys(decision.winners, Outcome.OPEN)
    outcomes = yield from _commit(decision, outcomes, decision.winners)
    return _is_committed(decision, outcomes, runs_again=True)


def outcomes_of(decision: Decision, found: Described) -> dict[Winner, Outcome]:
    """Return the outcome of each decided transaction."""
    return {each: outcome(each, found[each.transactional_id]) for each in decision.winners}


class Urgency(NamedTuple):
    """The order in which decided transactions time out."""

    winners: tuple[Winner, ...]
    is_soon_over: bool
    """Whether the first of those that are open has too little time left for all ends."""


def urgency(decision: Decision, found: Described, now_ms: int) -> Urgency:
    """Return how urgent the ends of a decision are."""

    def left_ms(winner: Winner) -> int:
        state = found[winner.transactional_id]
        return 0 if state is None else state.remaining_ms(now_ms)

    winners = sorted(decision.winners, key=left_ms)
    states = [found[each.transactional_id] for each in winners]
    open_ones = [each for each in states if each is not None and each.state == ONGOING]
    soon_over = any(is_soon_over(each, each.remaining_ms(now_ms)) for each in open_ones)
    return Urgency(tuple(winners), soon_over)


def of_kind(outcomes: Mapping[Winner, Outcome], kind: Outcome) -> list[Winner]:
    """Return the decided transactions with this outcome."""
    return [each for each, found in outcomes.items() if found is kind]


def _described(decision: Decision) -> Story[Described]:
    return (yield from describe(map(begun, decision.winners)))


def _looked_at(decision: Decision) -> Story[tuple[Described, Urgency]]:
    heard = yield (described(tuple(map(begun, decision.winners))),)
    (found,) = heard.answers
    return found, urgency(decision, found, heard.now_ms)


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
        outcomes |= {each: outcome(each, found[each.transactional_id]) for each in errors}
    return outcomes


def _abort(decision: Decision, some: Iterable[Winner]) -> Story[dict[Winner, Outcome]]:
    """Abort open transactions. Return the outcomes of all.

    A driver that stood still, or a task, may commit them just now.
    """
    for answer in (yield from end_each([each[:2] for each in some], commit=False)):
        if isinstance(answer, KafkaError) and not is_over(answer):
            raise answer
    return outcomes_of(decision, (yield from _described(decision)))


def _is_committed(
    decision: Decision, outcomes: Mapping[Winner, Outcome], *, runs_again: bool
) -> bool:
    """Return False if all is aborted. Raises `DecidedRowsLostError` if some rows are lost."""
    if set(outcomes.values()) == {Outcome.ABORTED}:
        return False
    lost = [each.transactional_id for each in of_kind(outcomes, Outcome.ABORTED)]
    unknown = [each.transactional_id for each in of_kind(outcomes, Outcome.UNKNOWN)]
    if lost or unknown:
        raise DecidedRowsLostError(
            decision.batch, lost, len(outcomes), unknown, runs_again=runs_again
        )
    return True
