"""One question to several brokers in quick turns, until the first answer."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from spark_kafka_source.client.asked import LONGEST_SILENCE_MS, Asked
from spark_kafka_source.errors import BootstrapError, RemoteError
from spark_kafka_source.net import Address, Deadline, refuses_login, wait_for
from spark_kafka_source.protocol import Response

R = TypeVar("R", bound=Response)

# An address that is silent for so long may be a black hole. A healthy broker, also a distant one,
# has mostly sent its first bytes by then, even if TLS and the login take longer.
_TURN_MS = 500


class Race(Generic[R]):
    """A question that `ask` sends to `candidates`. The next has its turn if the last is silent.

    Close the race in the end. That closes the connections whose answers are still to come.
    """

    def __init__(self, candidates: Sequence[Address], ask: Callable[[Address], Asked[R]]) -> None:
        self._candidates = candidates
        self._waiting = deque(candidates)
        self._ask = ask
        self._running: list[Asked[R]] = []
        self._turn_began_seconds = 0.0
        self._failures: dict[Address, RemoteError] = {}

    async def winner(self, deadline: Deadline) -> tuple[Address, R]:
        """Return the first answer with its address.

        Raises `BootstrapError` with the error of each address, or the first of these errors that
        is not retriable. An error by which a broker refuses the login is raised at once.
        """
        while self._running or (self._waiting and not (self._failures and deadline.expired)):
            if self._waiting and self._is_next_turn():
                self._running.append(self._ask(self._waiting.popleft()))
                self._turn_began_seconds = time.monotonic()
            over = [each for each in self._running if each.is_over()]
            if not over:
                await wait_for(tuple(self._running), self._wakes_at())
            for asked in over:
                self._running.remove(asked)
                try:
                    return asked.address, asked.answer()
                except RemoteError as error:
                    if refuses_login(error):
                        raise
                    self._failures[asked.address] = error
                    self._turn_began_seconds = 0.0
        raise self._failure()

    def close(self) -> None:
        """Give up the answers that are still to come. An address without a byte is tried last."""
        for each in self._running:
            if each.is_heard:
                each.abandon()
            else:
                each.give_up("another broker was sooner, so it was given up while")

    def _wakes_at(self) -> Deadline:
        next_turn = [self._next_turn()] if self._waiting else []
        return Deadline.first(*next_turn, *(each.deadline for each in self._running))

    def _is_next_turn(self) -> bool:
        return not self._running or self._next_turn().expired

    def _next_turn(self) -> Deadline:
        is_heard = bool(self._running) and self._running[-1].is_heard
        turn_ms = LONGEST_SILENCE_MS if is_heard else _TURN_MS
        return Deadline(self._turn_began_seconds + turn_ms / 1000, turn_ms)

    def _failure(self) -> RemoteError:
        failures = [self._failures[each] for each in self._candidates if each in self._failures]
        lasting = [each for each in failures if not each.has_remedy]
        return lasting[0] if lasting else BootstrapError([str(each) for each in failures])
