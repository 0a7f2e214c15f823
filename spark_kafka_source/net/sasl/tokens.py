"""Bearer tokens, kept until they are about to expire; when that is, is as in KIP-255.

https://cwiki.apache.org/confluence/display/KAFKA/KIP-255+OAuth+Authentication+via+SASL/OAUTHBEARER
"""

import logging
import random
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, runtime_checkable

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.net.sasl.errors import AuthenticationError, kind_and_place
from spark_kafka_source.secret import Secret

logger = logging.getLogger(__name__)

MECHANISM = "OAUTHBEARER"
# https://www.rfc-editor.org/rfc/rfc6750#section-2.1
_BEARER = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
# A refresh that failed is tried again after this, as long as the token at hand is good.
_FAILED_REFRESH_PAUSE_SECONDS = 10.0
# The processes of one machine ask for their tokens at different times.
_uniform = random.SystemRandom().random


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token and when it expires, in seconds since 1970."""

    value: Secret
    expires_at_seconds: float


@runtime_checkable
class TokenProvider(Protocol):
    """Where tokens come from. Yours must be picklable, equal to its copies, and hashable.

    A frozen dataclass is all of that. Equal ones share their tokens in each Python process; one
    that is not equal to its copies is asked again by every Spark task.
    """

    def token(self) -> Token:
        """A token that is good now. May block and raise; is called by one thread at a time."""
        ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class RefreshSettings:
    """When a token is replaced; names and defaults are those of `sasl.login.refresh.*`."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_seconds: int = 60
    buffer_seconds: int = 300

    def refresh_at_seconds(self, token: Token, obtained_at_seconds: float, uniform: float) -> float:
        """When to ask for the next token: `window_factor` of its life, and some, from `uniform`.

        Not in its last `buffer_seconds`, nor in its first `min_period_seconds`, which goes before;
        a token that lives for less than both together is replaced by its window alone.
        """
        life_seconds = token.expires_at_seconds - obtained_at_seconds
        at_seconds = life_seconds * (self.window_factor + self.window_jitter * uniform)
        if life_seconds > self.min_period_seconds + self.buffer_seconds:
            at_seconds = min(at_seconds, life_seconds - self.buffer_seconds)
            at_seconds = max(at_seconds, self.min_period_seconds)
        return obtained_at_seconds + at_seconds


class TokenCache:
    """The token of one source, for all threads of a process; one of them at a time replaces it.

    `clock` gives seconds since 1970 and `uniform` a number from 0 to 1.
    """

    def __init__(
        self,
        source: TokenProvider,
        refresh: RefreshSettings,
        *,
        clock: Callable[[], float] = time.time,
        uniform: Callable[[], float] = _uniform,
    ) -> None:
        self._source, self._refresh = source, refresh
        self._clock, self._uniform = clock, uniform
        self._refreshing = threading.Lock()
        self._token: Token | None = None
        self._refresh_at_seconds = 0.0

    def token(self) -> Token:
        """A token that has not expired.

        Raises `AuthenticationError` where there is none to be had; a refresh that fails is only
        logged while the token at hand is good.
        """
        token = self._good()
        if token is None:
            with self._refreshing:
                return self._good() or self._replace()
        if self._clock() >= self._refresh_at_seconds and self._refreshing.acquire(blocking=False):
            try:
                return self._replace_early(token)
            finally:
                self._refreshing.release()
        return token

    def discard(self, token: Token) -> None:
        """Does not give out `token` any more: a broker has refused it."""
        with self._refreshing:
            if self._token == token:
                self._token = None

    def _good(self) -> Token | None:
        token = self._token
        return token if token and token.expires_at_seconds > self._clock() else None

    def _replace_early(self, token: Token) -> Token:
        try:
            return self._replace()
        except KafkaError as error:
            self._refresh_at_seconds = self._clock() + _FAILED_REFRESH_PAUSE_SECONDS
            logger.warning("The token could not be refreshed, and will be later: %s", error)
            return token

    def _replace(self) -> Token:
        token = _checked(_ask(self._source), self._clock())
        # Its life is counted from its coming: when it was made, only its maker's clock knows.
        self._refresh_at_seconds = self._refresh.refresh_at_seconds(
            token, self._clock(), self._uniform()
        )
        self._token = token
        return token


@lru_cache(maxsize=32)
def token_cache(source: TokenProvider, refresh: RefreshSettings) -> TokenCache:
    """This process's tokens from `source`: reconnecting must not cost a request for a token."""
    return TokenCache(source, refresh)


def _ask(source: TokenProvider) -> object:
    try:
        return source.token()
    except KafkaError:
        raise
    except Exception as error:  # It is the user's own code, and may fail in any way.
        found = f"{type(source).__name__} raised {kind_and_place(error)}"
    # Out of its reach: what went wrong may have the token, or what it is got for, in its text.
    raise AuthenticationError(MECHANISM, found, "Check the token provider that was registered")


def _checked(token: object, now_seconds: float) -> Token:
    if not isinstance(token, Token) or not isinstance(token.value, Secret):
        raise _refused("there is no `Token` with a `Secret` for its value")
    if not _BEARER.fullmatch(token.value.reveal()):
        raise _refused("it is empty, or has characters that no bearer token has (RFC 6750)")
    if not isinstance(token.expires_at_seconds, int | float):
        raise _refused("it says no number of seconds for when it expires")
    if not token.expires_at_seconds > now_seconds:
        raise _refused("it has expired already; compare the clocks, and seconds since 1970")
    return token


def _refused(fault: str) -> AuthenticationError:
    return AuthenticationError(
        MECHANISM,
        f"a token that cannot be used: {fault}",
        "Check the token provider, or 'kafka.sasl.oauthbearer.token.endpoint.url'",
    )
