"""What a test may have a node answer in place of the truth."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from spark_kafka_source.errors import ErrorCode
from spark_kafka_source.protocol import Response


class Action(Enum):
    """What a node can do other than answer."""

    HANDLE = "answer as if there were no control"
    CLOSE = "close the connection"
    LOSE = "handle it, and close the connection in the place of the answer"
    SILENCE = "keep the connection and never answer"
    NO_ANSWER = "go on with the next request"
    AUTHENTICATE = "answer as the connection's guard has it"


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes in the place of an answer, frame size included; then the connection may be closed."""

    data: bytes
    close: bool = False


class Hold:
    """Keeps an answer back until `release`, which any thread may call at any time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, then: "Answer") -> None:
        self.then = then
        self._loop = loop
        self._released = asyncio.Event()

    async def passed(self) -> None:
        await self._released.wait()

    def release(self) -> None:
        self._loop.call_soon_threadsafe(self._released.set)


FixedAnswer = Response | ErrorCode | Raw | Action
Answer = FixedAnswer | Hold | Callable[[Any], FixedAnswer | Hold]
"""An answer, or a function that is asked for one with each request; an error goes where the API
puts errors of partitions, groups or topics."""
