"""A subscription selects its partitions from a broker's metadata."""

from uuid import UUID

import pytest

from spark_kafka_source.client import Leadership, Topic
from spark_kafka_source.errors import ConfigurationError, error_named
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.spark.source.subscription import (
    Assign,
    Subscribe,
    SubscribePattern,
    parse_subscription,
)
from spark_kafka_source.topic_partition import TopicPartition
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
    with pytest.raises(ConfigurationError, match=r"'assign': 'a-2' does not exist.* 0 to 1"):
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
        ("a", ["a", "ab"]),
        ("^a$", ["a"]),
        ("a|b", ["a", "ab", "b"]),
        (".*", ["a", "ab", "b"]),
        ("(?i)B$", ["ab", "b"]),
        ("no", []),
        ("__.*", []),
    ],
)
def test_a_pattern_is_found_in_names_but_in_no_internal_topics(
    pattern: str, names: list[str]
) -> None:
    topics = [topic(name, 1) for name in ("a", "ab", "b")]
    topics.append(topic("__consumer_offsets", 1, is_internal=True))
    subscription = SubscribePattern(pattern)
    assert subscription.topic_names is None
    assert [found.topic for found in subscription.select(topics)] == names


# -- their names -----------------------------------------------------------------------------------


def test_blanks_around_commas_are_passed_over() -> None:
    """Spark's own connector does the same."""
    assert parse_subscription(Settings({"subscribe": " b ,a,\tb"})) == Subscribe(("a", "b"))


@pytest.mark.parametrize("text", ["a,,b", ",a", "a,", "a, ,b"])
def test_a_name_that_is_missing_is_told(text: str) -> None:
    with pytest.raises(ConfigurationError, match="a name is missing before or after a comma"):
        parse_subscription(Settings({"subscribe": text}))


@pytest.mark.parametrize(
    "text", ["events;orders", "events orders", "a,b/c", "ev\u00e9nements", "x" * 250]
)
def test_what_cannot_be_a_name_is_told(text: str) -> None:
    with pytest.raises(
        ConfigurationError, match=r"'subscribe': .* cannot be a topic's name"
    ) as found:
        parse_subscription(Settings({"subscribe": text}))
    assert "as in 'events,orders'" in found.value.expected


@pytest.mark.parametrize("text", ["", " , ,"])
def test_no_name_is_none(text: str) -> None:
    with pytest.raises(ConfigurationError, match="names no topic"):
        parse_subscription(Settings({"subscribe": text}))


def test_the_topic_of_a_writer_is_none_of_a_readers() -> None:
    with pytest.raises(ConfigurationError, match="'subscribe': is missing, and 'topic' is for wri"):
        parse_subscription(Settings({"topic": "events"}))


# -- a part of them --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [("0", [A0, B0]), ("1,2", [A1, A2]), ("0-1", [A0, A1, B0]), (" 2 , 1 - 1 ", [A1, A2])],
)
def test_only_some_partitions_of_topics(numbers: str, expected: list[TopicPartition]) -> None:
    for found in ({"subscribe": "a,b"}, {"subscribepattern": "a|b"}):
        subscription = parse_subscription(Settings({**found, "partitions": numbers}))
        assert subscription.select([topic("a", 3), topic("b", 1)]) == expected
        assert subscription.option in ("subscribe", "subscribePattern")


def test_partitions_that_no_topic_has_are_told_unless_they_were_there() -> None:
    subscription = parse_subscription(Settings({"subscribe": "a", "partitions": "7-9"}))
    with pytest.raises(ConfigurationError, match=r"'partitions': selects none.* 0 to 2"):
        subscription.select([topic("a", 3)])
    assert subscription.select([topic("a", 3)], {TopicPartition("a", 7): 5}) == []
    assert subscription.select([]) == []


@pytest.mark.parametrize(
    "text", ["", "a", "1,", "-1", "3-1", "1-2-3", "2147483648", "0x1", "1;2", "\u0661"]
)
def test_numbers_of_partitions_that_are_none(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"'partitions'.*'0,2,8-15'"):
        parse_subscription(Settings({"subscribe": "a", "partitions": text}))


def test_assigned_partitions_are_named_there() -> None:
    with pytest.raises(ConfigurationError, match=r"'partitions'.*'assign'"):
        parse_subscription(Settings({"assign": '{"a":[0]}', "partitions": "0"}))
