"""Wrong protocols: each has one fault, and a scenario in which the explorer must find it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

from spark_kafka_source.exactly_once.leases import Owner

from spark_kafka_source.admin.transactions import COMMITTED, TransactionDescription
from spark_kafka_source.exactly_once import driver as driver_module
from spark_kafka_source.exactly_once import settling, slots, worker
from spark_kafka_source.exactly_once.decision import BatchId, Decision, LastDecisions, Winner
from spark_kafka_source.exactly_once.driver import Driver, PreparedWrite
from spark_kafka_source.exactly_once.endings import Outcome, outcome
from spark_kafka_source.exactly_once.errors import OtherDriverError
from spark_kafka_source.exactly_once.requests import FetchDecisions, InitProducerId, ask
from spark_kafka_source.exactly_once.slots import Slot, Slots
from spark_kafka_source.producer import ProducerId, is_next
from spark_kafka_source.producer.generation import Generation
from tests.exactly_once.explorer.brokers import NAMES
from tests.exactly_once.explorer.exploring import Scenario
from tests.exactly_once.explorer.spark import TakeLease

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
        if not all(is_next(each.control, control) for each in prepared_write.seen):
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


class AbortsUnmarked(Driver):
    """An abort ends transactions of other runs, and leaves no mark."""

    def _abort_others(self, _: Any, listed: Any) -> Any:
        yield from self._sweep(listed)


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

    def _replayed(self, decisions: LastDecisions, batch: BatchId, _: str) -> Decision | None:
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


class GoesOnLate(Slots):
    """A worker goes on in a slot whose transaction may have timed out."""

    def _continued(self, slot: Slot, batch_id: int, now_ms: int) -> Any:
        yield from ()
        after_end: Any = self._generation.after_end(slot.producer)
        slot.owner.note(slot.number, after_end)
        return replace(slot, producer=after_end, batch_id=batch_id, began_ms=now_ms)


class InheritsBlindly(Slots):
    """A process goes on in the slots of a former one, and does not ask what has become of them."""

    def inherit(self) -> Any:
        yield from ()
        for number, producer in enumerate(self._owner.begun):
            following = producer and self._generation.after_end(producer)
            if following is not None:
                slot = Slot(
                    self._owner, number, self._id(number), following, -1, 0, is_committed=True
                )
                self._slots.append(slot)


class NotesLate(Slots):
    """A process does not note that it is about to ask for an epoch."""

    def _initialised(self, slot: Slot) -> Any:
        return (yield from ask(InitProducerId(slot.transactional_id)))


class NotesNewSlotsOnly(Slots):
    """A process does not note that it goes on in a slot."""

    def _continued(self, slot: Slot, *arguments: Any) -> Any:
        without_notes = replace(slot, owner=Owner(slot.owner.number))
        continued = yield from super()._continued(without_notes, *arguments)
        return continued and replace(continued, owner=slot.owner)


def ends_nothing(_: Any) -> Any:
    """A worker that leaves what was decided to its driver."""
    yield from ()


def by_epoch(winner: Winner, found: TransactionDescription | None) -> Outcome:
    """The outcome by the epoch alone: any later one is a later transaction."""
    if found is None:
        return Outcome.UNKNOWN
    ahead = found.producer.epoch - winner.producer.epoch
    if ahead == 0:
        return Outcome.OPEN
    if ahead == 1 and found.state in COMMITTED:
        return Outcome.COMMITTED
    if ahead == 1 and found.state == "CompleteAbort":
        return Outcome.ABORTED
    return Outcome.COMMITTED


def without_later(winner: Winner, found: TransactionDescription | None) -> Outcome:
    """The outcome without the rule about later transactions."""
    is_later = found is not None and found.started_at_ms != winner.started_at_ms
    return Outcome.UNKNOWN if is_later else outcome(winner, found)


def not_urgent(*_: Any) -> bool:
    """Nothing is ever urgent."""
    return False


def commit_only(decision: Decision, *, runs_again: bool = True) -> Any:
    """All ends at once, whatever time has passed."""
    del runs_again
    yield from settling.commit_all(decision)
    return True


SHARED = partial(TakeLease, is_shared=True)
"""A lease that two living processes have."""
ENDED = frozenset({*COMMITTED, "CompleteAbort"})
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
    "nothing is swept": Mutant(
        Scenario(SECOND, runs=1, batches=1, faults={"worker": 1}), {"driver": ForgetsRun}
    ),
    "a slot goes on late": Mutant(
        Scenario(SECOND, runs=1, batches=3, faults={"swallow": 1, "lost": 1, "long": 1}),
        {"slots": GoesOnLate},
    ),
    "a slot goes on after an abort": Mutant(
        Scenario(SECOND, runs=1, batches=3, faults={"swallow": 1, "lost": 1, "long": 1}),
        patches=[patch.object(slots, "COMMITTED", ENDED)],
    ),
    "outcomes by epoch, and a timeout raises it twice": Mutant(
        Scenario(SECOND, runs=1, batches=1, faults={"long": 1}, timeout_bumps=2),
        patches=[patch.object(settling, "outcome", by_epoch)],
    ),
    "a later transaction tells nothing": Mutant(
        _ONE, patches=[patch.object(settling, "outcome", without_later)]
    ),
    "not the most urgent first": Mutant(
        Scenario(SECOND, runs=1, batches=1, faults={"long": 1}),
        patches=[
            patch.object(driver_module, "settle", commit_only),
        ],
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
    "committed although it is soon over": Mutant(
        Scenario(SECOND, runs=1, batches=1, faults={"long": 1}),
        patches=[patch.object(settling, "is_soon_over", not_urgent)],
    ),
    "an abort leaves no mark": Mutant(
        Scenario(SECOND, runs=2, batches=2, written=1, faults={"lost": 1}),
        {"driver": AbortsUnmarked},
    ),
    "a process inherits slots and does not ask": Mutant(
        Scenario(SECOND, runs=1, batches=1, faults={"long": 1}), {"slots": InheritsBlindly}
    ),
    "an epoch that a dead process has asked for comes late": Mutant(
        Scenario(SECOND, runs=1, batches=1, faults={"death": 1}), {"slots": NotesLate}
    ),
    "rows that a dead process has sent come late": Mutant(
        Scenario(SECOND, runs=1, batches=2, faults={"death": 1}), {"slots": NotesNewSlotsOnly}
    ),
    "two processes have one lease": Mutant(_ONE, {"take": SHARED}),
}
