"""The requests of one member to the coordinator of its group."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from spark_kafka_source.client import CoordinatorKey, KafkaClient
from spark_kafka_source.errors import ClosedError, KafkaError
from spark_kafka_source.net import Deadline, HasFileno, Running, Wakeup, wait_for
from spark_kafka_source.protocol import Request, Response

R = TypeVar("R", bound=Response)

OnRequest = Callable[[Request[Any], float, Exception | None], None]
"""Gets a request, its duration in ms, and its error or None."""


class InterruptedRequestError(Exception):
    """The member has left since it sent the request, so the answer no longer counts."""


class Coordinator:
    """The requests to the coordinator of a group, by one thread. Another may interrupt them."""

    def __init__(
        self, client: KafkaClient, group_id: str, on_request: OnRequest = lambda *_: None
    ) -> None:
        """Own `client`: no other code may use it from now on, and `close` closes it."""
        self.client = client
        self.pause_seconds = client.pause_seconds
        self.wakeup = Wakeup()
        self.is_interrupted = False
        self.asked: Request[Any] | None = None
        """The last request since this was set to None."""
        self._key = CoordinatorKey.of_group(group_id)
        self._on_request = on_request

    async def ask(
        self,
        request: Request[R],
        deadline: Deadline,
        check: Callable[[R], None],
        *,
        is_held: bool = False,
    ) -> R:
        """Send a request once. Return the answer if `check` raises no error for it.

        `is_held` marks a request whose answer the coordinator holds back. Any other request must
        also be answered within `request.timeout.ms`, or the next one looks for the coordinator
        again. Raises `InterruptedRequestError` after `interrupt`.
        """
        self.asked = request
        began_seconds = time.monotonic()

        def report(error: Exception | None) -> None:
            self._on_request(request, (time.monotonic() - began_seconds) * 1000, error)

        try:
            answer = await self._answer_to(request, deadline, is_held=is_held)
            check(answer)
        except (ClosedError, InterruptedRequestError):  # The answer no longer counts.
            raise
        except Exception as error:
            if isinstance(error, KafkaError):
                self.client.recover(error)
            report(error)
            raise
        report(None)
        return answer

    async def _answer_to(self, request: Request[R], deadline: Deadline, *, is_held: bool) -> R:
        """Send a request, and wait for its answer until `interrupt`.

        If the coordinator is silent and the group has another one by now, give the request up.
        """
        coordinator = await self.client.coordinator(self._key, deadline)
        await self.client.wait_out_throttle(coordinator.address, deadline)
        self._raise_if_interrupted()
        request_ = self.client.ask(request, coordinator, deadline, is_held=is_held)
        keeps_role = partial(self.client.still_coordinates, coordinator, self._key)
        answer = Running(self.client.answer_of(request_, keeps_role))
        try:
            while True:
                answer.go_on()
                if answer.is_done:
                    return answer.result()
                await self._wait(answer.wait.until, *answer.wait.sockets)
                self._raise_if_interrupted()
        finally:
            answer.give_up()
            request_.abandon()

    def _raise_if_interrupted(self) -> None:
        if self.is_interrupted:
            raise InterruptedRequestError

    async def wait(self, seconds: float) -> None:
        """Wait for so many seconds, or until another thread wakes this one."""
        await self._wait(Deadline.after_seconds(seconds))

    async def _wait(self, until: Deadline, *things: HasFileno) -> None:
        await wait_for((*things, self.wakeup), until)
        self.wakeup.clear()

    def interrupt(self) -> None:
        """End the request that is under way: its answer no longer counts."""
        self.is_interrupted = True
        self.wakeup.wake()

    def close(self) -> None:
        """Close the client. From now on `ask` raises `ClosedError`."""
        self.client.close()
        self.wakeup.wake()
