"""Wrong protocols: each has one fault, and a scenario in which the explorer must find it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from unittest.mock import patch

from spark_kafka_source.exactly_once import checks, replays, settling, worker
from spark_kafka_source.exactly_once import driver as driver_module
from spark_kafka_source.exactly_once.decision import (
    BatchId,
    Decision,
    LastDecisions,
    Outcome,
    Winner,
)
from spark_kafka_source.exactly_once.driver import Driver, PreparedWrite
from spark_kafka_source.exactly_once.endings import Found, by_coordinator, is_open
from spark_kafka_source.exactly_once.errors import OtherDriverError, ReplayDiffersError
from spark_kafka_source.exactly_once.requests import (
    DescribeTransactions,
    FetchDecisions,
    InitProducerId,
    ask,
    end_each,
)
from spark_kafka_source.exactly_once.slots import Slot
from spark_kafka_source.producer import ProducerId
from spark_kafka_source.producer.generation import Generation
from tests.exactly_once.explorer import brokers as model
from tests.exactly_once.explorer.brokers import NAMES, Brokers
from tests.exactly_once.explorer.exploring import Scenario
from tests.exactly_once.explorer.spark import TASKS, NumberedSlots

FIRST, SECOND = Generation.FIRST, Generation.SECOND


class Mutant(NamedTuple):
    """A wrong protocol, and where its fault shows."""

    scenario: Scenario
    parts: Mapping[str, Any] = {}
    patches: Sequence[Any] = ()


class FencesWithoutCheck(Driver):
    """It decides although another driver has fenced since its tasks looked."""

    def _check_control(self, *_: Any) -> None:
        pass


class ComparesEpochs(Driver):
    """It takes its own fence for another driver's, if that is repeated."""

    def _check_control(self, prepared_write: PreparedWrite, control: ProducerId) -> None:
        first = control._replace(epoch=0)
        expected = {
            seen.control.bumped() if seen.control else first for seen in prepared_write.seen
        }
        if expected != {control}:
            raise OtherDriverError(NAMES.prefix, "the epoch")


class ReadsBeforeItFences(Driver):
    """It believes in the last decisions before its fence. Another one may come between."""

    def _take_control(self, prepared_write: PreparedWrite) -> Any:
        decisions = yield from ask(FetchDecisions())
        yield from super()._take_control(prepared_write)
        self._decisions = decisions

    def _check_control(self, *_: Any) -> None:
        pass


class SettlesOthersOnly(Driver):
    """It takes its own last decision for committed."""

    def _settle(self, decision: Any, **options: Any) -> Any:
        if self._control is None or not self._made(decision):
            yield from super()._settle(decision, **options)

    def _made(self, decision: Decision) -> bool:
        return decision.batch.run_id == "r0"


class SettlesNothing(Driver):
    """It takes the last decision of another run for committed."""

    def _settle(self, *_: Any, **__: Any) -> Any:
        yield from ()

    def _is_settled(self, _: Any) -> bool:
        return True


class AbortsBlindly(Driver):
    """It aborts the transactions of a commit that raised, without a look at the decision."""

    def abort(self, _: Any, attempts: Any, __: Any) -> Any:
        self._decisions = LastDecisions()
        yield from self._sweep({each[:2] for each in attempts})


class ForgetsRun(Driver):
    """It leaves what other attempts have left open."""

    def _sweep(self, *_: Any) -> Any:
        yield from ()


class SettlesOneWrite(Driver):
    """It settles the last decision of one write, and not of the others."""

    def _settle_all(self, decisions: LastDecisions, batch: BatchId, *_: Any) -> Any:
        yield from super()._settle_all(LastDecisions(decisions.stored[:1]), batch)

    def _can_skip_fence(self) -> bool:
        return super()._can_skip_fence() or self._control is not None


class SparesOneWrite(Driver):
    """It aborts what is decided of all writes but one."""

    def _sweep(self, leftovers: Any) -> Any:
        decisions, self._decisions = self._decisions, LastDecisions(self._decisions.stored[-1:])
        yield from super()._sweep(leftovers)
        self._decisions = decisions


class RemembersOneWrite(Driver):
    """It takes the last decision for that of each write."""

    def _replayed(self, decisions: LastDecisions, replay: PreparedWrite) -> Decision | None:
        batch = replay.batch
        found = [each for _, each in decisions.latest() if each.batch.batch_id == batch.batch_id]
        return found[-1] if found and found[-1].batch != batch else None


class GivesAnotherRunUp(Driver):
    """It takes what another run has decided about this micro-batch for final."""

    def _settle_all(self, decisions: LastDecisions, *_: Any) -> Any:
        for _, each in decisions.latest():
            yield from self._settle(each, runs_again=False)


class BelievesItsMemory(Driver):
    """It does not begin without memory if another process of its run has decided."""

    def commit(self, work: Any) -> Any:
        if self._can_skip_fence():
            return (yield from self._commit(work))
        return (yield from super().commit(work))


class SweepsOtherRuns(Driver):
    """An abort ends transactions of other runs, too."""

    def _of_run(self, _: str, listed: Any) -> Any:
        return listed


class GoesOnUnasked(NumberedSlots):
    """A worker takes a new epoch, and does not ask whether the transaction before was committed."""

    def _following(self, slot: Slot) -> Any:
        producer: ProducerId = yield from ask(InitProducerId(slot.transactional_id))
        return producer


def same_ids(*arguments: Any) -> NumberedSlots:
    """The slots of all processes of a run, with the same ids."""
    names, space, generation, _ = arguments
    return NumberedSlots(names, space, generation, 0)


def ids_of_the_dead(*arguments: Any) -> NumberedSlots:
    """The slots of a process that takes the ids of the one before it."""
    names, space, generation, process = arguments
    return NumberedSlots(names, space, generation, process % TASKS)


def ends_nothing(_: Any) -> Any:
    """A worker that leaves what was decided to its driver."""
    yield from ()


def by_later(brokers: Brokers, winner: Winner) -> Found:
    """The outcome by the rule of version 0.3: a later transaction proves a commit."""
    found = by_state(brokers, winner)
    is_later = found.outcome is Outcome.UNKNOWN and brokers.find(winner.transactional_id)
    return Found(Outcome.COMMITTED) if is_later else found


def by_state(brokers: Brokers, winner: Winner) -> Found:
    """The outcome by the coordinator's word alone."""
    transactional_id = winner.transactional_id
    state = model.ask(brokers, DescribeTransactions((transactional_id,)))[1][transactional_id]
    if is_open(winner, state):
        return Found(Outcome.OPEN, state)
    return Found(by_coordinator(winner, state))


def not_urgent(*_: Any) -> bool:
    """Nothing is ever urgent."""
    return False


def commit_only(decision: Decision, doubt: Any, **_: Any) -> Any:
    """All ends at once, whatever time has passed."""
    yield from settling.commit_all(decision, doubt)
    return True


def commit_blindly(_: Any, outcomes: Any, winners: Any) -> Any:
    """A refused commit is taken for one that has happened before."""
    asked = list(winners)
    yield from end_each([winner[:2] for winner in asked], commit=True)
    return outcomes | dict.fromkeys(asked, Outcome.COMMITTED)


def compare_counts(_: Any, names: Any, decided: Decision, batch: BatchId, replayed: Any) -> None:
    """As many rows count as the same rows."""
    if replayed[:2] != decided.content[:2]:
        raise ReplayDiffersError(names.prefix, batch, decided.content, replayed)


_ONE = Scenario(SECOND, runs=1, batches=2)
AB = ("a", "b")

MUTANTS = {
    "the fence is not checked": Mutant(
        Scenario(FIRST, runs=2, batches=2), {"driver": FencesWithoutCheck}
    ),
    "only epochs are compared": Mutant(
        Scenario(SECOND, runs=1, batches=1, faults={"repeated": 1}), {"driver": ComparesEpochs}
    ),
    "the last decision is read before the fence": Mutant(
        Scenario(SECOND, runs=2, batches=1), {"driver": ReadsBeforeItFences}
    ),
    "the own decision is not settled": Mutant(
        Scenario(SECOND, runs=1, batches=2, faults={"swallow": 1, "lost": 1}),
        {"driver": SettlesOthersOnly},
    ),
    "the last decision is not settled": Mutant(
        _ONE,
        {"driver": SettlesNothing},
        [patch.object(worker, "settle_for_others", ends_nothing)],
    ),
    "aborted without a look": Mutant(
        Scenario(SECOND, runs=1, batches=1, faults={"lost": 1}), {"driver": AbortsBlindly}
    ),
    "an abort ends transactions of other runs": Mutant(
        Scenario(SECOND, runs=2, batches=2, written=1, faults={"lost": 1}),
        {"driver": SweepsOtherRuns},
    ),
    "nothing is swept": Mutant(
        Scenario(SECOND, runs=1, batches=1, faults={"worker": 1}), {"driver": ForgetsRun}
    ),
    "a slot goes on and does not ask": Mutant(
        Scenario(FIRST, runs=1, batches=2, faults={"swallow": 1, "lost": 1}),
        {"slots": GoesOnUnasked},
    ),
    "two processes have the same ids": Mutant(_ONE, {"slots": same_ids}),
    "a process takes the ids of a dead one": Mutant(
        Scenario(SECOND, runs=1, batches=1, faults={"death": 1}), {"slots": ids_of_the_dead}
    ),
    "a later transaction proves a commit": Mutant(
        Scenario(SECOND, runs=1, batches=1, faults={"taken": 1}),
        patches=[patch.object(model, "outcome_of", by_later)],
    ),
    "outcomes by the coordinator alone": Mutant(
        Scenario(SECOND, runs=1, batches=1, faults={"expired": 1}),
        patches=[patch.object(model, "outcome_of", by_state)],
    ),
    "a refused commit is taken for one": Mutant(
        Scenario(SECOND, runs=1, batches=1, faults={"terminated": 1}),
        patches=[patch.object(settling, "_commit", commit_blindly)],
    ),
    "the rest of an aborted decision is committed": Mutant(
        Scenario(SECOND, runs=1, batches=1, faults={"aborted": 1}),
        patches=[patch.object(driver_module, "settle", commit_only)],
    ),
    "not the most urgent first": Mutant(
        Scenario(SECOND, runs=1, batches=1, faults={"long": 1}),
        patches=[patch.object(driver_module, "settle", commit_only)],
    ),
    "committed although it is soon over": Mutant(
        Scenario(SECOND, runs=1, batches=1, faults={"long": 1}),
        patches=[patch.object(settling, "is_soon_over", not_urgent)],
    ),
    "only the counts of a replay are compared": Mutant(
        Scenario(SECOND, runs=1, batches=1, written=1, faults={"restored": 1}),
        patches=[patch.object(replays.Caution, "compare", compare_counts)],
    ),
    "checkpoints are not compared": Mutant(
        Scenario(SECOND, runs=1, copies=1, written=1, batches=2),
        patches=[patch.object(checks, "_is_other", lambda *_: False)],
    ),
    "one write is settled": Mutant(
        Scenario(SECOND, runs=1, batches=1, writes=AB, faults={"swallow": 1, "lost": 1}),
        {"driver": SettlesOneWrite},
    ),
    "the decided transactions of one write are spared": Mutant(
        Scenario(SECOND, runs=1, batches=2, writes=AB, faults={"swallow": 1, "lost": 2}),
        {"driver": SparesOneWrite},
    ),
    "one memory for all writes": Mutant(
        Scenario(SECOND, runs=1, batches=1, writes=AB), {"driver": RemembersOneWrite}
    ),
    "another run's write is not repeated": Mutant(
        Scenario(SECOND, runs=1, batches=1, writes=AB, faults={"long": 1}),
        {"driver": GivesAnotherRunUp},
    ),
    "a process that has not decided last believes its memory": Mutant(
        Scenario(SECOND, runs=1, batches=2, writes=AB, faults={"turn": 2}),
        {"driver": BelievesItsMemory},
    ),
}
