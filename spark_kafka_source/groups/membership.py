"""A consumer's membership in its group: the common part of both protocols.

A thread of its own joins the group, and sends heartbeats. The thread that polls makes all calls to
listeners, and all calls of `on_assignment`. The two threads wait for each other only in `leave`.
One lock guards the state that they share. No thread holds it while it calls a listener.
"""

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from enum import Enum
from threading import RLock

from spark_kafka_source.denials import refusal
from spark_kafka_source.errors import ClosedError, error_code
from spark_kafka_source.groups.config import GroupConfig
from spark_kafka_source.groups.coordinator import Coordinator, InterruptedRequestError
from spark_kafka_source.groups.listener import FirstError, RebalanceListener
from spark_kafka_source.groups.member import Member
from spark_kafka_source.groups.reactions import ADVICE, Reaction, reaction
from spark_kafka_source.net import Conversation, Deadline, NextTry, Wakeup, wait_for
from spark_kafka_source.spelling import as_written
from spark_kafka_source.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

UNTIL_WOKEN_SECONDS = 3600.0
"""The wait if no request is due."""

# Timeout for the farewell of a consumer that did not poll in time, or that a Ctrl-C ended.
_LONGEST_FAREWELL_MS = 5_000
# Time for the thread to end after `close`. Nobody waits for the coordinator any more by then.
_LAST_WORDS_MS = 1_000
# The pause comes only before the second try in a row.
_TRIES_AT_ONCE = (Reaction.JOIN_AGAIN, Reaction.LOSE_GENERATION, Reaction.LOSE_MEMBER)

Say = Callable[[Deadline], Conversation[object]]
"""Tells the coordinator by the deadline that the member leaves."""


@dataclass(frozen=True, slots=True)
class _Farewell:
    """A farewell that is on its way, and the end of the tries."""

    say: Say
    deadline: Deadline


@dataclass(frozen=True, slots=True)
class Step:
    """A member's next step in the thread that polls.

    `run` calls the listener, and keeps its first error. `revokes` has the partitions that the
    member is about to give up. `joins` is true if the member is about to join its group.
    """

    run: Callable[[FirstError], Conversation[None]]
    revokes: frozenset[TopicPartition] = frozenset()
    joins: bool = False


IsReady = Callable[[Step], bool]
"""Returns whether the member may take its next step now, in the thread that polls.

If not, the next `poll` calls it again, and no poll waits.
"""


class Membership(ABC):
    """A consumer's place in its group. Only the consumer's thread may use it.

    Other threads may only wait for `fileno`. Poll often, also while the consumer waits for records:
    if `kafka.max.poll.interval.ms` pass without a `poll`, the member leaves the group, and the
    consumer loses its partitions.
    """

    state: Enum
    """State of the member in its protocol."""

    def __init__(
        self,
        config: GroupConfig,
        listener: RebalanceListener,
        coordinator: Coordinator,
        is_ready: IsReady = lambda _: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.assignment: frozenset[TopicPartition] = frozenset()
        """This member's partitions: during `revoked` the old ones, during `assigned` the new."""
        self._config = config
        self._group_id = config.group_id
        self._group_instance_id = config.group_instance_id or None
        self._listener = listener
        self._coordinator = coordinator
        self._is_ready = is_ready
        self._clock = clock
        self._changed = RLock()
        self._news = Wakeup()
        self._thread: threading.Thread | None = None
        self._is_ending = self._has_ended = False
        self._failure: Exception | None = None
        self._next_try = NextTry(coordinator.pause_seconds, clock=clock)
        self._polled_seconds = clock()
        self._heartbeat_at_seconds = 0.0
        self._farewell: _Farewell | None = None

    # -- in the thread that polls ------------------------------------------------------------------

    @abstractmethod
    def subscribe(self, topics: Iterable[str] = (), regex: str | None = None) -> None:
        """Subscribe to these topics from the next `poll` on, in place of the earlier ones.

        With KIP-848 `regex` adds the topics that match an RE2 pattern; the coordinator matches it.
        The classic protocol raises `LocalError` for a pattern. An empty subscription does not leave
        the group.
        """

    async def poll(self) -> None:
        """Take the member's next steps. Wait only for the listener.

        Call it once `fileno` is readable, and before records are handed out. Raises the errors of
        the listener and of assignors, and a `KafkaError` that has no remedy: a `BrokerError` such
        as GROUP_AUTHORIZATION_FAILED, `AuthenticationError`, `UnsupportedVersionError`. The next
        `poll` tries again, but FENCED_INSTANCE_ID stays.
        """
        self._start()
        self._note_poll()
        while (step := self._next_step()) is not None:
            if not self._is_ready(step):
                return
            first_error = FirstError()
            await step.run(first_error)
            first_error.reraise()

    def _note_poll(self) -> None:
        """Raise the error since the last poll, if any; a fenced member always raises."""
        with self._changed:
            self._news.clear()
            self._polled_seconds = self._clock()
            failure = self._failure
            if not self._is_fenced:
                self._failure = None
        if failure is not None:
            self._coordinator.wakeup.wake()
            raise failure

    def fileno(self) -> int:
        """Return a file descriptor that is readable once a `poll` has work.

        Wait for it and for records at once.
        """
        return self._news.fileno()

    @property
    @abstractmethod
    def member(self) -> Member | None:
        """Identity of the member for commits, or None if there is no generation to commit in.

        With None, either the group rebalances (commit again later), or the partitions are lost
        already.
        """

    @abstractmethod
    def rejoin(self, reason: str) -> None:
        """Make the group divide the partitions again, from the next `poll` on (KIP-568)."""

    def look_at_topics(self) -> None:  # noqa: B027
        """Tell the member that partitions were added. A leader divides them without delay."""

    async def leave(self, deadline: Deadline, reason: str = "the consumer unsubscribed") -> None:
        """Give up all partitions and leave the group. Tell the coordinator by `deadline`.

        Calls the listener's `revoked` or `lost`. A static member keeps its place. Errors of the
        coordinator are logged. Raises the errors of the listener. The consumer may subscribe again
        afterwards.
        """
        first_error = FirstError()
        try:
            if self.assignment:
                told = self._listener.lost if self.member is None else self._listener.revoked
                await first_error.tell(told, self.assignment)
        except BaseException:  # A Ctrl-C or a cancellation. The coordinator is still told.
            deadline = deadline.within_ms(_LONGEST_FAREWELL_MS)
            raise
        finally:
            with self._changed:
                self._failure = None
                self._begin_to_leave(deadline, reason)
                self._unsubscribe()
            while self._farewell is not None and self._is_talking and not deadline.expired:
                await self._wait_for_news(deadline)
        first_error.reraise()

    async def close(self, deadline: Deadline) -> None:
        """Leave, and end the thread and its connections, by `deadline` plus a second.

        Works once.
        """
        if self._is_ending:
            return
        try:
            await self.leave(deadline, "the consumer is being closed")
        finally:
            self._is_ending = True
            self._coordinator.close()
            last_words = Deadline.after_ms(_LAST_WORDS_MS)
            while self._is_talking and not last_words.expired:
                await self._wait_for_news(last_words)
            if self._thread is not None and self._has_ended:
                self._thread.join()  # It has nothing left to do.
            self._news.close()

    @property
    def _is_talking(self) -> bool:
        return self._thread is not None and not self._has_ended

    async def _wait_for_news(self, deadline: Deadline) -> None:
        """Wait for a word of the thread. It says one when it ends, too."""
        await wait_for((self._news,), deadline)
        self._news.clear()

    def _start(self) -> None:
        if self._thread is None:
            name = f"group {self._group_id}"
            run = copy_context().run
            thread = threading.Thread(target=run, args=[self._run], name=name, daemon=True)
            thread.start()
            self._thread = thread

    # -- in the thread that talks to the coordinator -----------------------------------------------

    def _run(self) -> None:
        try:
            self._coordinator.client.run(self._converse())
        finally:
            self._coordinator.wakeup.close()
            self._has_ended = True  # `is_alive` is true until after the last word.
            self._news.wake()

    async def _converse(self) -> None:
        while not self._is_ending:
            try:
                await self._go_on()
            except ClosedError:
                return
            except Exception as error:  # An assignor may raise anything.
                self._failed(error)

    async def _go_on(self) -> None:
        """Do what is due: join a generation, send a heartbeat, or say farewell. Else wait for that.

        Errors are for `_failed`.
        """
        with self._changed:
            self._coordinator.asked, self._coordinator.is_interrupted = None, False
            due = self._due()
        await (self._coordinator.wait(due) if isinstance(due, float) else due)

    def _due(self) -> Conversation[None] | float:
        pause_seconds = self._next_try.at_seconds - self._clock()
        if self._farewell is not None:
            return pause_seconds if pause_seconds > 0 else self._say_farewell(self._farewell)
        if self._failure is not None:
            return UNTIL_WOKEN_SECONDS
        left_seconds = self._left_to_poll_seconds()
        if self._is_member and left_seconds <= 0:
            self._expire()
            return 0.0
        if pause_seconds > 0:
            return pause_seconds
        due = self._next()
        if isinstance(due, float) and self._is_member:
            return min(due, left_seconds)
        return due

    def _failed(self, error: Exception) -> None:
        """React to an error by the table of reactions. Never raises."""
        with self._changed:
            if self._coordinator.is_interrupted:
                return
            found = reaction(self._coordinator.asked, error)
            if self._farewell is not None:
                self._farewell_failed(self._farewell, found, error)
                return
            expected = found is Reaction.JOIN_AGAIN
            logger.log(logging.DEBUG if expected else logging.INFO, "%s: %s", error, found.value)
            if found is Reaction.REBALANCE:
                self._heard()
            else:
                self._next_try.failed(self._after_a_free_try if found in _TRIES_AT_ONCE else None)
            self._react(found)
            if found in (Reaction.RAISE, Reaction.FENCED):
                self._failure = error  # Nothing is sent to the coordinator until a poll raises it.
            self._news.wake()

    async def _say_farewell(self, farewell: _Farewell) -> None:
        await farewell.say(farewell.deadline)
        with self._taking_in():
            self._has_said_farewell()

    def _farewell_failed(self, farewell: _Farewell, found: Reaction, error: Exception) -> None:
        if found is Reaction.RETRY and not farewell.deadline.expired:
            self._next_try.failed()
            return
        if found not in (Reaction.GONE, Reaction.LOSE_MEMBER):
            logger.warning("Group %r was not told that a member left: %s", self._group_id, error)
        self._has_said_farewell()

    def _left_to_poll_seconds(self) -> float:
        silent_seconds = self._clock() - self._polled_seconds
        return self._config.max_poll_interval_ms / 1000 - silent_seconds

    def _expire(self) -> None:
        """Leave the group because the consumer did not poll."""
        logger.warning(
            "Group %r: the consumer has not polled for %s (%d ms), so it leaves and others get its "
            "partitions. Raise that interval, or take fewer records at once, so that they need "
            "less time: for a poll by %s, for a query's micro-batch by 'maxOffsetsPerTrigger'",
            self._group_id,
            as_written("'kafka.max.poll.interval.ms'"),
            self._config.max_poll_interval_ms,
            as_written("'kafka.max.poll.records'"),
        )
        deadline = Deadline.after_ms(_LONGEST_FAREWELL_MS)
        self._begin_to_leave(deadline, "the consumer did not poll in time")
        self._lose()
        self._news.wake()

    # -- different in each protocol ----------------------------------------------------------------

    @abstractmethod
    def _next_step(self) -> Step | None:
        """Return the next step in the thread that polls, if any."""

    @property
    @abstractmethod
    def _is_member(self) -> bool:
        """Whether the member has a place in the group. Without polls it loses the place."""

    @property
    @abstractmethod
    def _is_fenced(self) -> bool:
        """Whether another member has taken this member's place. It must not be taken back."""

    @abstractmethod
    def _next(self) -> Conversation[None] | float:
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

    @contextmanager
    def _taking_in(self) -> Iterator[None]:
        """Take in an answer, with the lock. Raises an error if nobody wants it any more."""
        with self._changed:
            if self._coordinator.is_interrupted:
                raise InterruptedRequestError
            yield

    async def _tell_lost(self, first_error: FirstError) -> None:
        if self.assignment:
            await first_error.tell(self._listener.lost, self.assignment)
        self.assignment = frozenset()

    def _check(self, code: int, what: str, said: str | None = None) -> None:
        """Raise `BrokerError`, with advice for the user, if the code is an error."""
        if code:
            what = f"{what} of group {self._group_id!r}"
            advice = ADVICE.get(error_code(code).name)
            raise refusal(code, what, said, advice=advice, group_id=self._group_id)

    def _after_a_free_try(self, tries: int) -> float:
        return self._coordinator.pause_seconds(tries - 1) if tries > 1 else 0.0

    def _heard(self, interval_ms: int | None = None) -> None:
        """Plan the next heartbeat after an answer of the coordinator."""
        self._next_try.reset()
        interval_ms = self._config.heartbeat_interval_ms if interval_ms is None else interval_ms
        self._heartbeat_at_seconds = self._clock() + interval_ms / 1000

    def _heartbeat_seconds(self) -> float:
        """Return the seconds until the next heartbeat; 0 or less if it is due."""
        return self._heartbeat_at_seconds - self._clock()

    def _begin_to_leave(self, deadline: Deadline, reason: str) -> None:
        say = self._farewell_to_say(reason)
        if say is not None:
            self._farewell = _Farewell(say, deadline)
            self._next_try.reset()
        self._coordinator.interrupt()

    def _has_said_farewell(self) -> None:
        self._farewell = None
        self._news.wake()
