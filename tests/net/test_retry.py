"""The retry loop, on a test's own clock."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.client import NextTry, Retry
from spark_kafka_source.errors import (
    BootstrapError,
    BrokerError,
    KafkaError,
    KafkaTimeoutError,
    LocalError,
    error_named,
)
from spark_kafka_source.net import Deadline
from spark_kafka_source.net import run as run_conversation
from tests.client.clock import Clock, deadlines_by

MOVED = BrokerError(error_named("NOT_LEADER_OR_FOLLOWER"), "Fetch of t-0")
DENIED = BrokerError(error_named("TOPIC_AUTHORIZATION_FAILED"), "Fetch of t-0")


class Attempts:
    """Raise these errors in turn (the last one may repeat for ever), then return "done"."""

    def __init__(self, *errors: KafkaError, for_ever: bool = False) -> None:
        self.errors, self.for_ever = errors, for_ever
        self.count = 0
        self.recovered: list[KafkaError] = []

    async def __call__(self, deadline: Deadline) -> str:
        self.count += 1
        if self.for_ever or self.count <= len(self.errors):
            raise self.errors[min(self.count, len(self.errors)) - 1]
        return "done"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    deadlines_by(clock, monkeypatch)
    return clock


def run(clock: Clock, attempts: Attempts, *, timeout_ms: int = 60_000) -> str:
    retry = Retry(backoff_ms=100, backoff_max_ms=1_000)
    deadline = Deadline.after_ms(timeout_ms)
    tries = retry.run("Fetch of t-0", attempts, attempts.recovered.append, deadline)
    return run_conversation(tries, clock.block)


def test_an_answer_takes_one_try_and_no_pause(clock: Clock) -> None:
    assert run(clock, attempts := Attempts()) == "done"
    assert (attempts.count, clock.pauses) == (1, [])


def test_recovery_comes_before_each_further_try(clock: Clock) -> None:
    attempts = Attempts(MOVED, MOVED)
    assert run(clock, attempts) == "done"
    assert attempts.count == 3
    assert attempts.recovered == [MOVED, MOVED]


@pytest.mark.parametrize("fatal", [DENIED, LocalError("no"), KafkaTimeoutError("late")])
def test_what_cannot_heal_is_raised_at_once_and_as_it_is(clock: Clock, fatal: KafkaError) -> None:
    attempts = Attempts(MOVED, fatal)
    with pytest.raises(type(fatal)) as caught:
        run(clock, attempts)
    assert caught.value is fatal
    assert (attempts.count, attempts.recovered, len(clock.pauses)) == (2, [MOVED], 1)


def test_pauses_double_up_to_a_limit_give_or_take_a_fifth(clock: Clock) -> None:
    run(clock, Attempts(*[MOVED] * 7))
    for pause, middle in zip(clock.pauses, [0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0], strict=True):
        assert middle * 0.8 <= pause <= middle * 1.2


def test_pauses_are_not_all_alike(clock: Clock) -> None:
    run(clock, Attempts(*[MOVED] * 30))
    assert len(set(clock.pauses[5:])) > 10


def test_it_gives_up_at_the_deadline_and_says_on_what(clock: Clock) -> None:
    attempts = Attempts(MOVED, for_ever=True)
    with pytest.raises(KafkaTimeoutError) as caught:
        run(clock, attempts, timeout_ms=5_000)
    assert clock.now_seconds <= 5
    assert str(caught.value) == (
        f"Fetch of t-0: no success in {attempts.count} tries within 5000 ms; "
        "the last: Fetch of t-0: NOT_LEADER_OR_FOLLOWER (6)"
    )
    assert caught.value.__cause__ is MOVED


def test_a_long_outage_is_logged_every_30_seconds(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(KafkaTimeoutError):
        run(clock, Attempts(MOVED, for_ever=True), timeout_ms=100_000)
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 3
    assert all(each.startswith("Fetch of t-0: no success in ") for each in told)
    assert str(MOVED) in told[0]


def test_giving_up_to_bootstrap_keeps_the_list_of_addresses(clock: Clock) -> None:
    nowhere = BootstrapError(["a:1 refused", "b:2 timed out"])
    with pytest.raises(BootstrapError, match=r"tried a:1 refused; b:2 timed out") as caught:
        run(clock, Attempts(nowhere, for_ever=True), timeout_ms=1_000)
    assert caught.value is nowhere
    assert caught.value.__cause__ is None  # Nor itself: a walk along that chain never ends.


def test_the_fault_of_an_address_is_not_hidden_by_a_last_try_that_had_no_time(clock: Clock) -> None:
    fault = BootstrapError(["a:1: no token", "b:2: refused"])
    short = BootstrapError(["b:2: refused", "a:1: timed out connecting"])
    with pytest.raises(BootstrapError) as caught:
        run(clock, Attempts(fault, short, for_ever=True), timeout_ms=200)
    assert caught.value.failures == (
        "b:2: refused",
        "a:1: timed out connecting",
        "before that, a:1: no token",
    )
    assert caught.value.__cause__ is short


def test_what_a_broker_said_is_not_hidden_by_a_last_try_that_had_no_time(clock: Clock) -> None:
    attempts = Attempts(MOVED, BootstrapError(["a:1: timed out"]), for_ever=True)
    with pytest.raises(KafkaTimeoutError) as caught:
        run(clock, attempts, timeout_ms=200)
    assert attempts.count == 2
    assert "the last: No broker of 'kafka.bootstrap.servers'" in str(caught.value)
    assert str(caught.value).endswith("; the one before: Fetch of t-0: NOT_LEADER_OR_FOLLOWER (6)")


def test_a_shorter_first_pause() -> None:
    retry = Retry(backoff_ms=100, backoff_max_ms=1_000)
    assert [retry.beginning_with(each).backoff_ms for each in (20, 100, 500)] == [20, 100, 100]
    assert retry.beginning_with(20).backoff_max_ms == 1_000


def test_one_try_is_made_even_where_time_is_up(clock: Clock) -> None:
    assert run(clock, Attempts(), timeout_ms=0) == "done"


@given(
    backoff_ms=st.integers(0, 2**31 - 1),
    backoff_max_ms=st.integers(0, 2**31 - 1),
    timeout_ms=st.integers(0, 100_000),
)
def test_whatever_the_configuration_the_deadline_holds(
    backoff_ms: int, backoff_max_ms: int, timeout_ms: int
) -> None:
    clock = Clock()
    retry = Retry(backoff_ms, backoff_max_ms)

    async def attempt(deadline: Deadline) -> str:
        clock.now_seconds += 0.5  # Otherwise tries without a pause would never end.
        raise MOVED

    with pytest.MonkeyPatch.context() as monkeypatch:
        deadlines_by(clock, monkeypatch)
        deadline = Deadline.after_ms(timeout_ms)
        with pytest.raises(KafkaTimeoutError):
            run_conversation(retry.run("Fetch", attempt, lambda _: None, deadline), clock.block)
    assert clock.now_seconds <= timeout_ms / 1000 + 0.5


def next_try(clock: Clock, least_seconds: float = 0.0) -> NextTry:
    return NextTry(
        Retry(100, 1_000).pause_seconds, least_seconds=least_seconds, clock=clock.monotonic
    )


def test_the_next_try_is_due_after_a_pause_that_grows_with_each_failure(clock: Clock) -> None:
    again = next_try(clock)
    for middle in (0.1, 0.2, 0.4):
        again.failed()
        assert not again.is_due
        assert middle * 0.8 <= again.at_seconds - clock.now_seconds <= middle * 1.2
    assert again.tries == 3


def test_a_try_is_due_at_first_and_once_the_pause_is_over(clock: Clock) -> None:
    again = next_try(clock)
    dues = [again.is_due]
    again.failed()
    clock.now_seconds = again.at_seconds
    assert [*dues, again.is_due] == [True, True]


def test_after_a_success_the_pause_under_way_goes_on_and_the_next_one_is_short(
    clock: Clock,
) -> None:
    again = next_try(clock)
    for _ in range(3):
        again.failed()
    again.succeeded()
    assert not again.is_due
    again.failed()
    assert again.at_seconds - clock.now_seconds <= 0.12


def test_after_a_reset_a_try_is_due_at_once(clock: Clock) -> None:
    again = next_try(clock)
    again.failed()
    again.reset()
    assert again.is_due
    assert again.tries == 0


def test_a_pause_has_a_least_length_and_one_alone_may_have_another(clock: Clock) -> None:
    again = next_try(clock, least_seconds=0.5)
    again.failed()
    assert again.at_seconds - clock.now_seconds == 0.5
    again.failed(lambda tries: 3.0 * tries)
    assert again.at_seconds - clock.now_seconds == 6.0
