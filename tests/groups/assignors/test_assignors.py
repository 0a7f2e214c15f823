"""The promises of each assignor, on small groups. test_kafka.py has large groups."""

from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_kafka_source.groups.assignors import (
    ASSIGNORS,
    Assignment,
    Assignor,
    Cluster,
    RebalanceProtocol,
    Subscription,
)
from spark_kafka_source.groups.assignors.hash_order import in_hash_order, sort_key
from spark_kafka_source.topic_partition import TopicPartition
from tests.groups.assignors.rounds import Rounds
from tests.groups.assignors.topics import (
    described,
    in_racks,
    owning,
    partition,
    partitions,
    topics,
    wanting,
)

THREE = {member: wanting("t", "u") for member in "abc"}
STATIC = {
    "a": wanting("t"),
    "b": wanting("t", instance="second"),
    "c": wanting("t", instance="first"),
}
NEAR = {"a": wanting("t", rack="x"), "b": wanting("t", rack="y")}
NEAR_BOTH = {"a": wanting("t", "u", rack="x"), "b": wanting("t", "u", rack="y")}
UNEVEN = {"a": wanting("t"), "b": wanting("t", "u"), "c": wanting("t", "u", "v")}


def assign(
    name: str, cluster: Cluster, subscriptions: Mapping[str, Subscription]
) -> dict[str, str]:
    found = ASSIGNORS[name]().assign(cluster, subscriptions)
    return {member: " ".join(map(str, each.partitions)) for member, each in found.items()}


@pytest.mark.parametrize(
    ("name", "cluster", "members", "expected"),
    [
        (
            "range",
            topics(t=4, u=4),
            THREE,
            {"a": "t-0 t-1 u-0 u-1", "b": "t-2 u-2", "c": "t-3 u-3"},
        ),
        ("range", topics(t=4), STATIC, {"a": "t-3", "b": "t-2", "c": "t-0 t-1"}),
        ("range", in_racks(t="y x y x"), NEAR, {"a": "t-1 t-3", "b": "t-0 t-2"}),
        # Equal assignments of both topics matter more than near replicas.
        (
            "range",
            in_racks(t="y x y x", u="y y x x"),
            NEAR_BOTH,
            {"a": "t-1 t-3 u-1 u-3", "b": "t-0 t-2 u-0 u-2"},
        ),
        (
            "roundrobin",
            topics(t=3, u=4),
            THREE,
            {"a": "t-0 u-0 u-3", "b": "t-1 u-1", "c": "t-2 u-2"},
        ),
        ("roundrobin", topics(t=4), STATIC, {"a": "t-2", "b": "t-1", "c": "t-0 t-3"}),
        (
            "roundrobin",
            topics(t=1, u=2, v=3),
            UNEVEN,
            {"a": "t-0", "b": "u-0", "c": "u-1 v-0 v-1 v-2"},
        ),
        ("sticky", topics(t=1, u=2, v=3), UNEVEN, {"a": "t-0", "b": "u-0 u-1", "c": "v-0 v-1 v-2"}),
        ("sticky", in_racks(t="y x y x"), NEAR, {"a": "t-1 t-3", "b": "t-0 t-2"}),
    ],
)
def test_who_gets_what(
    name: str, cluster: Cluster, members: Mapping[str, Subscription], expected: dict[str, str]
) -> None:
    assert assign(name, cluster, members) == expected


def test_cooperative_members_get_what_moves_only_once_it_is_given_up() -> None:
    cluster, all_four = topics(t=4), "t-0 t-1 t-2 t-3"
    first = assign("cooperative-sticky", cluster, {"a": owning("t", all_four), "b": wanting("t")})
    assert first == {"a": "t-0 t-1", "b": ""}
    second = assign(
        "cooperative-sticky", cluster, {"a": owning("t", first["a"]), "b": wanting("t")}
    )
    assert second == {"a": "t-0 t-1", "b": "t-2 t-3"}


def test_the_newer_generation_owns() -> None:
    members = {"a": owning("t", "t-0 t-1", 4), "b": owning("t", "t-0 t-1", 5)}
    assert assign("cooperative-sticky", topics(t=2), members) == {"a": "", "b": "t-0"}


def test_nobody_keeps_what_two_claim() -> None:
    members = {"a": owning("t", "t-0", 5), "b": owning("t", "t-0", 5)}
    assert assign("cooperative-sticky", topics(t=1), members) == {"a": "", "b": ""}


def test_sticky_members_tell_what_they_had() -> None:
    assignor = ASSIGNORS["sticky"]()
    assert assignor.user_data(("t",)) is None
    assignor.on_assignment(Assignment((partition("t-3"),)), 9)
    assert assignor.user_data(("t",)) == bytes.fromhex(
        "00000001 0001 74 00000001 00000003 00000009"
    )
    # User data without the generation (before Kafka 2.3), and empty user data.
    had = Subscription(("t",), bytes.fromhex("00000001 0001 74 00000001 00000003"))
    for silent in (None, b"", b"\0", b"\x7f\xff\xff\xff"):
        found = assign("sticky", topics(t=4), {"a": Subscription(("t",), silent), "b": had})
        assert "t-3" in found["b"].split()


def test_cooperative_members_tell_their_generation() -> None:
    assignor = ASSIGNORS["cooperative-sticky"]()
    assert assignor.user_data(()) == b"\xff\xff\xff\xff"
    assignor.on_assignment(Assignment(()), 9)
    assert assignor.user_data(()) == b"\0\0\0\x09"


@pytest.mark.parametrize("name", ASSIGNORS)
def test_nothing_to_assign(name: str) -> None:
    assert assign(name, {}, {}) == {}
    assert assign(name, topics(t=1), {}) == {}
    assert assign(name, {"t": []}, {"a": wanting("t"), "b": wanting()}) == {"a": "", "b": ""}


@pytest.mark.parametrize("name", ASSIGNORS)
def test_its_name_is_its_own(name: str) -> None:
    assignor: Assignor = ASSIGNORS[name]()
    assert assignor.name == name
    cooperative = assignor.protocol is RebalanceProtocol.COOPERATIVE
    assert cooperative == (name == "cooperative-sticky")


SOME = settings(max_examples=30)
TOPICS = st.sampled_from(["t", "u", "v", "missing"])
MEMBERS = st.dictionaries(
    st.text(max_size=3),
    st.builds(
        Subscription,
        topics=st.lists(TOPICS, unique=True).map(tuple),
        user_data=st.none() | st.binary(max_size=40),
        owned=st.lists(st.builds(TopicPartition, TOPICS, st.integers(-2, 9))).map(tuple),
        generation_id=st.integers(-1, 3),
        rack_id=st.none() | st.sampled_from("xy"),
        group_instance_id=st.none() | st.text(max_size=2),
    ),
    max_size=9,
)
CLUSTERS = st.dictionaries(
    st.sampled_from(["t", "u", "v"]), st.lists(st.frozensets(st.sampled_from("xyz")), max_size=7)
).map(described)


@pytest.mark.parametrize("name", ASSIGNORS)
@SOME
@given(cluster=CLUSTERS, members=MEMBERS)
def test_whatever_members_say_no_partition_goes_to_two(
    name: str, cluster: Cluster, members: Mapping[str, Subscription]
) -> None:
    found = ASSIGNORS[name]().assign(cluster, members)
    assert found.keys() == members.keys()
    assigned = [each for member in found.values() for each in member.partitions]
    assert len(assigned) == len(set(assigned))
    assert set(assigned) <= set(partitions(cluster))
    for member, each in found.items():
        assert {topic for topic, _ in each.partitions} <= set(members[member].topics)
    if name != "cooperative-sticky":
        wanted = {topic for each in members.values() for topic in each.topics}
        assert set(assigned) == {each for each in partitions(cluster) if each.topic in wanted}


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
@SOME
@given(random=st.randoms(use_true_random=True))
def test_members_that_want_the_same_get_as_much(name: str, random: Random) -> None:
    rounds = Rounds(name, random, alike=True, racks=True)
    for _ in range(3):
        rounds.change()
        # All members want the same by now, also members that were away.
        for member in rounds.members.values():
            member.topics = rounds.common
        # Most take two. With different racks, Kafka's own assignor (equal to ours) may take four.
        for _ in range(10):
            found = ASSIGNORS[name]().assign(rounds.cluster, rounds.subscriptions())
            if not rounds.on_assignment(found):
                break
        else:
            pytest.fail("it does not come to an end")
        sizes = [len(each.partitions) for each in found.values()]
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
@SOME
@given(random=st.randoms(use_true_random=True), alike=st.booleans())
def test_nothing_moves_where_nothing_happened(name: str, random: Random, alike: bool) -> None:
    rounds = Rounds(name, random, alike=alike, racks=False)
    for _ in range(5):
        found = ASSIGNORS[name]().assign(rounds.cluster, rounds.subscriptions())
        rounds.on_assignment(found)
    again = ASSIGNORS[name]().assign(rounds.cluster, rounds.subscriptions())
    assert {member: set(each.partitions) for member, each in again.items()} == {
        member: set(each.partitions) for member, each in found.items()
    }


def test_the_orders_of_java() -> None:
    # "Aa" and "BB" hash to 2112, in slot 0 of 16. "a" is 97 and "q" is 113, both in slot 1.
    assert in_hash_order(["b", "BB", "q", "a", "Aa", "a"]) == ["BB", "Aa", "q", "a", "b"]
    # 14 texts take 32 slots. There, "A" and "a" share the slot.
    letters = [chr(each) for each in range(ord("a"), ord("a") + 13)]
    assert in_hash_order(["A", *letters])[:2] == ["A", "a"]
    assert sorted(["\uffee", "\U0001f600"], key=sort_key) == ["\U0001f600", "\uffee"]
