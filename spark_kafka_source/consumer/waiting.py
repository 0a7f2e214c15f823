"""The waits of a consumer's calls, which another thread can end."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from spark_kafka_source.errors import KafkaTimeoutError, LocalError
from spark_kafka_source.net import (
    Conversation,
    Conversations,
    Deadline,
    HasFileno,
    Wakeup,
    wait_for,
)

T = TypeVar("T")

# A question ends by itself, but its last try may take longer.
_LAST_TRY_SECONDS = 0.5


class WakeupError(LocalError):
    """Error of a call that waits, after `wakeup` was called."""


class Waiting:
    """The waits of one consumer, and its conversations with brokers, which go on meanwhile.

    `lookups`, `commits` and `telemetry` are apart: a commit waits for no turn behind look-ups.
    Without `ignored`, a wait raises `WakeupError` after `wake`. A consumer that ends ignores it.
    """

    def __init__(self, default_ms: int) -> None:
        """`default_ms` is the time for a question that has none of its own, in milliseconds."""
        self.default_ms = default_ms
        self.wakeup = Wakeup()
        self.lookups = Conversations()
        self.commits = Conversations()
        self.telemetry = Conversations()
        self.ignored = False
        self._is_woken = False

    def wake(self) -> None:
        """End the wait of another thread, or the next wait."""
        self._is_woken = True
        self.wakeup.wake()

    def raise_if_woken(self) -> None:
        """Raise `WakeupError` once after `wake`."""
        self.wakeup.clear()
        if self._is_woken and not self.ignored:
            self._is_woken = False
            raise WakeupError("wakeup() was called")

    def step(self) -> None:
        """Let all conversations go on. Do not wait."""
        self.commits.step()
        self.lookups.step()
        self.telemetry.step()

    async def once(self, until: Deadline, things: Sequence[HasFileno] = ()) -> None:
        """Wait until a conversation can go on, a thing is readable, or the deadline."""
        all_conversations = self.commits, self.lookups, self.telemetry
        waits = [conversations.next_wait() for conversations in all_conversations]
        until = Deadline.first(until, *(wait.until for wait in waits))
        asked = [thing for wait in waits for thing in wait.sockets]
        await wait_for([self.wakeup, *asked, *things], until)

    async def until(self, condition: Callable[[], bool], deadline: Deadline) -> bool:
        """Wait until `condition()` or the deadline. Return whether it is met.

        Raises `WakeupError`.
        """
        while not condition():
            self.raise_if_woken()
            self.step()
            if condition():
                return True
            if deadline.expired:
                return False
            await self.once(deadline)
        return True

    async def in_time(self, is_done: Callable[[], bool], deadline: Deadline) -> bool:
        """Wait as `until`, and a little longer: the last try may begin just before the deadline."""
        late = Deadline(deadline.at_seconds + _LAST_TRY_SECONDS, deadline.timeout_ms)
        return await self.until(is_done, late)

    async def ask(
        self, what: str, question: Callable[[int], Conversation[T]], timeout_ms: int | None
    ) -> T:
        """Ask brokers, and wait for the answer. Raises `KafkaTimeoutError`, `WakeupError`.

        `what` names the question in an error. `question` gets the time for it, in milliseconds.
        """
        deadline = Deadline.after_ms(self.default_ms if timeout_ms is None else timeout_ms)
        conversation = self.lookups.begin(question(deadline.timeout_ms))
        try:
            if not await self.in_time(lambda: conversation.is_done, deadline):
                raise KafkaTimeoutError(f"{what}: no answer within {deadline.timeout_ms} ms")
        except BaseException:
            conversation.give_up()
            raise
        return conversation.result()

    def close(self) -> None:
        """Give up all conversations."""
        self.commits.close()
        self.lookups.close()
        self.telemetry.close()
        self.wakeup.close()
