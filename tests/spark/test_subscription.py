"""A subscription finds its partitions among what a broker describes."""

from uuid import UUID

import pytest

from spark_kafka_source.client import Leadership, Topic
from spark_kafka_source.errors import ConfigurationError, error_named
from spark_kafka_source.spark.subscription import Assign, Subscribe, SubscribePattern
from tests.spark.settings import A0, A1, A2, B0

NONE = error_named("NONE")


def topic(name: str, partitions: int, *, is_internal: bool = False) -> Topic:
    led = {partition: Leadership(1, 0, NONE) for partition in reversed(range(partitions))}
    return Topic(name, UUID(int=1), is_internal, led, NONE)


def test_assigned_partitions_alone() -> None:
    subscription = Assign((A0, A2))
    assert subscription.topic_names == ["a"]
    assert subscription.select([topic("a", 3), topic("b", 1)]) == [A0, A2]


def test_an_assigned_partition_must_exist() -> None:
    with pytest.raises(ConfigurationError, match=r"'assign': a-2 does not exist.* 0 to 1"):
        Assign((A0, A2)).select([topic("a", 2), topic("b", 5)])


def test_an_assigned_partition_that_was_there_may_be_gone() -> None:
    assert Assign((A0, A2)).select([topic("a", 2)], {A2: 5}) == [A0]
    assert Assign((A0, A2)).select([], {A0: 1, A2: 5}) == []


def test_all_partitions_of_the_topics() -> None:
    subscription = Subscribe(("a", "b"))
    assert subscription.topic_names == ["a", "b"]
    assert subscription.select([topic("a", 3), topic("b", 1)]) == [A0, A1, A2, B0]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("a.*", ["a", "ab"]),
        ("a", ["a"]),
        ("a|b", ["a", "b"]),
        (".*", ["a", "ab", "b"]),
        ("(?i)A", ["a"]),
        ("no", []),
        ("__.*", []),
    ],
)
def test_a_pattern_matches_whole_names_but_no_internal_topic(
    pattern: str, names: list[str]
) -> None:
    topics = [topic(name, 1) for name in ("a", "ab", "b")]
    topics.append(topic("__consumer_offsets", 1, is_internal=True))
    subscription = SubscribePattern(pattern)
    assert subscription.topic_names is None
    assert [found.topic for found in subscription.select(topics)] == names
