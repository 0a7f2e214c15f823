"""What connections learn about addresses and the login."""

import threading
from types import SimpleNamespace

import pytest

from spark_kafka_source.net import Address, AuthenticationError, Deadline, Retry
from spark_kafka_source.net import broker_history as contacts_module
from spark_kafka_source.net.broker_history import BrokerHistory
from spark_kafka_source.net.sasl import TokenUnavailableError
from tests.client.clock import Clock

A, B, C = (Address(host, 9092) for host in "abc")


def in_time() -> Deadline:
    return Deadline.after_ms(30_000)


def test_addresses_that_failed_come_last_and_the_latest_of_them_at_the_end() -> None:
    history = BrokerHistory()
    for each in (A, B, A):
        history.failed(each)
    assert history.best_first([A, B, C]) == [C, B, A]
    assert history.is_suspect(A)


def test_an_address_that_answers_has_its_turn_again() -> None:
    history = BrokerHistory()
    assert not history.was_reached
    history.failed(A)
    history.answered(A)
    assert history.best_first([A, B]) == [A, B]
    assert history.was_reached


def test_what_is_remembered_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contacts_module, "_MOST_REMEMBERED", 2)
    history = BrokerHistory()
    for each in (A, B, C):
        history.failed(each)
    assert [history.is_suspect(each) for each in (A, B, C)] == [False, True, True]


def refused() -> None:
    raise AuthenticationError("PLAIN", "wrong")


def test_after_a_refusal_no_login_is_tried_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(contacts_module, "time", SimpleNamespace(monotonic=clock.monotonic))
    history = BrokerHistory()
    with pytest.raises(AuthenticationError):
        history.log_in(refused, in_time())
    tried: list[int] = []
    with pytest.raises(AuthenticationError, match="wrong"):
        history.log_in(lambda: tried.append(1), in_time())
    assert not tried
    clock.now_seconds += 3.5
    history.log_in(lambda: tried.append(2), in_time())
    assert tried == [2], "a later attempt is free: the password may have been changed"


def test_a_token_that_cannot_be_had_is_no_refusal() -> None:
    history = BrokerHistory()

    def unavailable() -> None:
        raise TokenUnavailableError("OAUTHBEARER", "the endpoint is down")

    with pytest.raises(TokenUnavailableError):
        history.log_in(unavailable, in_time())
    history.log_in(lambda: None, in_time())


def test_logins_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contacts_module, "_LONGEST_TURN_MS", 3_600_000)
    history = BrokerHistory()
    under_way, most = 0, 0
    lock = threading.Lock()
    both = threading.Barrier(2)

    def attempt() -> None:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        with lock:
            under_way -= 1

    def run() -> None:
        both.wait(60)
        for _ in range(200):
            history.log_in(attempt, in_time())

    threads = [threading.Thread(target=run) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert most == 1


def test_a_login_that_hangs_does_not_keep_others_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contacts_module, "_LONGEST_TURN_MS", 20)
    history = BrokerHistory()
    go_on, has_begun = threading.Event(), threading.Event()

    def hangs() -> None:
        has_begun.set()
        go_on.wait(20)

    hanging = threading.Thread(target=history.log_in, args=[hangs, in_time()])
    hanging.start()
    has_begun.wait(20)
    tried: list[int] = []
    history.log_in(lambda: tried.append(1), in_time())
    go_on.set()
    hanging.join(20)
    assert tried == [1]


def test_pauses_before_a_broker_is_connected_to_again_grow_until_it_is() -> None:
    # In hours the time that the test takes does not count.
    history, pauses = BrokerHistory(), Retry(10_000_000, 40_000_000)
    for expected in (10_000, 20_000, 40_000, 40_000):
        history.lost(A, pauses)
        assert 0.79 * expected < history.pause_seconds(A) < 1.21 * expected
    assert history.pause_seconds(B) == 0
    history.connected(A)
    assert history.pause_seconds(A) == 0
    history.lost(A, pauses)
    assert history.pause_seconds(A) < 12_100
