"""The ends of decided transactions, by any process: all at once, or the most urgent first.

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
from spark_kafka_source.exactly_once.requests import Steps, describe, described, end_each

Described = Mapping[str, TransactionDescription | None]


def settle(decision: Decision, *, runs_again: bool = True) -> Steps[bool]:
    """Commit a decision's open transactions. Return False if all are aborted: it does not count.

    `runs_again` says whether the query repeats the micro-batch. Raises `NotYetCommittedError`, and
    `DecidedRowsLostError` if some rows are lost.
    """
    states, urgent = yield from _described_with_urgency(decision)
    outcomes = outcomes_of(decision, states)
    if set(outcomes.values()) == {Outcome.OPEN}:
        if urgent.is_soon_over and runs_again:
            outcomes = yield from _abort(decision, urgent.winners[:1])
        else:
            outcomes = yield from _commit(decision, outcomes, urgent.winners[:1])
    if set(outcomes.values()) == {Outcome.ABORTED, Outcome.OPEN} and runs_again:
        outcomes = yield from _abort(decision, with_outcome(outcomes, Outcome.OPEN))
    outcomes = yield from _commit(decision, outcomes, with_outcome(outcomes, Outcome.OPEN))
    return _is_committed(decision, outcomes, runs_again=runs_again)


def settle_for_others(decision: Decision) -> Steps[None]:
    """Commit a decision's open transactions, unless some are lost: a driver raises the error.

    For tasks, which do not hold the control id.
    """
    states, urgent = yield from _described_with_urgency(decision)
    outcomes = outcomes_of(decision, states)
    if urgent.is_soon_over:
        return
    for winners in (urgent.winners[:1], urgent.winners[1:]):
        if not set(outcomes.values()) <= {Outcome.OPEN, Outcome.COMMITTED}:
            return
        left = [winner for winner in winners if outcomes[winner] is Outcome.OPEN]
        outcomes = yield from _commit(decision, outcomes, left)


def commit_all(decision: Decision) -> Steps[bool]:
    """Commit a decision's transactions, all at once: they have just been seen open.

    Return False if all are aborted: the decision does not count. Raises `NotYetCommittedError`, and
    `DecidedRowsLostError` if some rows are lost.
    """
    outcomes = dict.fromkeys(decision.winners, Outcome.OPEN)
    outcomes = yield from _commit(decision, outcomes, decision.winners)
    return _is_committed(decision, outcomes, runs_again=True)


def outcomes_of(decision: Decision, states: Described) -> dict[Winner, Outcome]:
    """Return the outcome of each decided transaction."""
    return {winner: outcome(winner, states[winner.transactional_id]) for winner in decision.winners}


class Urgency(NamedTuple):
    """The order in which decided transactions time out."""

    winners: tuple[Winner, ...]
    is_soon_over: bool
    """Whether the first of those that are open has too little time left for all ends."""


def urgency(decision: Decision, states: Described, now_ms: int) -> Urgency:
    """Return how urgent the ends of a decision are."""

    def left_ms(winner: Winner) -> int:
        state = states[winner.transactional_id]
        return 0 if state is None else state.remaining_ms(now_ms)

    winners = sorted(decision.winners, key=left_ms)
    soon_over = any(
        is_soon_over(state, state.remaining_ms(now_ms))
        for state in states.values()
        if state is not None and state.state == ONGOING
    )
    return Urgency(tuple(winners), soon_over)


def with_outcome(outcomes: Mapping[Winner, Outcome], wanted: Outcome) -> list[Winner]:
    """Return the decided transactions with this outcome."""
    return [winner for winner, found in outcomes.items() if found is wanted]


def _described(decision: Decision) -> Steps[Described]:
    return (yield from describe(map(begun, decision.winners)))


def _described_with_urgency(decision: Decision) -> Steps[tuple[Described, Urgency]]:
    answered = yield (described(tuple(map(begun, decision.winners))),)
    (states,) = answered.answers
    return states, urgency(decision, states, answered.now_ms)


def _commit(
    decision: Decision, outcomes: dict[Winner, Outcome], winners: Iterable[Winner]
) -> Steps[dict[Winner, Outcome]]:
    """Commit some open transactions. Return the outcomes of all. Raises `NotYetCommittedError`."""
    asked = list(winners)
    answers = yield from end_each([winner[:2] for winner in asked], commit=True)
    errors = {
        winner: answer
        for winner, answer in zip(asked, answers, strict=True)
        if isinstance(answer, KafkaError)
    }
    for error in errors.values():
        if not is_over(error):
            left = {*with_outcome(outcomes, Outcome.OPEN)} - {*asked} | {*errors}
            ids = [winner.transactional_id for winner in decision.winners if winner in left]
            total = len(decision.winners)
            raise NotYetCommittedError(decision.batch, ids, total, error) from error
    outcomes = outcomes | dict.fromkeys(asked, Outcome.COMMITTED)
    if errors:
        states = yield from _described(decision)
        outcomes |= {winner: outcome(winner, states[winner.transactional_id]) for winner in errors}
    return outcomes


def _abort(decision: Decision, winners: Iterable[Winner]) -> Steps[dict[Winner, Outcome]]:
    """Abort open transactions. Return the outcomes of all.

    A driver that stood still, or a task, may commit them just now.
    """
    for answer in (yield from end_each([winner[:2] for winner in winners], commit=False)):
        if isinstance(answer, KafkaError) and not is_over(answer):
            raise answer
    return outcomes_of(decision, (yield from _described(decision)))


def _is_committed(
    decision: Decision, outcomes: Mapping[Winner, Outcome], *, runs_again: bool
) -> bool:
    """Return False if all is aborted. Raises `DecidedRowsLostError` if some rows are lost."""
    if set(outcomes.values()) == {Outcome.ABORTED}:
        return False
    lost = [winner.transactional_id for winner in with_outcome(outcomes, Outcome.ABORTED)]
    unknown = [winner.transactional_id for winner in with_outcome(outcomes, Outcome.UNKNOWN)]
    if lost or unknown:
        raise DecidedRowsLostError(
            decision.batch, lost, len(outcomes), unknown, runs_again=runs_again
        )
    return True
