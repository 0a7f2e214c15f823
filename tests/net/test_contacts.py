"""What connections learn about addresses and the login."""

import threading
from types import SimpleNamespace

import pytest

from spark_kafka_source.net import Address, AuthenticationError, Deadline, Retry
from spark_kafka_source.net import contacts as contacts_module
from spark_kafka_source.net.contacts import Contacts
from spark_kafka_source.net.sasl import TokenUnavailableError
from tests.client.clock import Clock

A, B, C = (Address(host, 9092) for host in "abc")


def in_time() -> Deadline:
    return Deadline.after_ms(30_000)


def test_addresses_that_failed_come_last_and_the_latest_of_them_at_the_end() -> None:
    contacts = Contacts()
    for each in (A, B, A):
        contacts.failed(each)
    assert contacts.best_first([A, B, C]) == [C, B, A]
    assert contacts.is_suspect(A)


def test_an_address_that_answers_has_its_turn_again() -> None:
    contacts = Contacts()
    assert not contacts.was_reached
    contacts.failed(A)
    contacts.answered(A)
    assert contacts.best_first([A, B]) == [A, B]
    assert contacts.was_reached


def test_what_is_remembered_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contacts_module, "_MOST_REMEMBERED", 2)
    contacts = Contacts()
    for each in (A, B, C):
        contacts.failed(each)
    assert [contacts.is_suspect(each) for each in (A, B, C)] == [False, True, True]


def refused() -> None:
    raise AuthenticationError("PLAIN", "wrong")


def test_after_a_refusal_no_login_is_tried_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(contacts_module, "time", SimpleNamespace(monotonic=clock.monotonic))
    contacts = Contacts()
    with pytest.raises(AuthenticationError):
        contacts.log_in(refused, in_time())
    tried: list[int] = []
    with pytest.raises(AuthenticationError, match="wrong"):
        contacts.log_in(lambda: tried.append(1), in_time())
    assert not tried
    clock.now_seconds += 3.5
    contacts.log_in(lambda: tried.append(2), in_time())
    assert tried == [2], "a later attempt is free: the password may have been changed"


def test_a_token_that_cannot_be_had_is_no_refusal() -> None:
    contacts = Contacts()

    def unavailable() -> None:
        raise TokenUnavailableError("OAUTHBEARER", "the endpoint is down")

    with pytest.raises(TokenUnavailableError):
        contacts.log_in(unavailable, in_time())
    contacts.log_in(lambda: None, in_time())


def test_logins_take_turns() -> None:
    contacts = Contacts()
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
        both.wait(20)
        for _ in range(200):
            contacts.log_in(attempt, in_time())

    threads = [threading.Thread(target=run) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(20)
    assert most == 1


def test_a_login_that_hangs_does_not_keep_others_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contacts_module, "_LONGEST_TURN_MS", 20)
    contacts = Contacts()
    go_on, has_begun = threading.Event(), threading.Event()

    def hangs() -> None:
        has_begun.set()
        go_on.wait(20)

    hanging = threading.Thread(target=contacts.log_in, args=[hangs, in_time()])
    hanging.start()
    has_begun.wait(20)
    tried: list[int] = []
    contacts.log_in(lambda: tried.append(1), in_time())
    go_on.set()
    hanging.join(20)
    assert tried == [1]


def test_pauses_before_a_broker_is_connected_to_again_grow_until_it_is() -> None:
    contacts, pauses = Contacts(), Retry(10_000, 40_000)
    for expected in (10, 20, 40, 40):
        contacts.lost(A, pauses)
        assert 0.79 * expected < contacts.pause_seconds(A) < 1.21 * expected
    assert contacts.pause_seconds(B) == 0
    contacts.connected(A)
    assert contacts.pause_seconds(A) == 0
    contacts.lost(A, pauses)
    assert contacts.pause_seconds(A) < 12.1
