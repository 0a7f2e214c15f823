"""One question to several brokers in quick turns, until the first answer."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from spark_kafka_source.client.asked import LONGEST_SILENCE_MS, Asked
from spark_kafka_source.errors import BootstrapError, RebootstrapError, RemoteError
from spark_kafka_source.net import Address, Deadline, refuses_login, wait_for
from spark_kafka_source.protocol import Response

R = TypeVar("R", bound=Response)

# An address that is silent for so long may be a black hole. A healthy broker, also a distant one,
# has mostly sent its first bytes by then, even if TLS and the login take longer.
_TURN_MS = 500


async def race(
    candidates: Sequence[Address], ask: Callable[[Address], Asked[R]], deadline: Deadline
) -> tuple[Address, R]:
    """Send a question to the candidates by turns, and return the first answer with its address.

    The next has its turn if the last is silent. Raises `BootstrapError` with the error of each
    address, or the first of these errors that is not retriable. A `RebootstrapError`, and an error
    by which a broker refuses the login, are raised at once.
    """
    waiting = deque(candidates)
    running: list[Asked[R]] = []
    failures: dict[Address, RemoteError] = {}
    began_seconds = 0.0
    try:
        while running or (waiting and not (failures and deadline.expired)):
            if waiting and (not running or _turn_end(running[-1], began_seconds).expired):
                running.append(ask(waiting.popleft()))
                began_seconds = time.monotonic()
            over = [each for each in running if each.is_over()]
            if not over:
                turn_end = [_turn_end(running[-1], began_seconds)] if waiting else []
                until = Deadline.first(*turn_end, *(each.deadline for each in running))
                await wait_for(tuple(running), until)
            for asked in over:
                running.remove(asked)
                try:
                    return asked.address, asked.answer()
                except RemoteError as error:
                    # Other known addresses may be as wrong as the one of a `RebootstrapError`.
                    if refuses_login(error) or isinstance(error, RebootstrapError):
                        raise
                    failures[asked.address] = error
                    began_seconds = 0.0
        raise _failure([failures[each] for each in candidates if each in failures])
    finally:
        _give_up(running)


def _turn_end(asked: Asked[R], began_seconds: float) -> Deadline:
    turn_ms = LONGEST_SILENCE_MS if asked.is_heard else _TURN_MS
    return Deadline(began_seconds + turn_ms / 1000, turn_ms)


def _give_up(running: Sequence[Asked[R]]) -> None:
    """Close the connections whose answers are still to come. One without a byte is tried last."""
    for asked in running:
        if asked.is_heard:
            asked.abandon()
        else:
            asked.give_up("another broker was sooner, so it was given up while")


def _failure(failures: Sequence[RemoteError]) -> RemoteError:
    lasting = [each for each in failures if not each.has_remedy]
    return lasting[0] if lasting else BootstrapError([str(each) for each in failures])
