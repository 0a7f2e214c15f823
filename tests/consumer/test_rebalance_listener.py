"""Listeners as users give them: what they are called with, and what is refused when given."""

from collections.abc import Callable, Collection
from types import SimpleNamespace
from typing import Any

import pytest

from spark_kafka_source import ConsumerRebalanceListener, KafkaConsumer
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.testing.memory import MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import IN_GROUP, T0, T1, consuming, fill, poll_until, polled

pytestmark = pytest.mark.memory(nodes=2, topics={"t": 2})


class WithConsumer:
    """A listener that is no subclass, and takes the consumer."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def on_partitions_revoked(
        self, consumer: KafkaConsumer, partitions: Collection[TopicPartition]
    ) -> None:
        self.told.append(("revoked", consumer, sorted(partitions)))

    def on_partitions_assigned(
        self, consumer: KafkaConsumer, partitions: Collection[TopicPartition]
    ) -> None:
        self.told.append(("assigned", consumer, sorted(partitions)))
        consumer.seek(dict.fromkeys(partitions, 8))


class Plain(ConsumerRebalanceListener):
    def __init__(self) -> None:
        self.told: list[Any] = []

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self.told.append(sorted(partitions))


def test_a_listener_of_the_constructor_gets_the_consumer(broker: MemoryBroker) -> None:
    fill(broker, T0, 1)
    fill(broker, T1, 1)
    listener = WithConsumer()
    with consuming(broker, listener=listener, **IN_GROUP) as consumer:
        consumer.subscribe(["t"])
        assert sorted(polled(consumer, 4)) == [(T0, 8), (T0, 9), (T1, 8), (T1, 9)]
    parts = [T0, T1]
    assert [each for each in listener.told if each[2]] == [
        ("assigned", consumer, parts),
        ("revoked", consumer, parts),
    ]


def test_what_subscribe_is_given_takes_its_place(broker: MemoryBroker) -> None:
    made_with, given = WithConsumer(), Plain()
    with consuming(broker, listener=made_with, **IN_GROUP) as consumer:
        consumer.subscribe(["t"], listener=given)
        poll_until(consumer, lambda: bool(given.told))
        assert not made_with.told
        consumer.unsubscribe()
        consumer.subscribe(["t"])
        poll_until(consumer, lambda: bool(made_with.told))
    assert given.told == [[T0, T1]]


def test_lost_partitions_are_told_as_revoked_where_no_method_says_otherwise(
    broker: MemoryBroker,
) -> None:
    listener = WithConsumer()
    with consuming(broker, listener=listener, **IN_GROUP) as consumer:
        consumer.subscribe(["t"])
        poll_until(consumer, lambda: bool(consumer.assignment()))
        broker.drop_member("g", consumer.group_metadata().member_id)
        poll_until(consumer, lambda: ("revoked", consumer, [T0, T1]) in listener.told)


class _Late:
    async def on_partitions_revoked(self, partitions: Any) -> None: ...

    def on_partitions_assigned(self, partitions: Any) -> None: ...


def listener_of(base: type = object, **methods: Callable[..., object]) -> Any:
    """Return an object of a class with these methods."""
    return type("Mine", (base,), {name: staticmethod(each) for name, each in methods.items()})()


def one(partitions: object) -> None: ...


def three(consumer: object, partitions: object, more: object) -> None: ...


SUBCLASS = ConsumerRebalanceListener
REFUSED: dict[str, tuple[Any, str]] = {
    "class": (Plain, "is the class 'Plain'. Give an object of it"),
    "a class that only looks like it": (WithConsumer, "is the class 'WithConsumer'"),
    "function": (one, "is of type function, which has no method `on_partitions_revoked`"),
    "half": (listener_of(on_partitions_revoked=one), "no method `on_partitions_assigned`"),
    "nothing": (SUBCLASS(), "which does nothing. Give it one of on_partitions_revoked"),
    "slip": (
        listener_of(SUBCLASS, on_partition_assigned=one),
        "has `on_partition_assigned`, which is never called. Did you mean `on_partitions_assigned`",
    ),
    "slip beside a right one": (
        listener_of(SUBCLASS, on_partitions_assigned=one, on_partitions_revoke=one),
        "Did you mean `on_partitions_revoked`",
    ),
    "slip of the third": (
        listener_of(on_partitions_assigned=one, on_partitions_revoked=one, on_partition_lost=one),
        "Did you mean `on_partitions_lost`",
    ),
    "java": (listener_of(SUBCLASS, onPartitionsLost=one), "Did you mean `on_partitions_lost`"),
    "confluent": (listener_of(on_assign=one, on_revoke=one), "Did you mean `on_partitions_"),
    "arguments": (
        listener_of(on_partitions_assigned=one, on_partitions_revoked=three),
        "`on_partitions_revoked`, which takes neither",
    ),
    "no argument": (
        listener_of(SUBCLASS, on_partitions_assigned=lambda: None),
        "`on_partitions_assigned`, which takes neither",
    ),
    "asynchronous": (_Late(), "is an asynchronous method `on_partitions_revoked`"),
    "no method": (
        SimpleNamespace(on_partitions_assigned=one, on_partitions_revoked=[]),
        "has `on_partitions_revoked`, which is no method",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_listener_is_refused_when_given(case: str) -> None:
    given, said = REFUSED[case]
    config: Any = {"bootstrap_servers": "127.0.0.1:1", "group_id": "g"}
    with pytest.raises(ConfigurationError) as refused:
        KafkaConsumer(listener=given, **config)
    assert said in str(refused.value)
    with KafkaConsumer(**config) as consumer:
        with pytest.raises(ConfigurationError) as refused:
            consumer.subscribe(["t"], listener=given)
        assert said in str(refused.value)
        assert not consumer.subscription()


def test_a_method_that_returns_something_to_await_is_an_error(broker: MemoryBroker) -> None:
    """A lambda shows only then that it calls an asynchronous function."""
    late: Any = lambda *partitions: _Late().on_partitions_revoked(partitions)  # noqa: E731
    listener = listener_of(on_partitions_revoked=one, on_partitions_assigned=late)
    with consuming(broker, listener=listener, **IN_GROUP) as consumer:
        consumer.subscribe(["t"])
        with pytest.raises(ConfigurationError, match="`on_partitions_assigned` that returned som"):
            poll_until(consumer, lambda: False)


def test_other_methods_are_its_own_affair(broker: MemoryBroker) -> None:
    """Names that are almost those of methods that it has do no harm."""
    listener: Any = SimpleNamespace(
        on_partitions_assigned=one,
        on_partitions_revoked=lambda partitions, why="": None,
        on_partitions_revoked_too=one,
        on_close=one,
    )
    with consuming(broker, listener=listener, **IN_GROUP) as consumer:
        consumer.subscribe(["t"])
        poll_until(consumer, lambda: bool(consumer.assignment()))


def test_without_a_group_nobody_calls_a_listener() -> None:
    with pytest.raises(ConfigurationError, match=r"'group_id': is missing.*a listener hears"):
        KafkaConsumer(bootstrap_servers="127.0.0.1:1", listener=Plain())
    with (
        KafkaConsumer(bootstrap_servers="127.0.0.1:1") as consumer,
        pytest.raises(ConfigurationError, match=r"'group_id': is missing"),
    ):
        consumer.subscribe(["t"], listener=Plain())
