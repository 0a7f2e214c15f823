"""The waits of a consumer's calls, which another thread can end."""

from collections.abc import Callable
from typing import TypeVar

from spark_kafka_source.client import KafkaClient, Lookups
from spark_kafka_source.errors import KafkaTimeoutError, LocalError
from spark_kafka_source.net import Deadline, Wakeup, readable

T = TypeVar("T")

# A question ends by itself, but its last try may take longer.
_LAST_TRY_MS = 500


class WakeupError(LocalError):
    """Error of a call that waits, after `wakeup` was called."""


class Waiting:
    """The waits of one consumer. Questions to brokers go to threads of their own.

    Without `ignored`, a wait raises `WakeupError` after `wake`. A consumer that ends ignores it.
    """

    def __init__(self, client: KafkaClient) -> None:
        self.wakeup = Wakeup()
        self.lookups = Lookups(client, self.wakeup)
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

    def until(self, is_so: Callable[[], bool], deadline: Deadline) -> bool:
        """Wait until `is_so()` or the deadline. Return whether it is so. Raises `WakeupError`."""
        while not is_so():
            self.raise_if_woken()
            if is_so():
                return True
            if deadline.expired:
                return False
            readable([self.wakeup], deadline)
        return True

    def ask(self, what: str, question: Callable[[KafkaClient], T], timeout_ms: int) -> T:
        """Ask brokers, and wait for the answer. Raises `KafkaTimeoutError`, `WakeupError`.

        `what` names the question in an error.
        """
        lookup = self.lookups.ask(question)
        deadline = Deadline.after_ms(timeout_ms + _LAST_TRY_MS)
        try:
            if not self.until(lambda: lookup.is_done, deadline):
                raise KafkaTimeoutError(f"{what}: no answer within {timeout_ms} ms")
        except BaseException:
            self.lookups.give_up(lookup)
            raise
        return lookup.result()

    def close(self) -> None:
        """Give up all questions."""
        self.lookups.close()
        self.wakeup.close()
