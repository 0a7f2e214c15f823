"""A worker's slots and its look, without IO."""

from collections.abc import Iterable
from typing import Any

import pytest

from spark_kafka_source.admin.transactions import TransactionDescription
from spark_kafka_source.exactly_once.decision import (
    BatchId,
    Decision,
    LastDecisions,
    Seen,
    StoredDecision,
)
from spark_kafka_source.exactly_once.names import Names, TaskId
from spark_kafka_source.exactly_once.requests import (
    Answered,
    DescribeTransactions,
    InitProducerId,
    Request,
    Steps,
)
from spark_kafka_source.exactly_once.slots import OWNER_BITS, Slot, Slots
from spark_kafka_source.exactly_once.worker import look
from spark_kafka_source.producer import Generation, ProducerId
from spark_kafka_source.topic_partition import TopicPartition

FIRST, SECOND = Generation.FIRST, Generation.SECOND
NAMES = Names("p")
BEGUN, OTHER = ProducerId(1, 4), ProducerId(2, 0)
SLOTS_OF_ONE_OWNER = 1 << (64 - OWNER_BITS)


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


def begin(slots: Slots, batch_id: int, *answers: Any) -> tuple[Slot, list[type[Request]]]:
    slot, asked = told(slots.begin(batch_id), answers)
    return slot, [type(each) for each in asked]


def new_slots(generation: Generation) -> Slots:
    return Slots(NAMES, "run", generation)


def described(slot: Slot, state: str | None, epoch: int) -> dict[str, Any]:
    name, producer = slot.transactional_id, slot.producer._replace(epoch=epoch)
    found = state and TransactionDescription(name, state, producer, 60_000, 5, (), 0)
    return {name: found}


@pytest.mark.parametrize(
    ("epoch", "following"),
    [(4, ProducerId(1, 5)), (32_765, ProducerId(1, 32_766)), (32_766, None)],
)
def test_in_the_second_generation_the_next_epoch_is_taken_without_a_request(
    epoch: int, following: ProducerId | None
) -> None:
    """After the last epoch the broker gives another producer id, which nobody guesses."""
    slots = new_slots(SECOND)
    slot, asked = begin(slots, 0, ProducerId(1, epoch))
    assert (asked, slot.is_guess) == ([InitProducerId], False)
    again, asked = begin(slots, 1, OTHER)
    assert (again.transactional_id == slot.transactional_id) is (following is not None)
    assert (again.producer, again.is_guess) == (following or OTHER, following is not None)
    assert asked == ([] if following else [InitProducerId])


@pytest.mark.parametrize(
    ("state", "epoch", "goes_on"),
    [
        ("CompleteCommit", 4, True),
        ("PrepareCommit", 4, True),
        ("Ongoing", 4, False),
        ("CompleteAbort", 4, False),
        ("PrepareAbort", 4, False),
        ("Empty", 5, False),
        # The end of the transaction before, as a former coordinator tells it.
        ("CompleteCommit", 3, False),
        # Somebody else has written under the id.
        ("CompleteCommit", 5, False),
        (None, 0, False),
    ],
)
def test_in_the_first_generation_a_slot_goes_on_after_its_commit_only(
    state: str | None, epoch: int, *, goes_on: bool
) -> None:
    """A request for the next epoch would abort an open transaction, which may be decided."""
    slots = new_slots(FIRST)
    slot, _ = begin(slots, 0, BEGUN)
    again, asked = begin(slots, 1, described(slot, state, epoch), ProducerId(1, 5))
    assert asked == [DescribeTransactions, InitProducerId]
    assert (again.transactional_id == slot.transactional_id) is goes_on
    assert (again.producer, again.is_guess) == (ProducerId(1, 5), False)


def test_two_attempts_of_a_micro_batch_have_two_slots() -> None:
    slots = new_slots(SECOND)
    ids = {begin(slots, 0, each)[0].transactional_id for each in (BEGUN, OTHER)}
    assert len(ids) == 2
    assert {begin(slots, 1)[0].transactional_id for _ in range(2)} == ids


def test_a_retired_slot_is_never_used_again() -> None:
    slots = new_slots(SECOND)
    refused, _ = begin(slots, 0, BEGUN)
    slots.retire(refused)
    assert begin(slots, 1, OTHER)[0].transactional_id != refused.transactional_id


def owner(slot: Slot) -> int:
    task_id = TaskId.parse(slot.transactional_id)
    assert task_id is not None
    assert task_id.space == "run"
    return ((task_id.task << 32) + task_id.attempt) // SLOTS_OF_ONE_OWNER


def test_a_worker_that_has_used_all_ids_of_its_owner_number_takes_another_one() -> None:
    """A worker may run thousands of tasks of a micro-batch."""
    slots = new_slots(SECOND)
    made = [begin(slots, 0, BEGUN)[0] for _ in range(SLOTS_OF_ONE_OWNER + 2)]
    assert len({each.transactional_id for each in made}) == len(made)
    owners = [owner(each) for each in made]
    assert len(set(owners[:SLOTS_OF_ONE_OWNER])) == len(set(owners[SLOTS_OF_ONE_OWNER:])) == 1
    assert len(set(owners)) == 2


def test_a_new_process_takes_new_ids() -> None:
    """Also in the same run: what an id's former process has left open is not its own."""
    made = [begin(new_slots(SECOND), 0, BEGUN)[0] for _ in range(100)]
    assert len({each.transactional_id for each in made}) == len(made)


# -- the look --------------------------------------------------------------------------------------


def test_a_look_tells_the_latest_decisions_also_of_another_query() -> None:
    batches = [BatchId("other", "s", number) for number in (4, 3, 4)]
    lasts = [Decision(each, (), 2, write=write) for each, write in zip(batches, "abc", strict=True)]
    kept = [StoredDecision((TopicPartition(str(each.write), 0),), each) for each in lasts]
    control = TransactionDescription("p.control", "Ongoing", ProducerId(9, 1), 1, 5, (), 0)
    answers = [{"p.control": control}, LastDecisions(tuple(kept))]
    found, asked = told(look(NAMES, BatchId("q", "r", 0)), answers)
    assert found == Seen(ProducerId(9, 1), frozenset({lasts[0].id, lasts[2].id}))
    assert len(asked) == 2


def test_a_new_prefix_has_no_producer_and_no_decision() -> None:
    found, _ = told(look(NAMES, BatchId("q", "r", 0)), [{"p.control": None}, LastDecisions()])
    assert found == Seen()
