"""Tokens are cached while they are valid, and replaced before they expire."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.net.sasl import AuthenticationError, Token, TokenUnavailableError
from spark_kafka_source.net.sasl.tokens import RefreshSettings, TokenCache, token_cache
from spark_kafka_source.secret import Secret
from tests.net.sasl.tokens_of_tests import Clock, Fixed, Source

AT_ONCE = RefreshSettings(0.8, 0.0, 0, 0)


def cache_of(source: Source, refresh: RefreshSettings = AT_ONCE) -> TokenCache:
    return TokenCache(source, refresh, clock=source.clock, uniform=lambda: 1.0)


@pytest.mark.parametrize(
    ("refresh", "life_seconds", "after_seconds"),
    [
        (RefreshSettings(0.8, 0.05, 60, 300), 3600, 0.85 * 3600),
        (RefreshSettings(0.8, 0.0, 60, 300), 3600, 0.8 * 3600),
        (RefreshSettings(0.8, 0.05, 60, 300), 900, 600),  # the buffer wins over the window
        (RefreshSettings(0.5, 0.0, 600, 60), 1000, 600),  # the minimum period wins over both
        (RefreshSettings(0.8, 0.0, 60, 300), 300, 240),  # the lifetime is shorter than both
    ],
)
def test_when_it_is_replaced(
    refresh: RefreshSettings, life_seconds: float, after_seconds: float
) -> None:
    token = Token(Secret("a"), 100.0 + life_seconds)
    assert refresh.refresh_at_seconds(token, 100.0, 1.0) == pytest.approx(100 + after_seconds)


@given(st.floats(1, 1e7), st.floats(0, 1), st.floats(0.5, 0.95), st.integers(0, 900))
def test_it_is_replaced_while_it_lives(
    life_seconds: float, uniform: float, factor: float, period: int
) -> None:
    refresh = RefreshSettings(factor, 0.05, period, 300)
    at_seconds = refresh.refresh_at_seconds(Token(Secret("a"), life_seconds), 0.0, uniform)
    assert 0 < at_seconds <= life_seconds


def test_one_token_serves_until_its_window_is_over() -> None:
    clock = Clock()
    source = Source(clock)
    tokens = cache_of(source)
    assert [tokens.token().value.reveal() for _ in range(3)] == ["token-1"] * 3
    clock.now_seconds += 799
    assert tokens.token().value.reveal() == "token-1"
    clock.now_seconds += 1
    assert tokens.token().value.reveal() == "token-2"
    assert source.asked == 2


def test_a_refresh_that_fails_is_put_off_while_the_token_is_good(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    source = Source(clock)
    tokens = cache_of(source)
    tokens.token()
    clock.now_seconds += 900
    source.error = TokenUnavailableError("OAUTHBEARER", "it is away")
    assert tokens.token().value.reveal() == "token-1"
    assert tokens.token().value.reveal() == "token-1"
    assert source.asked == 2
    assert "OAUTHBEARER: it is away" in caplog.text
    clock.now_seconds += 100
    with pytest.raises(TokenUnavailableError):
        tokens.token()
    source.error = None
    assert tokens.token().value.reveal() == "token-4"


def test_what_a_broker_refused_is_not_given_out_again() -> None:
    tokens = cache_of(Source(Clock()))
    first = tokens.token()
    tokens.discard(first)
    second = tokens.token()
    assert second != first
    tokens.discard(first)  # late, from another connection
    assert tokens.token() == second


def test_threads_that_need_the_first_one_ask_once() -> None:
    source = Source(Clock())
    asking, go_on = threading.Event(), threading.Event()

    class Slow:
        def token(self) -> Token:
            asking.set()
            assert go_on.wait(60)
            return source.token()

    tokens = TokenCache(Slow(), AT_ONCE, clock=source.clock)
    with ThreadPoolExecutor(4) as threads:
        found = [threads.submit(tokens.token) for _ in range(4)]
        assert asking.wait(60)
        go_on.set()
    assert {each.result().value.reveal() for each in found} == {"token-1"}


def test_nobody_waits_for_a_refresh_while_the_token_is_good() -> None:
    source = Source(Clock())
    asking, go_on = threading.Event(), threading.Event()

    class Slow:
        def token(self) -> Token:
            if source.asked:
                asking.set()
                assert go_on.wait(60)
            return source.token()

    tokens = TokenCache(Slow(), AT_ONCE, clock=source.clock)
    tokens.token()
    source.clock.now_seconds += 900
    with ThreadPoolExecutor(1) as threads:
        refreshed = threads.submit(tokens.token)
        assert asking.wait(60)
        assert tokens.token().value.reveal() == "token-1"
        go_on.set()
    assert refreshed.result().value.reveal() == "token-2"


def test_equal_sources_share_their_tokens() -> None:
    assert token_cache(Fixed("a"), AT_ONCE) is token_cache(Fixed("a"), AT_ONCE)
    assert token_cache(Fixed("a"), AT_ONCE) is not token_cache(Fixed("b"), AT_ONCE)


class Strange:
    def __init__(self, found: object) -> None:
        self.found = found

    def token(self) -> Token:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found  # type: ignore[return-value]  # the test is about a wrong type


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        ("hunter2", "not a `Token`"),
        (None, "not a `Token`"),
        (Token("hunter2", 2e9), "not a `Token`"),  # type: ignore[arg-type]  # a careless provider
        (Token(Secret("hunter2 "), 2e9), "characters that no bearer token has"),
        (Token(Secret("hunter2\x01auth=x"), 2e9), "characters that no bearer token has"),
        (Token(Secret(""), 2e9), "it is empty"),
        (Token(Secret("hunter2"), 1_000_000.0), "expired already"),
        (Token(Secret("hunter2"), float("nan")), "expired already"),
        (Token(Secret("hunter2"), None), "not a number"),  # type: ignore[arg-type]  # likewise
        (ValueError("hunter2"), r"Strange raised ValueError \(test_tokens.py, line \d+\)"),
    ],
)
def test_what_is_no_token_is_refused(found: object, fault: str) -> None:
    tokens = TokenCache(Strange(found), AT_ONCE, clock=Clock())
    with pytest.raises(AuthenticationError, match=fault) as refused:
        tokens.token()
    assert "hunter2" not in str(refused.value) + repr(refused.value)
    # A log of the whole chain shows no secret either.
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None
