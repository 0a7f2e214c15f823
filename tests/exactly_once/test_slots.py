"""A worker's slots and its look, without IO."""

from collections.abc import Iterable
from typing import Any

import pytest
from spark_kafka_source.exactly_once.leases import Owner

from spark_kafka_source.admin.transactions import TransactionDescription
from spark_kafka_source.errors import KafkaTimeoutError
from spark_kafka_source.exactly_once.decision import (
    BatchId,
    Decision,
    LastDecisions,
    Seen,
    StoredDecision,
)
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.exactly_once.requests import (
    Answered,
    DescribeTransactions,
    InitProducerId,
    Request,
    Steps,
)
from spark_kafka_source.exactly_once.slots import SLOT_BITS, Slot, Slots
from spark_kafka_source.exactly_once.worker import look
from spark_kafka_source.producer import Generation, ProducerId
from spark_kafka_source.topic_partition import TopicPartition

FIRST, SECOND = Generation.FIRST, Generation.SECOND
NAMES = Names("p")
TIMEOUT_MS = 60_000
HALF_MS = TIMEOUT_MS // 2
BEGUN = ProducerId(1, 4)


def told(steps: Steps[Any], answers: Iterable[Any] = ()) -> tuple[Any, list[Request]]:
    """Run steps with these answers. Return their result, and what they have asked."""
    asked: list[Request] = []
    left = iter(answers)
    try:
        requests = next(steps)
        while True:
            asked += requests
            requests = steps.send(Answered([next(left) for _ in requests], 0))
    except StopIteration as end:
        return end.value, asked


def new_slots(generation: Generation) -> Slots:
    return Slots(NAMES, NAMES.space, Owner(7), generation, TIMEOUT_MS)


def first_slot(slots: Slots, producer: ProducerId = BEGUN) -> Slot:
    slot, asked = told(slots.begin(0, 1_000), [producer])
    assert asked == [InitProducerId(slot.transactional_id)]
    assert not slot.is_guess
    return slot  # type: ignore[no-any-return]


def described(slot: Slot, state: str, epoch: int) -> dict[str, TransactionDescription]:
    producer = slot.producer._replace(epoch=epoch)
    name = slot.transactional_id
    return {name: TransactionDescription(name, state, producer, TIMEOUT_MS, 5, (), 0)}


def test_in_time_the_next_epoch_is_taken_without_a_request() -> None:
    slots = new_slots(SECOND)
    slot = first_slot(slots)
    following, asked = told(slots.begin(1, 1_000 + HALF_MS - 1))
    assert asked == []
    assert following.transactional_id == slot.transactional_id
    assert following.producer == ProducerId(1, 5)
    assert following.is_guess


@pytest.mark.parametrize("state", ["CompleteCommit", "PrepareCommit"])
def test_later_it_is_asked_whether_the_earlier_one_was_committed(state: str) -> None:
    slots = new_slots(SECOND)
    slot = first_slot(slots)
    following, asked = told(slots.begin(1, 1_000 + HALF_MS), [described(slot, state, 5)])
    assert [type(each) for each in asked] == [DescribeTransactions]
    assert following.producer == ProducerId(1, 5)
    assert not following.is_guess


@pytest.mark.parametrize(
    ("state", "epoch"),
    [
        ("Ongoing", 4),
        ("CompleteAbort", 5),
        ("PrepareAbort", 5),
        # The end of the transaction before, as a former coordinator tells it.
        ("CompleteCommit", 4),
    ],
)
def test_any_other_slot_is_never_used_again(state: str, epoch: int) -> None:
    slots = new_slots(SECOND)
    slot = first_slot(slots)
    answers = [described(slot, state, epoch), ProducerId(2, 0)]
    other, _ = told(slots.begin(1, 1_000 + HALF_MS), answers)
    assert other.transactional_id != slot.transactional_id
    assert other.producer == ProducerId(2, 0)


def test_an_epoch_that_has_no_next_one_is_not_guessed() -> None:
    slots = new_slots(SECOND)
    slot = first_slot(slots, ProducerId(1, 32_766))
    answers = [described(slot, "CompleteCommit", 0)]
    following, asked = told(slots.begin(1, 1_000), answers)
    assert [type(each) for each in asked] == [DescribeTransactions]
    assert following.producer == ProducerId(1, 0)


def test_in_the_first_generation_each_transaction_has_an_epoch_of_its_own() -> None:
    slots = new_slots(FIRST)
    slot = first_slot(slots)
    answers = [described(slot, "CompleteCommit", 4), ProducerId(1, 5)]
    following, asked = told(slots.begin(1, 1_000), answers)
    assert [type(each) for each in asked] == [DescribeTransactions, InitProducerId]
    assert following.transactional_id == slot.transactional_id
    assert following.producer == ProducerId(1, 5)


def test_two_attempts_of_a_micro_batch_have_two_slots() -> None:
    slots = new_slots(SECOND)
    first, second = first_slot(slots), first_slot(slots, ProducerId(2, 0))
    assert first.transactional_id != second.transactional_id
    again = [told(slots.begin(1, 1_000))[0] for _ in range(2)]
    assert {each.transactional_id for each in again} == {
        first.transactional_id,
        second.transactional_id,
    }


def test_a_worker_that_has_used_all_ids_of_its_owner_number_takes_another_one() -> None:
    """A worker may run thousands of tasks of a micro-batch."""
    leased = Leased()
    slots = Slots(NAMES, NAMES.space, leased, SECOND, TIMEOUT_MS)
    made = [first_slot(slots) for _ in range((1 << SLOT_BITS) + 2)]
    assert len({each.transactional_id for each in made}) == len(made)
    assert {each.owner for each in made[: 1 << SLOT_BITS]} == {leased}
    (other,) = {each.owner for each in made[1 << SLOT_BITS :]}
    assert other.number != leased.number
    leased.notes.clear()
    slots.retire(made[1])
    slots.retire(made[-1])  # Its number is 1, too.
    assert leased.notes == [(1, None)]


# -- inherited slots -------------------------------------------------------------------------------


class Leased(Owner):
    """A lease, with what a former process has begun, and the notes of this one."""

    def __init__(self, *begun: ProducerId | None) -> None:
        super().__init__(7)
        self.begun = begun
        self.notes: list[tuple[int, ProducerId | None]] = []

    def note(self, slot: int, producer: ProducerId | None) -> None:
        self.notes.append((slot, producer))


def inherited(generation: Generation, owner: Owner, *states: tuple[str, int] | None) -> Slots:
    """Slots that have asked about what was begun. Brokers tell these states and epochs."""
    slots = Slots(NAMES, NAMES.space, owner, generation, TIMEOUT_MS)
    ids = [slots._id(number) for number, each in enumerate(owner.begun) if each is not None]
    found = {
        name: each
        and TransactionDescription(name, each[0], ProducerId(1, each[1]), TIMEOUT_MS, 5, (), 0)
        for name, each in zip(ids, states, strict=True)
    }
    _, asked = told(slots.inherit(), [found])
    assert asked == [DescribeTransactions(tuple(ids))]
    return slots


@pytest.mark.parametrize("state", ["CompleteCommit", "PrepareCommit"])
def test_a_slot_whose_last_transaction_was_committed_is_inherited(state: str) -> None:
    owner = Leased(None, BEGUN)
    slots = inherited(SECOND, owner, (state, 5))
    slot, asked = told(slots.begin(0, 1_000))
    assert asked == []
    assert (slot.number, slot.producer, slot.is_guess) == (1, ProducerId(1, 5), False)
    assert owner.notes == [(1, ProducerId(1, 5))]
    following, _ = told(slots.begin(1, 2_000))
    assert (following.producer, following.is_guess) == (ProducerId(1, 6), True)
    assert owner.notes[1:] == [(1, ProducerId(1, 6))]


def test_in_the_first_generation_nobody_inherits_while_an_epoch_may_be_on_its_way() -> None:
    owner = Leased(BEGUN)
    slots = inherited(FIRST, owner, ("CompleteCommit", 4))
    slot, asked = told(slots.begin(0, 1_000), [ProducerId(1, 5)])
    assert asked == [InitProducerId(slot.transactional_id)]
    assert owner.notes == [(0, None), (0, ProducerId(1, 5))]


@pytest.mark.parametrize(
    ("generation", "state", "is_left"),
    [
        (SECOND, ("Ongoing", 4), True),
        (FIRST, ("Ongoing", 4), True),
        # Rows of the former process may be on their way, or a former coordinator tells this.
        (SECOND, ("CompleteCommit", 4), True),
        (SECOND, ("CompleteCommit", 3), True),
        (FIRST, ("CompleteCommit", 3), True),
        # Somebody else has this id, or the brokers have given it another producer id.
        (SECOND, ("CompleteCommit", 6), True),
        (FIRST, ("CompleteCommit", 5), True),
        (SECOND, ("CompleteAbort", 5), False),
        (SECOND, ("PrepareAbort", 5), False),
        (SECOND, ("Empty", 5), False),
        (FIRST, ("CompleteAbort", 4), False),
        (SECOND, None, False),
    ],
)
def test_any_other_slot_is_not_inherited(
    generation: Generation, state: tuple[str, int] | None, *, is_left: bool
) -> None:
    """One that can still be committed is left to the next process. Any other is given up."""
    owner = Leased(BEGUN)
    slots = inherited(generation, owner, state)
    assert owner.notes == ([] if is_left else [(0, None)])
    slot, asked = told(slots.begin(0, 1_000), [ProducerId(2, 0)])
    assert (slot.number, slot.producer) == (1, ProducerId(2, 0))
    assert asked == [InitProducerId(slot.transactional_id)]


def test_without_an_answer_nothing_is_inherited() -> None:
    owner = Leased(BEGUN)
    slots = Slots(NAMES, NAMES.space, owner, SECOND, TIMEOUT_MS)
    steps = slots.inherit()
    next(steps)
    with pytest.raises(StopIteration):
        steps.throw(KafkaTimeoutError("no coordinator"))
    assert told(slots.begin(0, 1_000), [ProducerId(2, 0)])[0].number == 1


def test_what_a_new_process_begins_is_noted_before_each_request() -> None:
    owner = Leased()
    slots = Slots(NAMES, NAMES.space, owner, SECOND, TIMEOUT_MS)
    steps = slots.begin(0, 1_000)
    next(steps)
    assert owner.notes == [(0, None)]
    with pytest.raises(StopIteration) as end:
        steps.send(Answered([BEGUN], 0))
    assert owner.notes[1:] == [(0, BEGUN)]
    slots.retire(end.value.value)
    assert owner.notes[2:] == [(0, None)]


# -- the look --------------------------------------------------------------------------------------


def test_a_new_prefix_has_no_producer_and_no_decision() -> None:
    found, _ = told(look(NAMES, BatchId("q", "r", 0)), [{"p.control": None}, LastDecisions()])
    assert found == Seen()


def test_a_look_tells_the_latest_decisions_also_of_another_query() -> None:
    control = TransactionDescription("p.control", "Ongoing", ProducerId(9, 1), 1, 5, (), 0)
    batches = [BatchId("other", "s", number) for number in (4, 3, 4)]
    lasts = [Decision(each, (), 2, write=write) for each, write in zip(batches, "abc", strict=True)]
    kept = [StoredDecision(TopicPartition(str(each.write), 0), each) for each in lasts]
    answers = [{"p.control": control}, LastDecisions(tuple(kept))]
    found, asked = told(look(NAMES, BatchId("q", "r", 0)), answers)
    assert found == Seen(ProducerId(9, 1), frozenset({lasts[0].id, lasts[2].id}))
    assert len(asked) == 2
