"""The common part of both group protocols, called by two threads.

One thread polls, the other talks to the coordinator. `Membership` has the IO and the threads. One
lock guards the state that the two threads share. No thread holds it while it calls a listener.
"""

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from threading import RLock
from typing import Any

from spark_kafka_source.client import Retry
from spark_kafka_source.denials import refusal
from spark_kafka_source.errors import error_code
from spark_kafka_source.groups.config import GroupConfig
from spark_kafka_source.groups.listener import RebalanceListener
from spark_kafka_source.groups.member import Member
from spark_kafka_source.groups.reactions import ADVICE, Reaction, reaction
from spark_kafka_source.net import Conversation, Deadline, Wakeup
from spark_kafka_source.protocol import Request
from spark_kafka_source.spelling import as_written
from spark_kafka_source.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

UNTIL_WOKEN_SECONDS = 3600.0
"""The wait if no request is due."""


LONGEST_FAREWELL_MS = 5_000
"""Timeout for LeaveGroup if the consumer did not poll in time."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request for the coordinator, and the deadline of its answer.

    `is_held` marks a request whose answer the coordinator holds back. Any other request must also
    be answered within `request.timeout.ms`, or the member looks for the coordinator again.
    """

    request: Request[Any]
    deadline: Deadline
    is_held: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """A member's next step in the thread that polls.

    `run` calls the listener, and raises the listener's errors. `revokes` has the partitions that
    the member is about to give up. `joins` is true if the member is about to join its group.
    """

    run: Callable[[], Conversation[None]]
    revokes: frozenset[TopicPartition] = frozenset()
    joins: bool = False


class Participant(ABC):
    """A member of a group, without its connection.

    The thread that polls calls `subscribe`, `begin_poll`, `next_step` and `leave`. The other thread
    calls `prepare`, `next_request`, and then `answered` or `failed`.
    """

    def __init__(
        self,
        config: GroupConfig,
        listener: RebalanceListener,
        retry: Retry,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.config = config
        self.changed = RLock()
        self.to_consumer = Wakeup()
        self.to_coordinator = Wakeup()
        self.assignment: frozenset[TopicPartition] = frozenset()
        self._listener = listener
        self._retry = retry
        self._clock = clock
        self._failure: Exception | None = None
        self._tries = 0
        self._not_before_seconds = 0.0
        self._polled_seconds = clock()
        self._farewell: Outgoing | None = None
        self._asking: Request[Any] | None = None

    # -- in the thread that polls ------------------------------------------------------------------

    @abstractmethod
    def subscribe(self, topics: Iterable[str], regex: str | None = None) -> None:
        """Set the topics to read from the next poll on.

        An empty subscription does not leave the group.
        """

    def begin_poll(self) -> None:
        """Note that the consumer polls.

        Raise the error since the last poll; a fenced member always raises.
        """
        with self.changed:
            self.to_consumer.clear()
            self._polled_seconds = self._clock()
            failure = self._failure
            if not self._is_fenced:
                self._failure = None
        if failure is not None:
            self.to_coordinator.wake()
            raise failure

    @abstractmethod
    def next_step(self) -> Step | None:
        """Return the next step in this thread, if any."""

    @property
    @abstractmethod
    def state(self) -> Enum:
        """State of the member."""

    @property
    @abstractmethod
    def member(self) -> Member | None:
        """Identity of the member. None while it is in no generation that could commit."""

    @abstractmethod
    def rejoin(self, reason: str) -> None:
        """Make the group divide the partitions again."""

    def look_at_topics(self) -> None:  # noqa: B027
        """Make the member look at its topics now, if that is a member's work in its protocol."""

    @abstractmethod
    async def leave(self, deadline: Deadline, reason: str) -> None:
        """Give up all partitions, and tell the coordinator by `deadline`.

        Raises the errors of the listener.
        """

    @property
    def has_left(self) -> bool:
        """Whether no farewell to the coordinator is on its way."""
        return self._farewell is None

    # -- in the thread that talks to the coordinator -----------------------------------------------

    async def prepare(self) -> None:  # noqa: B027
        """Look up what the next request needs."""

    def next_request(self) -> Outgoing | float:
        """Return the next request to the coordinator, or the seconds until one may be due."""
        with self.changed:
            due = self._due()
            self._asking = due.request if isinstance(due, Outgoing) else None
            return due

    def _due(self) -> Outgoing | float:
        now_seconds = self._clock()
        pause_seconds = self._not_before_seconds - now_seconds
        if self._farewell is not None:
            return pause_seconds if pause_seconds > 0 else self._farewell
        if self._failure is not None:
            return UNTIL_WOKEN_SECONDS
        silent_seconds = now_seconds - self._polled_seconds
        left_seconds = self.config.max_poll_interval_ms / 1000 - silent_seconds
        if self._is_member and left_seconds <= 0:
            self._expire()
            return 0.0
        if pause_seconds > 0:
            return pause_seconds
        due = self._next(now_seconds)
        if isinstance(due, float) and self._is_member:
            return min(due, left_seconds)
        return due

    def wanted(self, request: Request[Any]) -> bool:
        """Return whether the answer to this request is still of use."""
        return request is self._asking

    @abstractmethod
    async def answered(self, request: Any, response: Any) -> None:
        """Take in the coordinator's answer. The caller gives errors raised here to `failed`."""

    def failed(self, request: Request[Any], error: Exception) -> None:
        """React to an error by the table of reactions. Never raises."""
        with self.changed:
            if self._farewell is not None and request is self._farewell.request:
                self._farewell_failed(self._farewell, error)
            elif request is self._asking:
                found = reaction(request, error)
                expected = found is Reaction.JOIN_AGAIN
                logger.log(
                    logging.DEBUG if expected else logging.INFO, "%s: %s", error, found.value
                )
                self._react(found, request, error)

    def broke(self, error: Exception) -> None:
        """Keep the error of an assignor that prevented any request. The next poll raises it."""
        with self.changed:
            self._break(error)

    def _farewell_failed(self, farewell: Outgoing, error: Exception) -> None:
        found = reaction(farewell.request, error)
        if found is Reaction.RETRY and not farewell.deadline.expired:
            self._pause()
            return
        if found not in (Reaction.GONE, Reaction.LOSE_MEMBER):
            logger.warning("Group %r was not told that a member left: %s", self._group_id, error)
        self._has_said_farewell()

    # -- different in each protocol ----------------------------------------------------------------

    @property
    @abstractmethod
    def _is_member(self) -> bool:
        """Whether the member has a place in the group. Without polls it loses the place."""

    @abstractmethod
    def _expire(self) -> None:
        """Leave the group because the consumer did not poll."""

    @abstractmethod
    def _next(self, now_seconds: float) -> Outgoing | float:
        """Return the same as `next_request`, if there is no farewell, no error and no pause."""

    @property
    @abstractmethod
    def _is_fenced(self) -> bool:
        """Whether another member has taken this member's place. It must not be taken back."""

    @abstractmethod
    def _break(self, error: Exception) -> None:
        """Make the next poll raise the error, and try again after that."""

    @abstractmethod
    def _react(self, found: Reaction, request: Any, error: Exception) -> None:
        """Apply the reaction `found` to an error."""

    # -- for both ----------------------------------------------------------------------------------

    @property
    def _group_id(self) -> str:
        return self.config.group_id

    @property
    def _group_instance_id(self) -> str | None:
        return self.config.group_instance_id or None

    def _check(self, code: int, what: str, said: str | None = None) -> None:
        """Raise `BrokerError`, with advice for the user, if the code is an error."""
        if code:
            what = f"{what} of group {self._group_id!r}"
            advice = ADVICE.get(error_code(code).name)
            raise refusal(code, what, said, advice=advice, group_id=self._group_id)

    def _pause(self, *, first_is_free: bool = False) -> None:
        """Pause before the next request. The pause grows with the failures in a row."""
        self._tries += 1
        tries = self._tries - first_is_free
        pause_seconds = self._retry.pause_seconds(tries) if tries else 0.0
        self._not_before_seconds = self._clock() + pause_seconds

    def _succeeded(self) -> None:
        self._tries = 0
        self._not_before_seconds = 0.0

    def _fail(self, error: Exception) -> None:
        """Make the next poll raise the error. Send nothing to the coordinator until then."""
        self._failure = error
        self._pause()
        self.to_consumer.wake()

    def _say_farewell(self, request: Request[Any], deadline: Deadline) -> None:
        self._farewell = Outgoing(request, deadline)
        self._asking = None
        self._succeeded()
        self.to_coordinator.wake()

    def _has_said_farewell(self) -> None:
        self._farewell = None
        self.to_consumer.wake()

    def _warn_of_expiry(self) -> None:
        logger.warning(
            "Group %r: the consumer has not polled for %s (%d ms), so it leaves and others get its "
            "partitions. Raise that interval, or take fewer records at once, so that they need "
            "less time: for a poll by %s, for a query's micro-batch by 'maxOffsetsPerTrigger'",
            self._group_id,
            as_written("'kafka.max.poll.interval.ms'"),
            self.config.max_poll_interval_ms,
            as_written("'kafka.max.poll.records'"),
        )
