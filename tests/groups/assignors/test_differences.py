"""Intended differences from Kafka's assignors: Kafka's result, and ours."""

from pathlib import Path
from typing import NamedTuple

import pytest

from spark_kafka_source.groups.assignors import (
    Assignment,
    Cluster,
    CooperativeStickyAssignor,
    Subscription,
)
from tests.groups.assignors.kafka_assignors import (
    EndlessError,
    KafkaAssignors,
    RefusedError,
    run_kafka_assignors,
)
from tests.groups.assignors.topics import owning, partitions, topics, wanting

Assigned = dict[str, str]


class Difference(NamedTuple):
    """A group, Kafka's result (perhaps an exception), and our result."""

    cluster: Cluster
    members: dict[str, Subscription]
    ours: Assigned
    kafkas: Assigned | str


DIFFERENCES = {
    # `stale` had t-0 before the others' generation, and does not subscribe to it any more.
    "it gets back what it does not want": Difference(
        topics(t=6, u=1),
        {
            "stale": owning(["u"], "t-0", generation_id=4),
            "y": owning(["t"], "t-0 t-1 t-2 t-3 t-4 t-5", generation_id=5),
            "z": owning(["t", "u"], "", generation_id=5),
        },
        ours={"stale": "u-0", "y": "t-3 t-4 t-5", "z": ""},
        kafkas={"stale": "u-0 t-0", "y": "t-3 t-4 t-5", "z": ""},
    ),
    "it would, if nobody else wanted what it wants": Difference(
        topics(t=6, u=1),
        {
            "stale": owning(["u"], "t-0", generation_id=4),
            "y": owning(["t"], "t-0 t-1 t-2 t-3 t-4 t-5", generation_id=5),
            "z": owning(["t"], "", generation_id=5),
        },
        ours={"stale": "u-0", "y": "t-3 t-4 t-5", "z": ""},
        kafkas="NullPointerException",
    ),
    "a topic was made anew with fewer partitions": Difference(
        topics(t=4),
        {"a": owning(["t"], "t-1 t-7"), "b": owning(["t"], "t-2")},
        ours={"a": "t-1 t-0", "b": "t-2 t-3"},
        kafkas={"a": "t-1 t-7", "b": "t-2 t-0 t-3"},
    ),
    # As with a pattern without matches. The first member decides whether all are alike.
    "a member wants nothing": Difference(
        topics(t=4),
        {"a": wanting(), "b": owning(["t"], "t-2")},
        ours={"a": "", "b": "t-2 t-0 t-1 t-3"},
        kafkas={"a": "t-0 t-3", "b": "t-2 t-1"},
    ),
}


def shown(assigned: Assignment) -> str:
    return " ".join(map(str, assigned.partitions))


@pytest.mark.parametrize("difference", DIFFERENCES.values(), ids=list(DIFFERENCES))
def test_this_package_assigns_as_the_table_says(difference: Difference) -> None:
    found = CooperativeStickyAssignor().assign(difference.cluster, difference.members)
    assert {member: shown(each) for member, each in found.items()} == difference.ours


@pytest.mark.java
@pytest.mark.parametrize("difference", DIFFERENCES.values(), ids=list(DIFFERENCES))
def test_kafka_assigns_as_the_table_says(
    difference: Difference, kafka_assignors: KafkaAssignors
) -> None:
    def assigned() -> Assigned:
        found = kafka_assignors.assign("cooperative-sticky", difference.cluster, difference.members)
        return {member: shown(Assignment.decode(each)) for member, each in found.items()}

    if isinstance(difference.kafkas, str):
        with pytest.raises(RefusedError, match=difference.kafkas):
            assigned()
    else:
        assert assigned() == difference.kafkas


ENDLESS = {
    "m0": owning(["t0", "t3"], "t3-0 t3-1 t3-2", generation_id=5),
    "m1": owning(["t1", "t2"], "t1-1 t2-0 t2-2", generation_id=5),
    "m2": owning(["t2", "t3"], "", generation_id=5),
    "m3": owning(["t0", "t1", "t3"], "t3-3", generation_id=5),
    "m4": owning(["t1"], "", generation_id=5),
    "m5": owning(["t1", "t2"], "t1-0 t1-2 t2-1", generation_id=5),
}
"""Six members with true claims. Kafka swaps two partitions between two of them for ever."""
ENDLESS_TOPICS = topics(t0=7, t1=3, t2=3, t3=4)


def test_the_assignor_of_this_package_ends() -> None:
    found = CooperativeStickyAssignor().assign(ENDLESS_TOPICS, ENDLESS)
    assigned = [each for member in found.values() for each in member.partitions]
    assert len(assigned) == len(set(assigned))
    assert set(partitions(ENDLESS_TOPICS)) >= set(assigned)


@pytest.mark.java
def test_the_assignor_of_kafka_does_not_end(kafka_jars: list[Path]) -> None:
    with run_kafka_assignors(kafka_jars) as kafka:
        # The JVM runs, and answers where an answer exists.
        assert kafka.assign("cooperative-sticky", topics(t=1), {"m": wanting("t")})
        with pytest.raises(EndlessError):
            kafka.assign("cooperative-sticky", ENDLESS_TOPICS, ENDLESS, limit_s=1)
