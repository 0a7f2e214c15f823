"""The ends of decided transactions, by any process: all at once, or the most urgent first.

A decision is irrevocable once one of its transactions is committed. If one has timed out before, or
is about to, no reader has seen a row, and the query writes the micro-batch again. Then the rest is
aborted, and the micro-batch can be decided anew. That loses nothing. Ends that come too late do.
So the most urgent transaction is committed first, alone: its fate is the fate of all.
"""

from collections.abc import Callable, Iterable, Mapping

from spark_kafka_source.errors import KafkaError, listed
from spark_kafka_source.exactly_once.checks import is_soon_over
from spark_kafka_source.exactly_once.decision import Decision, Outcome, Winner
from spark_kafka_source.exactly_once.endings import Found, is_open, is_over, outcomes_of
from spark_kafka_source.exactly_once.errors import (
    DecidedRowsLostError,
    NotYetCommittedError,
    ids_text,
)
from spark_kafka_source.exactly_once.requests import (
    DescribeTransactions,
    ReadOutcomes,
    Steps,
    ask,
    end_each,
)

Outcomes = dict[Winner, Outcome]
LOST = (Outcome.ABORTED, Outcome.BROKEN, Outcome.REPLACED)
DOUBTFUL = (Outcome.TOPIC_GONE, Outcome.UNKNOWN)


def settle(
    decision: Decision, doubt: Callable[[str], None], *, runs_again: bool = True
) -> Steps[bool]:
    """Commit a decision's open transactions. Return False if all are aborted: it does not count.

    `runs_again` says whether the query repeats the micro-batch. `doubt` is told of transactions
    that may not be committed. Raises `NotYetCommittedError`, and `DecidedRowsLostError` if some
    rows are lost.
    """
    outcomes, urgent, is_urgent = yield from _look(decision)
    if set(outcomes.values()) == {Outcome.OPEN}:
        if is_urgent and runs_again:
            outcomes = yield from _abort(decision, urgent[:1])
        else:
            outcomes = yield from _commit(decision, outcomes, urgent[:1])
    left = with_outcome(outcomes, Outcome.OPEN, Outcome.BROKEN)
    if left and runs_again and _is_undone(set(outcomes.values())):
        outcomes = yield from _abort(decision, left)
    outcomes = yield from _commit(decision, outcomes, with_outcome(outcomes, Outcome.OPEN))
    return is_committed(decision, outcomes, doubt, runs_again=runs_again)


def _is_undone(found: set[Outcome]) -> bool:
    """Whether some transactions are aborted, and none is committed."""
    undone = {Outcome.ABORTED, Outcome.BROKEN}
    return bool(found & undone) and found <= undone | {Outcome.OPEN}


def settle_for_others(decision: Decision) -> Steps[None]:
    """Commit a decision's open transactions, unless some are lost: a driver raises the error.

    For tasks, which do not hold the control id.
    """
    ids = tuple(winner.transactional_id for winner in decision.winners)
    states = yield from ask(DescribeTransactions(ids))
    if not any(is_open(winner, states[winner.transactional_id]) for winner in decision.winners):
        return
    outcomes, urgent, is_urgent = yield from _look(decision)
    if is_urgent:
        return
    for winners in (urgent[:1], urgent[1:]):
        if not set(outcomes.values()) <= {Outcome.OPEN, Outcome.COMMITTED}:
            return
        left = [winner for winner in winners if outcomes[winner] is Outcome.OPEN]
        outcomes = yield from _commit(decision, outcomes, left)


def commit_all(decision: Decision, doubt: Callable[[str], None]) -> Steps[bool]:
    """Commit a decision's transactions, all at once: they have just been seen open.

    Return False if all are aborted: the decision does not count. Raises `NotYetCommittedError`, and
    `DecidedRowsLostError` if some rows are lost.
    """
    outcomes = dict.fromkeys(decision.winners, Outcome.OPEN)
    outcomes = yield from _commit(decision, outcomes, decision.winners)
    return is_committed(decision, outcomes, doubt, runs_again=True)


def with_outcome(outcomes: Mapping[Winner, Outcome], *wanted: Outcome) -> list[Winner]:
    """Return the decided transactions with one of these outcomes."""
    return [winner for winner, found in outcomes.items() if found in wanted]


def _look(decision: Decision) -> Steps[tuple[Outcomes, list[Winner], bool]]:
    """Return the outcomes, the winners in the order in which they time out, and whether it is late.

    It is late if an open transaction has too little time left for all ends.
    """
    answered = yield (ReadOutcomes(decision.winners),)
    found: dict[Winner, Found] = answered.answers[0]
    states = {winner: state for winner, (_, state) in found.items() if state is not None}
    left_ms = {winner: state.remaining_ms(answered.now_ms) for winner, state in states.items()}
    urgent = sorted(decision.winners, key=lambda winner: left_ms.get(winner, 0))
    is_late = any(is_soon_over(states[winner], left_ms[winner]) for winner in states)
    return outcomes_of(found), urgent, is_late


def _outcomes(winners: Iterable[Winner]) -> Steps[Outcomes]:
    return outcomes_of((yield from ask(ReadOutcomes(tuple(winners)))))


def _commit(decision: Decision, outcomes: Outcomes, winners: Iterable[Winner]) -> Steps[Outcomes]:
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
    return outcomes | (yield from _outcomes(errors)) if errors else outcomes


def _abort(decision: Decision, winners: Iterable[Winner]) -> Steps[Outcomes]:
    """Abort open transactions. Return the outcomes of all.

    A driver that stood still, or a task, may commit them just now.
    """
    for answer in (yield from end_each([winner[:2] for winner in winners], commit=False)):
        if isinstance(answer, KafkaError) and not is_over(answer):
            raise answer
    return (yield from _outcomes(decision.winners))


def is_committed(
    decision: Decision, outcomes: Outcomes, doubt: Callable[[str], None], *, runs_again: bool
) -> bool:
    """Return False if all is aborted. Raises `DecidedRowsLostError` if some rows are lost.

    A query that has gone on has seen the micro-batch committed, unless code swallowed an error. So
    an outcome that nobody knows is a doubt then.
    """
    if set(outcomes.values()) == {Outcome.ABORTED}:
        return False
    if with_outcome(outcomes, *LOST) or (runs_again and with_outcome(outcomes, Outcome.UNKNOWN)):
        raise lost(decision, outcomes, runs_again=runs_again)
    for outcome in DOUBTFUL:
        if winners := with_outcome(outcomes, outcome):
            ids = ids_text([winner.transactional_id for winner in winners])
            topics = {winner.place.topic_partition.topic for winner in winners if winner.place}
            where = f" (topic {listed(map(repr, sorted(topics)))})" if topics else ""
            doubt(f"{decision.batch}: the rows of {ids} are {outcome.value}{where}")
    return True


def lost(decision: Decision, outcomes: Outcomes, *, runs_again: bool) -> DecidedRowsLostError:
    """Return the error about a decision some of whose rows are not committed for certain."""
    found = {
        outcome: [winner.transactional_id for winner in with_outcome(outcomes, outcome)]
        for outcome in (*LOST, *DOUBTFUL)
    }
    return DecidedRowsLostError(decision.batch, found, len(outcomes), runs_again=runs_again)
