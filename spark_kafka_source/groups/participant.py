"""The common part of both group protocols, called by two threads.

One thread polls. The other one holds the conversation with the coordinator. `Membership` has the IO
and the threads. One lock guards the state that the two threads share. No thread holds it while it
calls a listener.
"""

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from threading import RLock
from typing import Any, Protocol, TypeVar

from spark_kafka_source.client import Retry
from spark_kafka_source.errors import BrokerError, error_code
from spark_kafka_source.groups.config import GroupConfig
from spark_kafka_source.groups.listener import FirstError, RebalanceListener
from spark_kafka_source.groups.member import Member
from spark_kafka_source.groups.reactions import ADVICE, Reaction, reaction
from spark_kafka_source.net import Conversation, Deadline, Wakeup, wait_for
from spark_kafka_source.protocol import Request, Response
from spark_kafka_source.spelling import as_written
from spark_kafka_source.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

UNTIL_WOKEN_SECONDS = 3600.0
"""The wait if no request is due."""

# Timeout for the farewell of a consumer that did not poll in time.
_LONGEST_FAREWELL_MS = 5_000

R = TypeVar("R", bound=Response)


class Ask(Protocol):
    """The way to the coordinator of the group.

    It sends a request, and returns the answer once `check` has accepted it. `is_held` marks a
    request whose answer the coordinator holds back. Any other request must also be answered within
    `request.timeout.ms`, or the member looks for the coordinator again. Raises `LeftError` if the
    member leaves meanwhile.
    """

    async def __call__(
        self,
        request: Request[R],
        deadline: Deadline,
        check: Callable[[R], None],
        *,
        is_held: bool = False,
    ) -> R:
        """Ask once."""


class LeftError(Exception):
    """The member has left since it asked, so nobody wants the answer."""


Say = Callable[[Ask, Deadline], Conversation[None]]
"""Tells the coordinator by the deadline that the member leaves."""


@dataclass(frozen=True, slots=True)
class _Farewell:
    """A farewell that is on its way, and the end of the tries."""

    say: Say
    deadline: Deadline


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
    awaits `go_on` again and again, and gives its errors to `failed`.
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
        self.has_moved_on = False
        """Whether the member has left since it last asked, so that nobody wants the answer."""
        self._listener = listener
        self._retry = retry
        self._clock = clock
        self._failure: Exception | None = None
        self._tries = 0
        self._not_before_seconds = 0.0
        self._polled_seconds = clock()
        self._heartbeat_at_seconds = 0.0
        self._farewell: _Farewell | None = None

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

    async def leave(self, deadline: Deadline, reason: str) -> None:
        """Give up all partitions, and tell the coordinator by `deadline`.

        A static member of the classic protocol keeps its place, and tells nobody. Raises the errors
        of the listener.
        """
        first_error = FirstError()
        if self.assignment:
            told = self._listener.lost if self.member is None else self._listener.revoked
            await first_error.tell(told, self.assignment)
        with self.changed:
            self._failure = None
            self._begin_to_leave(deadline, reason)
            self._unsubscribe()
        first_error.reraise()

    @property
    def has_left(self) -> bool:
        """Whether no farewell to the coordinator is on its way."""
        return self._farewell is None

    # -- in the thread that talks to the coordinator -----------------------------------------------

    async def go_on(self, ask: Ask) -> None:
        """Do what is due: join a generation, send a heartbeat, or say farewell. Else wait for that.

        The caller gives all errors to `failed`.
        """
        with self.changed:
            self.has_moved_on = False
            due = self._due(ask)
        if isinstance(due, float):
            await wait_for((self.to_coordinator,), Deadline(self._clock() + due, int(due * 1000)))
            self.to_coordinator.clear()
        else:
            await due

    def _due(self, ask: Ask) -> Conversation[None] | float:
        pause_seconds = self._not_before_seconds - self._clock()
        if self._farewell is not None:
            return pause_seconds if pause_seconds > 0 else self._say_farewell(ask, self._farewell)
        if self._failure is not None:
            return UNTIL_WOKEN_SECONDS
        left_seconds = self._left_to_poll_seconds()
        if self._is_member and left_seconds <= 0:
            self._expire()
            return 0.0
        if pause_seconds > 0:
            return pause_seconds
        due = self._next(ask)
        if isinstance(due, float) and self._is_member:
            return min(due, left_seconds)
        return due

    def failed(self, request: Request[Any] | None, error: Exception) -> None:
        """React to an error of `go_on` by the table of reactions. Never raises.

        `request` is the last one that was asked, if there was any.
        """
        with self.changed:
            if self.has_moved_on:
                return
            found = reaction(request, error)
            if self._farewell is not None:
                self._farewell_failed(self._farewell, found, error)
                return
            expected = found is Reaction.JOIN_AGAIN
            logger.log(logging.DEBUG if expected else logging.INFO, "%s: %s", error, found.value)
            if found is Reaction.REBALANCE:
                self._heard()
            else:
                self._pause(first_is_free=found in _TRIES_AT_ONCE)
            self._react(found)
            if found in (Reaction.RAISE, Reaction.FENCED):
                self._failure = error  # Nothing is sent to the coordinator until a poll raises it.
            self.to_consumer.wake()

    async def _say_farewell(self, ask: Ask, farewell: _Farewell) -> None:
        await farewell.say(ask, farewell.deadline)
        with self._taking_in():
            self._has_said_farewell()

    def _farewell_failed(self, farewell: _Farewell, found: Reaction, error: Exception) -> None:
        if found is Reaction.RETRY and not farewell.deadline.expired:
            self._pause()
            return
        if found not in (Reaction.GONE, Reaction.LOSE_MEMBER):
            logger.warning("Group %r was not told that a member left: %s", self._group_id, error)
        self._has_said_farewell()

    def _left_to_poll_seconds(self) -> float:
        silent_seconds = self._clock() - self._polled_seconds
        return self.config.max_poll_interval_ms / 1000 - silent_seconds

    def _expire(self) -> None:
        """Leave the group because the consumer did not poll."""
        logger.warning(
            "Group %r: the consumer has not polled for %s (%d ms), so it leaves and others get its "
            "partitions. Raise that interval, or take fewer records at once, so that they need "
            "less time: for a poll by %s, for a query's micro-batch by 'maxOffsetsPerTrigger'",
            self._group_id,
            as_written("'kafka.max.poll.interval.ms'"),
            self.config.max_poll_interval_ms,
            as_written("'kafka.max.poll.records'"),
        )
        deadline = Deadline.after_ms(_LONGEST_FAREWELL_MS)
        self._begin_to_leave(deadline, "the consumer did not poll in time")
        self._lose()
        self.to_consumer.wake()

    # -- different in each protocol ----------------------------------------------------------------

    @property
    @abstractmethod
    def _is_member(self) -> bool:
        """Whether the member has a place in the group. Without polls it loses the place."""

    @property
    @abstractmethod
    def _is_fenced(self) -> bool:
        """Whether another member has taken this member's place. It must not be taken back."""

    @abstractmethod
    def _next(self, ask: Ask) -> Conversation[None] | float:
        """Return what is due, or the seconds until something is.

        Called if there is no farewell, no error and no pause.
        """

    @abstractmethod
    def _react(self, found: Reaction) -> None:
        """Apply the reaction to an error to the member's state."""

    @abstractmethod
    def _lose(self) -> None:
        """Lose the place in the group. The next poll tells the listener, and joins again."""

    @abstractmethod
    def _unsubscribe(self) -> None:
        """Forget the subscription, the partitions, and the place in the group."""

    @abstractmethod
    def _farewell_to_say(self, reason: str) -> Say | None:
        """Return how to leave the group, or None if the coordinator need not know of it."""

    # -- for both ----------------------------------------------------------------------------------

    @property
    def _group_id(self) -> str:
        return self.config.group_id

    @property
    def _group_instance_id(self) -> str | None:
        return self.config.group_instance_id or None

    @contextmanager
    def _taking_in(self) -> Iterator[None]:
        """Take in an answer, with the lock. Raises `LeftError` if nobody wants it any more."""
        with self.changed:
            if self.has_moved_on:
                raise LeftError
            yield

    async def _tell_lost(self, first_error: FirstError) -> None:
        if self.assignment:
            await first_error.tell(self._listener.lost, self.assignment)
        self.assignment = frozenset()

    def _check(self, code: int, what: str, detail: str | None = None) -> None:
        """Raise `BrokerError`, with advice for the user, if the code is an error."""
        if code:
            error = error_code(code)
            details = [text for text in (detail, ADVICE.get(error.name)) if text]
            raise BrokerError(error, f"{what} of group {self._group_id!r}", "; ".join(details))

    def _pause(self, *, first_is_free: bool = False) -> None:
        """Pause before the next request. The pause grows with the failures in a row."""
        self._tries += 1
        tries = self._tries - first_is_free
        pause_seconds = self._retry.pause_seconds(tries) if tries else 0.0
        self._not_before_seconds = self._clock() + pause_seconds

    def _heard(self, interval_ms: int | None = None) -> None:
        """Plan the next heartbeat after an answer of the coordinator."""
        self._end_pause()
        interval_ms = self.config.heartbeat_interval_ms if interval_ms is None else interval_ms
        self._heartbeat_at_seconds = self._clock() + interval_ms / 1000

    def _heartbeat_seconds(self) -> float:
        """Return the seconds until the next heartbeat; 0 or less if it is due."""
        return self._heartbeat_at_seconds - self._clock()

    def _end_pause(self) -> None:
        self._tries, self._not_before_seconds = 0, 0.0

    def _begin_to_leave(self, deadline: Deadline, reason: str) -> None:
        say = self._farewell_to_say(reason)
        if say is not None:
            self._farewell = _Farewell(say, deadline)
            self._end_pause()
        self.has_moved_on = True
        self.to_coordinator.wake()

    def _has_said_farewell(self) -> None:
        self._farewell = None
        self.to_consumer.wake()


# The pause comes only before the second try in a row.
_TRIES_AT_ONCE = (Reaction.JOIN_AGAIN, Reaction.LOSE_GENERATION, Reaction.LOSE_MEMBER)
