"""Lookups: threads and connections come for many questions at once, and go after them."""

import threading
from collections.abc import Iterator

import pytest

from spark_kafka_source.client import KafkaClient, Lookups
from spark_kafka_source.client.lookups import _MOST_AT_ONCE, _MOST_IDLE
from spark_kafka_source.net import Deadline, Wakeup
from tests.consumer.consumers import eventually
from tests.exactly_once.query import client_of
from tests.memory_broker import MemoryBroker


@pytest.fixture
def client() -> Iterator[KafkaClient]:
    with MemoryBroker() as broker, client_of(str(broker.address())) as client:
        yield client


def test_few_connections_are_kept_after_many_questions_at_once(client: KafkaClient) -> None:
    lookups = Lookups(client, Wakeup())
    asked: dict[int, KafkaClient] = {}
    all_ask = threading.Barrier(_MOST_AT_ONCE)

    def question(client: KafkaClient) -> None:
        client.topics([], Deadline.after_ms(10_000))
        asked[id(client)] = client
        all_ask.wait(10)

    def still_open() -> int:
        return sum(not each.closed for each in asked.values())

    for _ in range(2):
        burst = [lookups.ask(question) for _ in range(_MOST_AT_ONCE)]
        eventually(lambda: all(each.is_done for each in burst))  # noqa: B023 - called now
        for each in burst:
            each.result()
        eventually(lambda: still_open() == _MOST_IDLE)
    assert len(asked) == 2 * _MOST_AT_ONCE - _MOST_IDLE
    lookups.close()
    assert still_open() == 0
