"""A request to one broker, from the connecting to the answer."""

import time
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar, cast

from spark_kafka_source.client.connections import Connections
from spark_kafka_source.errors import ClosedError, RemoteError
from spark_kafka_source.net import (
    Address,
    Awaited,
    Connection,
    Deadline,
    Dial,
    RequestTimeoutError,
    readable,
)
from spark_kafka_source.protocol import Request, Response

R = TypeVar("R", bound=Response)

LONGEST_SILENCE_MS = 2_000
"""How long a broker may be silent before the client asks others whether it still has its role."""


class Asked(Generic[R]):
    """A request whose answer is still to come.

    Only the `wait` methods and `answer` wait. `answer` raises all errors, also those of connecting.
    Dropping the object before the answer closes the connection: the answer would still come there.
    With `most_in_flight` of 1 the request has the connection to itself. With more it goes behind
    other requests, and if one of these fails, all that are still on the connection fail.
    """

    def __init__(
        self,
        connections: Connections,
        request: Request[R],
        address: Address,
        deadline: Deadline,
        max_version: int | None = None,
        *,
        most_in_flight: int = 1,
    ) -> None:
        """Send the request at once if there is a connection, else as soon as one is made."""
        self.address = address
        self._connections = connections
        self._request = request
        self.deadline = deadline
        self._max_version = max_version
        self._most_in_flight = most_in_flight
        self._dial: Dial | None = None
        self._connection: Connection | None = None
        self._awaited: Awaited[R] | None = None
        self._is_answered = False
        self._sent_at_seconds = 0.0
        self._error: Exception | None = None
        self._do(self._start)

    def __del__(self) -> None:
        self.abandon()

    def advance(self) -> bool:
        """Connect, send or receive as far as that needs no waiting. Return whether it is over."""
        self._do(self._advance)
        return self._is_over

    def is_over(self) -> bool:
        """Whether `answer` can return or raise at once, also since the deadline has passed."""
        return self.advance() or self.deadline.expired

    def answer(self) -> R:
        """Wait for the answer and return it.

        Return None for a Produce request with `acks` of 0, which has no answer.
        Raises what `Connection.connect`, `Connection.send` and `Connection.receive` raise.
        """
        while not self.advance():
            if self.deadline.expired:
                self.give_up("timed out")
                break
            self.wait(self.deadline)
        if self._error is not None:
            raise self._error
        return cast(R, cast(Awaited[R], self._awaited).response)

    def wait(self, deadline: Deadline) -> None:
        """Wait until there is something to do, until the answer is here, or until the deadline."""
        if self._connection is None:
            readable([self], deadline)
        else:  # A blocking read costs less than waiting for each part of a large answer.
            self._do(partial(self._receive, self._connection, deadline))

    def give_up(self, reason: str) -> None:
        """Make `answer` raise `RequestTimeoutError` with the reason, unless the request is over."""
        if self._is_over:
            return
        if self._connection is None:
            self._error = RequestTimeoutError(f"{self.address}: {reason} connecting")
        else:
            self._error = self._connection.give_up(f"{reason} waiting for an answer")
        self._connections.history.failed(self.address)

    def abandon(self) -> None:
        """Close the connection if its answer is still to come: the connection is out of step."""
        if self._connection is not None and not self._is_over:
            self._connection.close()

    @property
    def is_sent(self) -> bool:
        """Whether the request is on a connection. False while the connection is being made."""
        return self._connection is not None

    @property
    def is_heard(self) -> bool:
        """Whether the broker has sent anything yet, also while the connection was being made."""
        if self._connection is not None:
            return self._connection.is_heard
        return self._dial is not None and self._dial.is_heard

    @property
    def is_silent(self) -> bool:
        """Whether the broker has not sent a byte for two seconds."""
        if self._connection is None:
            return True
        return self._connection.silent_seconds * 1000 >= LONGEST_SILENCE_MS

    @property
    def has_unsent(self) -> bool:
        """Whether a part of the request waits for the connection to take more."""
        return self._connection is not None and self._connection.has_unsent

    @property
    def has_answer(self) -> bool:
        """Whether another request on the connection has received this one's answer."""
        return not self._is_over and getattr(self._awaited, "response", None) is not None

    def is_dry_since(self, since_seconds: float) -> bool:
        """Whether another request has read the connection since then, and this answer did not come.

        If so, `advance` has nothing to do. The time is monotonic, in seconds.
        """
        connection = self._connection
        if connection is None or connection.closed or not self._request.expects_answer:
            return False
        return connection.dry_at_seconds >= since_seconds and not self.has_answer

    def fileno(self) -> int:
        """Return a descriptor that is readable once `advance` has something to do.

        -1 if the connection is closed.
        """
        if self._connection is not None:
            return self._connection.fileno()
        return self._dial.fileno() if self._dial is not None else -1

    @property
    def _is_over(self) -> bool:
        return self._is_answered or self._error is not None

    def _do(self, step: Callable[[], None]) -> None:
        """Take a step. `answer` raises its error later."""
        if self._is_over:
            return
        try:
            if self._connections.is_closed:
                raise ClosedError("the client is closed")
            step()
        except Exception as error:
            if isinstance(error, RemoteError):
                self._connections.history.failed(self.address)
            self._error = error
        except BaseException:  # Such as a Ctrl-C. The connection may be out of step.
            self.abandon()
            raise

    def _start(self) -> None:
        connection = self._connections.usable_to(self.address, self._most_in_flight)
        if connection is not None and connection.needs_login:
            self._dial = self._connections.renewing(connection)
        elif connection is not None and self._connections.may_send(
            connection, self._most_in_flight
        ):
            self._send(connection)
        else:  # There is none, or the broker has closed it just now.
            self._dial = self._connections.dial(self.address)

    def _advance(self) -> None:
        if self._connection is None and self._dial is not None and self._dial.is_done:
            connection = self._connections.dialed(self._dial)
            if self._connections.may_send(connection, self._most_in_flight):
                self._send(connection)
            else:  # Other requests were sooner.
                self._dial = self._connections.dial(self.address)
        if self._connection is not None:
            self._receive(self._connection, None)

    def _receive(self, connection: Connection, deadline: Deadline | None) -> None:
        awaited = cast(Awaited[R], self._awaited)
        if connection.advance(awaited, deadline):
            self._is_answered = True
            seconds = time.monotonic() - self._sent_at_seconds
            self._connections.heard(self.address, awaited.response, seconds)

    def _send(self, connection: Connection) -> None:
        if self.deadline.expired:
            raise RequestTimeoutError(f"{self.address}: timed out before the request was sent")
        self._connection = connection  # Before: a part of the request may go out.
        self._sent_at_seconds = time.monotonic()
        self._awaited = connection.begin(self._request, max_version=self._max_version)
        self._connections.requests_sent += 1
