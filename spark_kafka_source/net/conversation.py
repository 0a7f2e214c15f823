"""Conversations: each is written once, and driven in a thread, beside others, or on asyncio.

A conversation is a coroutine. It says what it waits for, and knows nothing of threads or sockets.
`run` drives one to its end, and blocks its thread. `Conversations` drives any number of them in a
thread with other work. `spark_kafka_source.aio` drives them on asyncio. No conversation may await
asyncio's own objects. docs/contributors/architecture.md has a picture.
"""

import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from functools import partial
from types import coroutine
from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from spark_kafka_source.errors import ClosedError, KafkaError, Remedy
from spark_kafka_source.net.deadline import Deadline
from spark_kafka_source.net.readable import HasFileno, readable

T = TypeVar("T")

# Further conversations wait for these. Each may wait for a silent broker, on its own connection.
_MOST_AT_ONCE = 8
_NOW = Deadline(0.0, 0)
_FOR_EVER = Deadline(float("inf"), 0)


@runtime_checkable
class CanBlock(Protocol):
    """A socket with a better way to wait for it alone than for its descriptor."""

    def wait(self, deadline: Deadline) -> None:
        """Wait until there is something to do, or until the deadline."""
        ...


class Wait(NamedTuple):
    """The end of a wait: one of `sockets` is readable or closed, or `until` is there."""

    sockets: Sequence[HasFileno]
    until: Deadline

    def block(self) -> None:
        """Wait in this thread."""
        if len(self.sockets) == 1 and isinstance(alone := self.sockets[0], CanBlock):
            alone.wait(self.until)
        elif self.sockets:
            readable(self.sockets, self.until)
        else:
            time.sleep(self.until.remaining_seconds())


Conversation: TypeAlias = Coroutine[Wait, None, T]
"""A coroutine that awaits only other conversations, down to `wait_for`."""


@coroutine
def wait_for(sockets: Sequence[HasFileno], until: Deadline) -> Generator[Wait, None, None]:
    """Wait once, until one of `sockets` may be readable, or until the moment.

    It may end sooner: look again, and wait again.
    """
    yield Wait(sockets, until)


async def pause(seconds: float) -> None:
    """Wait for so many seconds."""
    until = Deadline.after_seconds(seconds)
    while not until.expired:
        await wait_for((), until)


async def keep_asking(
    ask: Callable[[], Conversation[bool] | None], pause_seconds: Callable[[int], float]
) -> None:
    """Ask again and again, without end, beside the other work of a thread; see `Conversations`.

    `ask` is called at each step. It returns None if there is nothing to ask, else a conversation
    that returns whether it was of use. If not, there is a pause: `Retry.pause_seconds`.
    """
    tries = 0
    while True:
        question = ask()
        if question is None:
            await wait_for((), _FOR_EVER)
            continue
        tries = 0 if await question else tries + 1
        await wait_for((), _NOW)  # The thread has a use for the outcome, also of a failure.
        if tries:
            await pause(pause_seconds(tries))


def run(conversation: Conversation[T], block: Callable[[Wait], object] = Wait.block) -> T:
    """Drive a conversation to its end in this thread, and return its result.

    `block` waits. Its error, such as a Ctrl-C, is raised within the conversation.
    """
    go_on = partial(conversation.send, None)
    while True:
        try:
            wait = go_on()
        except StopIteration as end:
            return cast(T, end.value)
        try:
            block(wait)
        except BaseException as error:
            go_on = partial(conversation.throw, error)
        else:
            go_on = partial(conversation.send, None)


class InterruptedConversationError(KafkaError):
    """A Ctrl-C ended a conversation. A caller that needs its result begins another."""

    remedy = Remedy.RETRY


class Running(Generic[T]):
    """A conversation under way. Once `is_done`, `result` returns its result or raises its error."""

    def __init__(self, conversation: Conversation[T]) -> None:
        self._conversation = conversation
        self._result: T | None = None
        self._error: Exception | None = None
        self.is_done = False
        self.wait = Wait((), _FOR_EVER)
        """Its present wait."""

    def go_on(self) -> None:
        """Take all steps that need no waiting."""
        if self.is_done:
            return
        try:
            self.wait = self._conversation.send(None)
        except StopIteration as end:
            self._result, self.is_done = cast(T, end.value), True
        except Exception as error:
            self._error, self.is_done = error, True
        except BaseException as error:
            self._error = InterruptedConversationError(f"interrupted by {error!r}")
            self.is_done = True
            raise

    def result(self) -> T:
        """Return the result; call it once `is_done`. Raises what the conversation raised."""
        if not self.is_done:
            raise ClosedError("the conversation is not over yet")
        if self._error is not None:
            raise self._error
        return cast(T, self._result)

    def error(self) -> KafkaError | None:
        """Return the `KafkaError` that ended it, or None. Raises any other error."""
        try:
            self.result()
        except KafkaError as error:
            return error
        return None

    def give_up(self) -> None:
        """End the conversation: nothing needs its result any more."""
        if not self.is_done:
            self._error, self.is_done = ClosedError("the conversation was given up"), True
        self._conversation.close()


class Conversations:
    """Conversations beside the other work of a thread, which calls `step` again and again.

    At most eight are under way at once; more of them wait for their turn.
    """

    def __init__(self) -> None:
        self._running: list[Running[object]] = []
        self._waiting: deque[Running[object]] = deque()
        self._has_news = False
        """Whether one has gone on since `next_wait`, so that the thread may have work to do."""

    def begin(self, conversation: Conversation[T]) -> Running[T]:
        """Begin a conversation, and take its first steps. Its `Running` has its errors."""
        running = Running(conversation)
        self._waiting.append(cast(Running[object], running))
        self._begin_waiting()
        return running

    def step(self) -> None:
        """Let each conversation take the steps that need no waiting."""
        for running in self._running:
            before = running.wait.sockets
            running.go_on()
            self._has_news |= running.is_done or running.wait.sockets != before
        self._begin_waiting()

    @property
    def is_idle(self) -> bool:
        """Whether no conversation is under way."""
        return not self._running and not self._waiting

    def next_wait(self) -> Wait:
        """Return what all of them wait for. Call `step` after that.

        The wait ends at once if a conversation has gone on since the last call: the thread may have
        looked for its result before that.
        """
        has_news, self._has_news = self._has_news, False
        return Wait((), _NOW) if has_news else wait_of_all(self._running)

    def close(self) -> None:
        """Give up all conversations."""
        for running in (*self._running, *self._waiting):
            running.give_up()
        self._running.clear()
        self._waiting.clear()

    def _begin_waiting(self) -> None:
        self._running = [running for running in self._running if not running.is_done]
        while self._waiting and len(self._running) < _MOST_AT_ONCE:
            # In this order a Ctrl-C in between loses none: it is in one of the two at least.
            next_one = self._waiting[0]
            next_one.go_on()
            self._has_news = True
            if not next_one.is_done:
                self._running.append(next_one)
            self._waiting.popleft()


def wait_of_all(running: Iterable[Running[T]]) -> Wait:
    """Return the wait that ends as soon as the wait of one conversation ends.

    Requests may share a connection. One that reads it may receive the answer of another, and then
    the socket has nothing more to read.
    """
    waits = [conversation.wait for conversation in running if not conversation.is_done]
    sockets = [socket for wait in waits for socket in wait.sockets]
    if any(getattr(socket, "has_answer", False) for socket in sockets):
        return Wait((), _NOW)
    return Wait(sockets, Deadline.first(_FOR_EVER, *(wait.until for wait in waits)))


async def together(
    conversations: Iterable[Conversation[T]], *, at_once: int | None = None
) -> list[Running[T]]:
    """Hold several conversations, up to `at_once` at a time (default: all).

    Return them in their order, all of them done.
    """
    running = [Running(conversation) for conversation in conversations]
    try:
        while under_way := [begun for begun in running if not begun.is_done][:at_once]:
            _go_on(under_way)
            if not any(begun.is_done for begun in under_way):
                await wait_for(*wait_of_all(under_way))
        return running
    finally:
        for conversation in running:
            conversation.give_up()


def _go_on(running: Iterable[Running[T]]) -> None:
    """Let each conversation take its steps, except those for which there is nothing to read.

    Otherwise each answer on a connection would wake all conversations that share it, and each of
    them would read in vain.
    """
    began_seconds = time.monotonic()
    for conversation in running:
        if not _is_dry(conversation.wait, began_seconds):
            conversation.go_on()


def _is_dry(wait: Wait, since_seconds: float) -> bool:
    """Whether others have read all sockets of a wait since then, and had nothing for it."""
    checks = [getattr(socket, "is_dry_since", None) for socket in wait.sockets]
    if not checks or wait.until.expired:
        return False
    return all(check is not None and check(since_seconds) for check in checks)
