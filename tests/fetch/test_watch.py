"""Waiting fetches at leaders: they answer at once on new records, and not before."""

import threading
import time
from collections.abc import Iterator

import pytest

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import error_named
from spark_kafka_source.fetch import FetchConfig, Watch
from spark_kafka_source.fetch import watch as watch_module
from spark_kafka_source.net import (
    ConnectionSettings,
    Deadline,
    SecuritySettings,
    broker_history,
)
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.protocol.messages.fetch import FetchRequest
from spark_kafka_source.protocol.messages.sasl import SaslAuthenticateRequest
from spark_kafka_source.records import IsolationLevel
from spark_kafka_source.testing.memory import Action, MemoryBroker
from spark_kafka_source.testing.memory.cluster import RefusedError
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import eventually

PARTITIONS = 6
LONG_SECONDS = 60.0
ENDS = {TopicPartition("t", partition): 1 for partition in range(PARTITIONS)}


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryBroker]:
    """Run three brokers that delay empty fetches. A topic has a record in each partition."""
    # On a busy machine a connection may take more than a second, which would count as news.
    monkeypatch.setattr(watch_module, "_LONGEST_CONNECTING_MS", int(LONG_SECONDS * 1000))
    with MemoryBroker(3) as broker:
        broker.held_step_seconds = 0.01
        for log in broker.create_topic("t", partitions=PARTITIONS):
            log.append(b"x")
        yield broker


@pytest.fixture
def watch(three: MemoryBroker) -> Iterator[Watch]:
    with KafkaClient(three.config()) as client:
        watch = Watch(client, FetchConfig())
        yield watch
        watch.close()


def test_without_news_each_leader_is_asked_once(three: MemoryBroker, watch: Watch) -> None:
    for _ in range(5):
        assert not watch.news(ENDS, 0.02)
    three.wait_for(FetchRequest, 3)
    assert len(three.requests(FetchRequest)) == 3
    assert sorted(request.node_id for request in three.seen if _is_fetch(request)) == [0, 1, 2]
    assert watch.useful


def _is_fetch(seen: object) -> bool:
    return isinstance(getattr(seen, "request", None), FetchRequest)


def test_a_new_record_ends_the_wait(three: MemoryBroker, watch: Watch) -> None:
    assert not watch.news(ENDS, 0.02)
    log = three.cluster.topics["t"].logs[4]
    writing = threading.Timer(0.05, log.append, [b"new"])
    writing.start()
    started_seconds = time.monotonic()
    assert watch.news(ENDS, LONG_SECONDS)
    assert time.monotonic() - started_seconds < LONG_SECONDS / 2
    writing.join()
    # The other fetches still wait. The broker that answered gets a fetch at its new log ends.
    after = {**ENDS, TopicPartition("t", 4): 2}
    assert not watch.news(after, 0.02)
    three.wait_for(FetchRequest, 4)
    assert len(three.requests(FetchRequest)) == 4


def test_a_record_that_nobody_may_see_yet_is_no_news(three: MemoryBroker) -> None:
    log = three.cluster.topics["t"].logs[0]
    with KafkaClient(three.config()) as client:
        watch = Watch(client, FetchConfig(isolation_level=IsolationLevel.READ_COMMITTED))
        log.fixed_last_stable_offset = 1
        log.append(b"in a transaction")
        assert not watch.news(ENDS, 0.05)
        log.fixed_last_stable_offset = None
        assert watch.news(ENDS, LONG_SECONDS)
        watch.close()


def test_a_leader_that_has_moved_is_news(three: MemoryBroker, watch: Watch) -> None:
    three.control(FetchRequest, error_named("NOT_LEADER_OR_FOLLOWER"))
    eventually(lambda: watch.news(ENDS, 0.05))


def test_an_error_that_stays_is_news_only_once_the_time_is_up(
    three: MemoryBroker, watch: Watch
) -> None:
    three.control(FetchRequest, error_named("TOPIC_AUTHORIZATION_FAILED"), times=None)
    started_seconds = time.monotonic()
    for _ in range(3):
        # An answer after the timeout counts as news the next time.
        eventually(lambda: watch.news(ENDS, 0.05))
    assert time.monotonic() - started_seconds >= 3 * 0.05
    assert len(three.requests(FetchRequest)) <= 3 * 3


def test_a_broker_that_hangs_up_is_news_and_asked_again(three: MemoryBroker, watch: Watch) -> None:
    three.control(FetchRequest, Action.CLOSE)
    eventually(lambda: watch.news(ENDS, 0.02))
    assert not watch.news(ENDS, 0.02)
    assert watch.useful


def test_a_broker_that_holds_nothing_back_is_not_asked_for_ever(
    three: MemoryBroker, watch: Watch
) -> None:
    three.held_step_seconds = None
    eventually(lambda: watch.news(ENDS, 0.01))
    for _ in range(4):
        assert watch.news(ENDS, 0.01)
    assert not watch.useful
    assert len(three.requests(FetchRequest)) <= 3


def test_what_was_held_for_other_offsets_is_asked_anew(three: MemoryBroker, watch: Watch) -> None:
    assert not watch.news(ENDS, 0.02)
    for log in three.cluster.topics["t"].logs:
        log.append(b"more")
    assert not watch.news(dict.fromkeys(ENDS, 2), 0.1)


def test_a_login_that_is_refused_is_not_shown_again(
    three: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise an idle query would log in several times a second, which locks accounts."""
    # After three seconds another login might be let in.
    monkeypatch.setattr(broker_history, "_QUIET_SECONDS", 3_600.0)
    monkeypatch.setattr(broker_history, "_LONGEST_TURN_MS", 3_600_000)
    settings = ConnectionSettings(security=SecuritySettings.from_settings(Settings(LOGIN)))
    with (
        KafkaClient(three.config()) as other,
        KafkaClient(three.config(settings=settings), other.cluster) as client,
    ):
        assert other.run(other.leaders(ENDS, Deadline.after_ms(30_000)))
        three.cluster.mechanisms["PLAIN"] = _refuse
        watch = Watch(client, FetchConfig())
        for _ in range(5):
            assert watch.news(ENDS, 0.01)
        watch.close()
    assert len(three.requests(SaslAuthenticateRequest)) == 1
    assert not watch.useful


LOGIN = {
    "kafka.security.protocol": "SASL_PLAINTEXT",
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.username": "alice",
    "kafka.sasl.password": "wrong",
}


def _refuse(_: list[bytes]) -> bytes | None:
    raise RefusedError("Invalid username or password")
