"""The experience of a client with brokers: the addresses that failed, and a refused login."""

import threading
import time
from collections.abc import Callable, Iterable
from itertools import count
from typing import TypeVar

from spark_kafka_source.net.deadline import Deadline
from spark_kafka_source.net.retry import NextTry, Retry
from spark_kafka_source.net.sasl import AuthenticationError, refuses_login

A = TypeVar("A", bound=tuple[object, ...])
V = TypeVar("V")

# A broker that falls silent during a login has not refused it: other logins wait only so long.
_LONGEST_TURN_MS = 3_000
_QUIET_SECONDS = 3.0
_MOST_REMEMBERED = 1_000
_OTHER_API_VERSIONS = (3, 0)
"""Versions in which a broker is asked if it hangs up. All have the ranges of versions."""


class BrokerHistory:
    """Failures and logins of the clients of one consumer, for their threads at the same time."""

    def __init__(self) -> None:
        self._failed: dict[tuple[object, ...], int] = {}
        self._failures = count()
        self._lost: dict[tuple[object, ...], NextTry] = {}
        self._asked_in: dict[tuple[object, ...], int] = {}
        """The version in which a broker is asked for its versions; by default the highest."""
        self._turn = threading.Lock()
        self._quiet_until_seconds = 0.0
        self._refusal: AuthenticationError | None = None
        self.was_reached = False
        """Whether any broker ever answered anything."""
        self.last_error: Exception | None = None
        """The last error of a question to any broker, as long as none was reached."""

    def failed(self, address: tuple[object, ...]) -> None:
        """Note that this address, of a broker or of one of its hosts, failed.

        It is tried last from now on.
        """
        _remember(self._failed, address, next(self._failures))

    def answered(self, address: tuple[object, ...]) -> None:
        """Note that this address answered. It is tried in its usual turn again."""
        self.was_reached = True
        self._failed.pop(address, None)

    def lost(self, broker: tuple[object, ...], pauses: Retry) -> None:
        """Note that a connection to this broker could not be made, or was lost.

        The pause before the next one grows with each connection that could not be made since the
        last good one.
        """
        again = self._lost.get(broker) or NextTry(pauses.pause_seconds)
        again.failed()
        _remember(self._lost, broker, again)

    def connected(self, broker: tuple[object, ...]) -> None:
        """Note that a connection to this broker was made."""
        self._lost.pop(broker, None)

    def pause_seconds(self, broker: tuple[object, ...]) -> float:
        """Return how long to wait before the next connection to this broker; at least 0."""
        again = self._lost.get(broker)
        return 0.0 if again is None else max(again.at_seconds - time.monotonic(), 0.0)

    def api_versions_version(self, broker: tuple[object, ...], highest: int) -> int:
        """Return the version in which to ask a broker for its versions."""
        return min(self._asked_in.get(broker, highest), highest)

    def hung_up(self, broker: tuple[object, ...], version: int) -> None:
        """Note that a broker hung up when asked for its versions in this version.

        It may not know the version, so it is asked in another next time. A broker that starts, and
        a proxy in front of it, hang up, too. After the lowest version comes the highest again.
        """
        lower = next((lower for lower in _OTHER_API_VERSIONS if lower < version), None)
        if lower is None:
            self.disagreed(broker)
        else:
            _remember(self._asked_in, broker, lower)

    def agreed(self, broker: tuple[object, ...], version: int) -> None:
        """Note that a broker answers in this version."""
        _remember(self._asked_in, broker, version)

    def disagreed(self, broker: tuple[object, ...]) -> None:
        """Note that there was no answer. The broker is asked in the highest version next time."""
        self._asked_in.pop(broker, None)

    def is_suspect(self, address: tuple[object, ...]) -> bool:
        """Return whether this address failed last time."""
        return address in self._failed

    def best_first(self, addresses: Iterable[A]) -> list[A]:
        """Return the addresses in order, but failed ones at the end, the latest failure last."""
        return sorted(addresses, key=lambda address: self._failed.get(address, -1))

    def log_in(self, attempt: Callable[[], None], deadline: Deadline) -> None:
        """Try to log in: one attempt at a time, and none within three seconds of a refusal.

        So only one broker gets a wrong password, even if many connections are made at once. Many
        refusals could lock the account. Raises the errors of `attempt`, or the
        `AuthenticationError` of the attempt that was refused.
        """
        wait_seconds = deadline.within_ms(_LONGEST_TURN_MS).remaining_seconds()
        has_turn = self._turn.acquire(timeout=wait_seconds)
        try:
            refusal = self._refusal
            if refusal is not None and time.monotonic() < self._quiet_until_seconds:
                raise type(refusal)(refusal.mechanism, refusal.found, refusal.expected)
            self._attempt(attempt)
        finally:
            if has_turn:
                self._turn.release()

    def _attempt(self, attempt: Callable[[], None]) -> None:
        try:
            attempt()
        except AuthenticationError as error:
            if refuses_login(error):
                self._refusal = error
                self._quiet_until_seconds = time.monotonic() + _QUIET_SECONDS
            raise


def _remember(memory: dict[tuple[object, ...], V], address: tuple[object, ...], fact: V) -> None:
    """Note a fact as the newest. If there are too many, forget the oldest."""
    memory.pop(address, None)
    memory[address] = fact
    if len(memory) > _MOST_REMEMBERED:
        memory.pop(next(iter(memory)), None)
