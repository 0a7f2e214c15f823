"""Lookups: threads and connections come for many questions at once, and go after them."""

import threading
from collections.abc import Iterator

import pytest
from spark_kafka_source.client.lookups import _MOST_AT_ONCE, _MOST_IDLE

from spark_kafka_source.client import KafkaClient, Lookups
from spark_kafka_source.net import Deadline, Wakeup
from tests.consumer.consumers import eventually
from tests.exactly_once.query import client_of
from tests.memory_broker import MemoryBroker


@pytest.fixture
def client() -> Iterator[KafkaClient]:
    with MemoryBroker() as broker, client_of(str(broker.address())) as client:
        yield client


def test_a_machine_without_room_for_threads_still_answers(
    client: KafkaClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first lookups have threads. When these end, no other thread starts any more."""
    threads = iter(range(_MOST_AT_ONCE))

    def start(thread: threading.Thread) -> bool:
        if next(threads, None) is None:
            raise RuntimeError("can't start new thread")
        thread.start()
        return True

    monkeypatch.setattr("spark_kafka_source.client.lookups.start", start)
    wait = threading.Event()
    lookups = Lookups(client, Wakeup())
    answers: list[int] = []

    def ask() -> None:
        asked = lookups.ask_each(lambda _, number: (wait.wait(10), number)[1], range(20))
        answers.extend(each.result() for each in asked)

    caller = threading.Thread(target=ask, daemon=True)
    caller.start()
    eventually(lambda: len(lookups._busy) == _MOST_AT_ONCE)
    wait.set()
    caller.join(10)
    assert answers == list(range(20))
    lookups.close()


def test_few_connections_are_kept_after_many_questions_at_once(client: KafkaClient) -> None:
    lookups = Lookups(client, Wakeup())
    asked: dict[int, KafkaClient] = {}
    all_ask = threading.Barrier(_MOST_AT_ONCE)

    def question(client: KafkaClient) -> None:
        client.run(client.topics([], Deadline.after_ms(10_000)))
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
