"""Bearer tokens, kept until shortly before they expire. KIP-255 has the rule for the time.

https://cwiki.apache.org/confluence/display/KAFKA/KIP-255+OAuth+Authentication+via+SASL/OAUTHBEARER
"""

import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, runtime_checkable

from spark_kafka_source.chance import CHANCE
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net.sasl.errors import AuthenticationError, kind_and_place
from spark_kafka_source.options.declaration import option
from spark_kafka_source.options.kinds import fraction, int32
from spark_kafka_source.secret import Secret

logger = logger_of(__name__)

URL_OPTION = "kafka.sasl.oauthbearer.token.endpoint.url"
MECHANISM = "OAUTHBEARER"
# https://www.rfc-editor.org/rfc/rfc6750#section-2.1
_BEARER = r"[A-Za-z0-9\-._~+/]+=*"
# Pause after a failed refresh, as long as the present token is good.
_FAILED_REFRESH_PAUSE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token and its expiry, in seconds since 1970."""

    value: Secret
    expires_at_seconds: float


@runtime_checkable
class TokenProvider(Protocol):
    """A source of tokens. Yours must be picklable, hashable, and equal to its copies.

    A frozen dataclass is all of that. Equal providers share their tokens in each Python process.
    Every Spark task asks a provider again if it is not equal to its copies.
    """

    def token(self) -> Token:
        """Return a token that is valid now. May block and raise. One thread at a time calls it."""
        ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class RefreshSettings:
    """Settings for the renewal of tokens, with names and defaults of `sasl.login.refresh.*`."""

    window_factor: float = option(
        "kafka.sasl.login.refresh.window.factor",
        fraction(0.8, 0.5, 1.0),
        "renews a token after this part of its life",
    )
    window_jitter: float = option(
        "kafka.sasl.login.refresh.window.jitter",
        fraction(0.05, 0.0, 0.25),
        "renews a token later by a random part of its life, up to this one",
    )
    min_period_seconds: int = option(
        "kafka.sasl.login.refresh.min.period.seconds",
        int32(60, maximum=900),
        "renews a token no sooner than this, unless its life is too short",
    )
    buffer_seconds: int = option(
        "kafka.sasl.login.refresh.buffer.seconds",
        int32(300, maximum=3600),
        "renews a token this long before its end, unless its life is too short",
    )

    def refresh_at_seconds(self, token: Token, obtained_at_seconds: float, uniform: float) -> float:
        """Return the time to ask for the next token, in seconds on the clock of the arguments.

        That is after `window_factor` of the token's life plus `uniform` times `window_jitter` of
        it. It is not in the last `buffer_seconds` of the token's life, nor in the first
        `min_period_seconds`. Both limits apply only to a token that lives longer than their sum.
        """
        life_seconds = token.expires_at_seconds - obtained_at_seconds
        at_seconds = life_seconds * (self.window_factor + self.window_jitter * uniform)
        if life_seconds > self.min_period_seconds + self.buffer_seconds:
            at_seconds = min(at_seconds, life_seconds - self.buffer_seconds)
            at_seconds = max(at_seconds, self.min_period_seconds)
        return obtained_at_seconds + at_seconds


class TokenCache:
    """The token of one source, for all threads of a process. One thread at a time replaces it.

    `clock` returns seconds since 1970, and `uniform` a number from 0 to 1.
    """

    def __init__(
        self,
        source: TokenProvider,
        refresh: RefreshSettings,
        *,
        clock: Callable[[], float] = time.time,
        uniform: Callable[[], float] = CHANCE.random,
    ) -> None:
        self._source, self._refresh = source, refresh
        self._clock, self._uniform = clock, uniform
        self._refreshing = threading.Lock()
        self._token: Token | None = None
        self._refresh_at_seconds = 0.0

    def token(self) -> Token:
        """Return a token that has not expired.

        Raises `AuthenticationError` if there is no such token. A failed refresh is only logged
        while the present token is good.
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
        """Stop using `token`: a broker has refused it."""
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
            logger.warning("The token could not be refreshed; another try follows: %s", error)
            return token

    def _replace(self) -> Token:
        token = _checked(_ask(self._source), self._clock())
        # Its life counts from its arrival: only the issuer's clock knows when it was made.
        self._refresh_at_seconds = self._refresh.refresh_at_seconds(
            token, self._clock(), self._uniform()
        )
        self._token = token
        return token


@lru_cache(maxsize=32)
def token_cache(source: TokenProvider, refresh: RefreshSettings) -> TokenCache:
    """Return this process's tokens from `source`, so that a new connection needs no new token."""
    return TokenCache(source, refresh)


# At a fork, a thread of the parent may hold a cache's lock. No thread of the child releases it.
os.register_at_fork(after_in_child=token_cache.cache_clear)


def _ask(source: TokenProvider) -> object:
    try:
        return source.token()
    except KafkaError:
        raise
    except Exception as error:  # The user's own code may fail in any way.
        found = f"{type(source).__name__} raised {kind_and_place(error)}"
    # Raised outside the `except` block: the error's text may hold the token, or the credentials.
    raise AuthenticationError(MECHANISM, found, "Check the token provider that was registered")


def _checked(token: object, now_seconds: float) -> Token:
    if not isinstance(token, Token) or not isinstance(token.value, Secret):
        raise _refused("it is not a `Token` with a `Secret` as its value")
    if not re.fullmatch(_BEARER, token.value.reveal()):
        raise _refused("it is empty, or has characters that no bearer token has (RFC 6750)")
    if not isinstance(token.expires_at_seconds, int | float):
        raise _refused("its expiry is not a number of seconds")
    if not token.expires_at_seconds > now_seconds:
        raise _refused("it has expired already; compare the clocks, and seconds since 1970")
    return token


def _refused(fault: str) -> AuthenticationError:
    return AuthenticationError(
        MECHANISM,
        f"a token that cannot be used: {fault}",
        "Check the token provider, or 'kafka.sasl.oauthbearer.token.endpoint.url'",
    )
