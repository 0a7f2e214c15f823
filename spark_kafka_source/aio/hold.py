"""Conversations on an asyncio loop: other tasks go on while one waits."""

import asyncio
import threading
import time
from collections.abc import Generator
from functools import partial
from types import coroutine
from typing import Any, TypeVar, cast

from spark_kafka_source.net import Conversation, Wait

T = TypeVar("T")

_TURN_SECONDS = 0.01


class _Turns(threading.local):
    """The turns of other tasks, during work that waits for nothing. A thread has one loop."""

    _next_at_seconds = 0.0

    async def give(self) -> None:
        """Let other tasks have their turn if the last one was 10 ms ago."""
        if time.monotonic() >= self._next_at_seconds:
            await asyncio.sleep(0)
            self._next_at_seconds = time.monotonic() + _TURN_SECONDS


turns = _Turns()


async def hold(conversation: Conversation[T]) -> T:
    """Hold a conversation to its end, and return its result.

    A cancellation of the task is raised within the conversation. The loop must have `add_reader`,
    as all but Windows' `ProactorEventLoop` do.
    """
    go_on = partial(conversation.send, None)
    while True:
        try:
            wait = go_on()
        except StopIteration as end:
            return cast(T, end.value)
        try:
            await (_until_over(wait) if isinstance(wait, Wait) else _wait_of_listener(wait))
        except BaseException as error:
            go_on = partial(conversation.throw, error)
        else:
            go_on = partial(conversation.send, None)


@coroutine
def _wait_of_listener(awaited: Any) -> Generator[Any, Any, None]:
    """Let the loop wait for what a user's `async` listener awaits within a conversation."""
    yield awaited


async def _until_over(wait: Wait) -> None:
    """Return once a wait is over. Other tasks have their turn in any case."""
    seconds = wait.until.remaining_seconds()
    filenos = {each.fileno(): getattr(each, "has_unsent", False) for each in wait.sockets}
    if seconds <= 0 or min(filenos, default=0) < 0:
        await asyncio.sleep(0)
        return
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    # `call_later` refuses an endless time.
    timer = None if seconds == float("inf") else loop.call_later(seconds, _end, over)
    try:
        for fileno, has_unsent in filenos.items():
            loop.add_reader(fileno, _end, over)
            if has_unsent:
                loop.add_writer(fileno, _end, over)
        await over
    finally:
        if timer is not None:
            timer.cancel()
        for fileno, has_unsent in filenos.items():
            loop.remove_reader(fileno)
            if has_unsent:
                loop.remove_writer(fileno)


def _end(over: "asyncio.Future[None]") -> None:
    if not over.done():
        over.set_result(None)
