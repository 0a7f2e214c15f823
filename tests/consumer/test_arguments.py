"""Partitions as arguments: one or many, and never the letters of a text."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from spark_kafka_source import AIOConsumer, KafkaConsumer, TopicPartition
from spark_kafka_source.consumer.consumer import _ELSEWHERE
from spark_kafka_source.errors import LocalError
from spark_kafka_source.testing.memory import MemoryBroker
from tests.consumer.consumers import T0, T1, consuming

pytestmark = pytest.mark.memory(nodes=3)

CALLS: dict[str, Callable[[KafkaConsumer, Any], object]] = {
    "assign": lambda consumer, given: consumer.assign(given),
    "pause": lambda consumer, given: consumer.pause(given),
    "resume": lambda consumer, given: consumer.resume(given),
    "seek": lambda consumer, given: consumer.seek(given, 0),
    "seek_to_beginning": lambda consumer, given: consumer.seek_to_beginning(given),
    "seek_to_end": lambda consumer, given: consumer.seek_to_end(given),
    "position": lambda consumer, given: consumer.position(given),
    "current_lag": lambda consumer, given: consumer.current_lag(given),
    "beginning_offsets": lambda consumer, given: consumer.beginning_offsets(given),
    "end_offsets": lambda consumer, given: consumer.end_offsets(given),
    "committed": lambda consumer, given: consumer.committed(given),
    "commit": lambda consumer, given: consumer.commit(dict.fromkeys(given, 0)),
    "offsets_for_times": lambda c, given: c.offsets_for_times(dict.fromkeys(given, 0)),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "given", [["ab"], "ab", ["t", 0], [("t", "0")], [("t", -1)], [("t", True)], [(0, "t")]]
)
def test_what_is_no_partition_is_refused(call: str, given: Any) -> None:
    with KafkaConsumer(bootstrap_servers="127.0.0.1:1", group_id="g") as consumer:
        consumer.assign([T0])
        with pytest.raises(LocalError, match=r"as TopicPartition\('events', 0\); found"):
            CALLS[call](consumer, given)
        assert consumer.assignment() == {T0}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda c: c.subscribe("events", "orders"), r"takes the topics as one list"),
        (lambda c: c.subscribe(["events"], print), r"the rest by name: .*listener=listener"),
        (lambda c: c.subscribe("test.*"), r"'test\.\*' cannot be a topic's name.*as `pattern`"),
        (lambda c: c.subscribe(["ok", b"t"]), r"b't' cannot be a topic's name"),
        (lambda c: c.subscribe(re.compile("a")), r"re.compile\('a'\) cannot be .*as `pattern`"),
        (lambda c: c.unsubscribe(["events"]), r"subscribe\(\) to the topics that remain"),
        (lambda c: c.unsubscribe(topics=["foo"]), r"subscribe\(\) to the topics that remain"),
    ],
)
def test_topics_as_other_clients_take_them(
    call: Callable[[KafkaConsumer], object], said: str
) -> None:
    with KafkaConsumer(bootstrap_servers="127.0.0.1:1", group_id="g") as consumer:
        with pytest.raises(LocalError, match=said):
            call(consumer)
        assert not consumer.subscription()


@pytest.mark.parametrize("client", [KafkaConsumer, AIOConsumer])
def test_the_calls_of_other_clients_are_named(client: Any) -> None:
    for theirs, ours in _ELSEWHERE.items():
        assert hasattr(client, ours.partition("(")[0])
        with pytest.raises(AttributeError, match=f"'{theirs}': call {re.escape(ours)}$"):
            getattr(client.__new__(client), theirs)
    with pytest.raises(AttributeError, match=r"no attribute 'other'$"):
        client.__new__(client).other()


def test_none_is_no_partition() -> None:
    with (
        KafkaConsumer(bootstrap_servers="127.0.0.1:1") as consumer,
        pytest.raises(LocalError, match="found None"),
    ):
        consumer.assign(None)  # type: ignore[arg-type]


def test_one_or_many_are_taken(broker: MemoryBroker) -> None:
    broker.create_topic("t", 2)
    with consuming(broker) as consumer:
        for both in ([T0, T1], (T0, T1), {T0, T1}, {T0: 0, T1: 0}, iter([T0, T1])):
            consumer.assign(both)
            assert consumer.assignment() == {T0, T1}
        for paused in ([[T0, T1]], [T0, T1], [[T0], T1], [(T0, T1)]):
            consumer.pause(*paused)
            assert consumer.paused() == {T0, T1}
            consumer.resume(*paused)
            assert not consumer.paused()
        consumer.pause(T1)
        assert consumer.paused() == {T1}
        assert consumer.end_offsets(T0) == {T0: 0}
        consumer.assign([("t", np.int64(1))])
        assert consumer.assignment() == {TopicPartition("t", 1)}
