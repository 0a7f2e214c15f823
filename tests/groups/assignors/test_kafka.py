"""Our assignors against Kafka's own: the same bytes for the same group.

`ASSIGNOR_EXAMPLES=20000` tries 20,000 groups; see `make assignors`.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random

import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from spark_kafka_source.groups.assignors import ASSIGNORS, Assignment, Subscription
from spark_kafka_source.groups.assignors.hash_order import (
    PartitionSet,
    _hash_code,
    _spread,
    in_hash_order,
    in_hash_order_computed,
)
from spark_kafka_source.topic_partition import TopicPartition
from tests.groups.assignors.groups import Group, groups, member_id
from tests.groups.assignors.kafka_assignors import EndlessError, KafkaAssignors
from tests.groups.assignors.rounds import Rounds

pytestmark = pytest.mark.java

EXAMPLES = int(os.environ.get("ASSIGNOR_EXAMPLES", "120"))
TREE = 8
"""With so many keys in a slot, `computeIfAbsent` makes a tree of the slot; `put`, with one more."""


@contextmanager
def but_for_endless_ones() -> Iterator[None]:
    """Skip groups where Kafka never finishes, about one in 10,000; see test_differences.py."""
    try:
        yield
    except EndlessError:
        reject()


@pytest.mark.parametrize("name", ASSIGNORS)
@settings(max_examples=EXAMPLES)
@given(group=groups())
def test_a_group_is_assigned_as_kafka_assigns_it(
    name: str, group: Group, kafka_assignors: KafkaAssignors
) -> None:
    metadata = {member: each.metadata(name) for member, each in group.members.items()}
    instances = {member: each.group_instance_id for member, each in group.members.items()}
    subscriptions = {
        member: Subscription.decode(data, instances[member]) for member, data in metadata.items()
    }
    ours = ASSIGNORS[name]().assign(group.cluster, subscriptions)
    with but_for_endless_ones():
        kafkas = kafka_assignors.assign_encoded(name, group.cluster, metadata, instances)
    assert {member: each.encode() for member, each in ours.items()} == kafkas


@pytest.mark.parametrize("name", ASSIGNORS)
@settings(max_examples=EXAMPLES // 8)
@given(random=st.randoms(use_true_random=True), alike=st.booleans(), racks=st.booleans())
def test_rebalances_of_a_group_whose_members_come_and_go(
    name: str, random: Random, alike: bool, racks: bool, kafka_assignors: KafkaAssignors
) -> None:
    rounds = Rounds(name, random, alike=alike, racks=racks)
    for _ in range(6):
        rounds.change()
        while True:
            subscriptions = rounds.subscriptions()
            ours = ASSIGNORS[name]().assign(rounds.cluster, subscriptions)
            encoded = {member: each.encode() for member, each in ours.items()}
            with but_for_endless_ones():
                assert encoded == kafka_assignors.assign(name, rounds.cluster, subscriptions)
            if not rounds.on_assignment(ours):
                break
        for member in random.sample(list(ours), 1):
            told = rounds.members[member].assignor.user_data(())
            assert told == kafka_assignors.user_data(name, encoded[member], rounds.generation_id)


@pytest.mark.parametrize("name", ASSIGNORS)
def test_what_a_member_tells_that_never_had_an_assignment(
    name: str, kafka_assignors: KafkaAssignors
) -> None:
    assert ASSIGNORS[name]().user_data(()) == kafka_assignors.user_data(name, b"", 0)


@settings(max_examples=EXAMPLES)
@given(group=groups())
def test_subscriptions_and_assignments_are_written_as_kafka_writes_them(
    group: Group, kafka_assignors: KafkaAssignors
) -> None:
    for member in list(group.members.values())[:3]:
        ours = Subscription.decode(member.metadata("sticky")).encode()
        assert kafka_assignors.rewrite_subscription(ours) == ours
        assigned = Assignment(member.owned, b"user data").encode()
        assert kafka_assignors.rewrite_assignment(assigned) == assigned


def _has_tree(texts: Sequence[str]) -> bool:
    """Whether a `HashMap` makes a tree of a slot, on its way to all of these texts."""
    slots = 16
    while True:
        put = texts[: slots * 3 // 4 + 1]  # With the last one the table grows.
        of_slots = Counter(_spread(_hash_code(each)) & slots - 1 for each in put)
        if max(of_slots.values()) >= TREE:
            return True
        if len(put) == len(texts):
            return False
        slots *= 2


@settings(max_examples=EXAMPLES // 4)
@given(random=st.randoms(use_true_random=True), count=st.sampled_from([12, 13, 24, 25, 2000]))
def test_the_order_of_a_hash_map(
    random: Random, count: int, kafka_assignors: KafkaAssignors
) -> None:
    texts = [member_id(random) for _ in range(count)]
    assume(not _has_tree(texts))
    assert in_hash_order(texts) == kafka_assignors.hash_order(texts)
    assert in_hash_order_computed(texts) == kafka_assignors.hash_order(texts, computed=True)


@settings(max_examples=EXAMPLES // 4)
@given(
    random=st.randoms(use_true_random=True),
    sizes=st.permutations([1, 2, 5, 12, 13, 25, 60]),
)
def test_the_first_of_a_hash_set(
    random: Random, sizes: list[int], kafka_assignors: KafkaAssignors
) -> None:
    topic = member_id(random)
    ours, present, changes = PartitionSet(topic), set[int](), list[str]()
    for size in sizes:
        while len(present) != size:
            grow = len(present) < size
            number = random.randint(0, 200) if grow else random.choice(sorted(present))
            (ours.remove if number in present else ours.add)(TopicPartition(topic, number))
            present ^= {number}
            changes.append(str(number))
    assert ours.first().partition == kafka_assignors.first_of_set(topic, changes)
