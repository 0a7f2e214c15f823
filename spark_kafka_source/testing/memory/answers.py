"""Answers that a test can give to a node in place of the handler's answer."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from spark_kafka_source.errors import ErrorCode, error_named
from spark_kafka_source.protocol import Response


def code(name: str) -> int:
    """Return the code of the error with this name."""
    return error_named(name).code


class Action(Enum):
    """What a node can do instead of answering."""

    HANDLE = "answer as if there were no control"
    CLOSE = "close the connection"
    LOSE = "handle it, and close the connection in the place of the answer"
    SILENCE = "keep the connection and never answer"
    NO_ANSWER = "go on with the next request"
    AUTHENTICATE = "answer as the connection's guard has it"


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes in place of an answer, frame size included. `close` then closes the connection."""

    data: bytes
    close: bool = False


class Hold:
    """Hold an answer back until `release`. Any thread may call `release` at any time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, then: "Answer") -> None:
        self.then = then
        self._loop = loop
        self._released = asyncio.Event()

    async def passed(self) -> None:
        """Wait until `release`."""
        await self._released.wait()

    def release(self) -> None:
        """Let the answer go."""
        self._loop.call_soon_threadsafe(self._released.set)


FixedAnswer = Response | ErrorCode | Raw | Action
Answer = FixedAnswer | Hold | Callable[[Any], FixedAnswer | Hold]
"""An answer, or a function that returns an answer for each request. An error goes where the API
puts errors of partitions, groups or topics."""
