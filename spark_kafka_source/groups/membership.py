"""A consumer's membership in its group: the common part of both protocols.

A thread of its own joins the group, and sends heartbeats. The thread that polls makes all calls to
listeners, and all calls of `on_assignment`. The two threads wait for each other only in `leave`.
One lock guards the state that they share. No thread holds it while it calls a listener.
The module is long so that the work of both threads stands beside the state that they share.
"""

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from threading import RLock

from spark_kafka_source.denials import refusal
from spark_kafka_source.errors import ClosedError, error_code
from spark_kafka_source.groups.config import GroupConfig
from spark_kafka_source.groups.coordinator import Coordinator, InterruptedRequestError
from spark_kafka_source.groups.error_reactions import ADVICE, Reaction, reaction_to
from spark_kafka_source.groups.listener import FirstError, RebalanceListener
from spark_kafka_source.groups.member import Member
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Conversation, Deadline, NextTry, Wakeup, wait_for
from spark_kafka_source.spelling import as_written, daemon
from spark_kafka_source.topic_partition import TopicPartition

logger = logger_of(__name__)

UNTIL_WOKEN_SECONDS = 3600.0
"""The wait if no request is due."""

# Timeout to leave the group after no poll came in time, or after a Ctrl-C.
_LEAVE_TIMEOUT_MS = 5_000
# Time for the thread to end after `close`. The coordinator need not answer any more by then.
_THREAD_END_TIMEOUT_MS = 1_000
# The pause comes only before the second try in a row.
_TRIES_AT_ONCE = (Reaction.JOIN_AGAIN, Reaction.LOSE_GENERATION, Reaction.LOSE_MEMBER)

SendLeave = Callable[[Deadline], Conversation[object]]
"""Tells the coordinator by the deadline that the member leaves."""


@dataclass(frozen=True, slots=True)
class _Leave:
    """The member's leaving: it sends its request again after an error, until the deadline."""

    send: SendLeave
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
        # The member's thread wakes the thread that polls.
        self._poll_wakeup = Wakeup()
        self._thread: threading.Thread | None = None
        self._is_ending = self._has_ended = False
        self._failure: Exception | None = None
        self._next_try = NextTry(coordinator.pause_seconds, clock=clock)
        self._polled_seconds = clock()
        self._heartbeat_at_seconds = 0.0
        self._leave: _Leave | None = None

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
            self._poll_wakeup.clear()
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
        return self._poll_wakeup.fileno()

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
                tell = self._listener.lost if self.member is None else self._listener.revoked
                await first_error.tell(tell, self.assignment)
        except BaseException:  # A Ctrl-C or a cancellation. The coordinator is still told.
            deadline = deadline.within_ms(_LEAVE_TIMEOUT_MS)
            raise
        finally:
            with self._changed:
                self._failure = None
                self._begin_to_leave(deadline, reason)
                self._unsubscribe()
            while self._leave is not None and self._thread_runs and not deadline.expired:
                await self._wait_for_thread(deadline)
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
            thread_end = Deadline.after_ms(_THREAD_END_TIMEOUT_MS)
            while self._thread_runs and not thread_end.expired:
                await self._wait_for_thread(thread_end)
            if self._thread is not None and self._has_ended:
                self._thread.join()  # It has nothing left to do.
            self._poll_wakeup.close()

    @property
    def _thread_runs(self) -> bool:
        return self._thread is not None and not self._has_ended

    async def _wait_for_thread(self, deadline: Deadline) -> None:
        """Wait until the member's thread wakes this one. It does so when it ends, too."""
        await wait_for((self._poll_wakeup,), deadline)
        self._poll_wakeup.clear()

    def _start(self) -> None:
        if self._thread is None:
            thread = daemon(self._run, f"group {self._group_id}")
            thread.start()
            self._thread = thread

    # -- in the thread that talks to the coordinator -----------------------------------------------

    def _run(self) -> None:
        try:
            self._coordinator.client.run(self._converse())
        finally:
            self._coordinator.wakeup.close()
            self._has_ended = True  # `is_alive` is still true after the wakeup below.
            self._poll_wakeup.wake()

    async def _converse(self) -> None:
        while not self._is_ending:
            try:
                await self._do_due_work()
            except ClosedError:
                return
            except Exception as error:  # An assignor may raise anything.
                self._handle_error(error)

    async def _do_due_work(self) -> None:
        """Join a generation, send a heartbeat or leave, if it is due. Otherwise wait until it is.

        `_handle_error` takes the errors.
        """
        with self._changed:
            self._coordinator.asked, self._coordinator.is_interrupted = None, False
            work = self._due_work()
        await (self._coordinator.wait(work) if isinstance(work, float) else work)

    def _due_work(self) -> Conversation[None] | float:
        """Return the conversation that is due, or the seconds until one is."""
        pause_seconds = self._next_try.at_seconds - self._clock()
        if self._leave is not None:
            return pause_seconds if pause_seconds > 0 else self._send_leave(self._leave)
        if self._failure is not None:
            return UNTIL_WOKEN_SECONDS
        left_seconds = self._left_to_poll_seconds()
        if self._is_member and left_seconds <= 0:
            self._expire()
            return 0.0
        if pause_seconds > 0:
            return pause_seconds
        work = self._next_request()
        if isinstance(work, float) and self._is_member:
            return min(work, left_seconds)
        return work

    def _handle_error(self, error: Exception) -> None:
        """React to an error by the table of reactions. Never raises."""
        with self._changed:
            if self._coordinator.is_interrupted:
                return
            reaction = reaction_to(self._coordinator.asked, error)
            if self._leave is not None:
                self._leave_failed(self._leave, reaction, error)
                return
            expected = reaction is Reaction.JOIN_AGAIN
            logger.log(logging.DEBUG if expected else logging.INFO, "%s: %s", error, reaction.value)
            if reaction is Reaction.REBALANCE:
                self._plan_heartbeat()
            else:
                tries_at_once = reaction in _TRIES_AT_ONCE
                self._next_try.failed(self._pause_after_first if tries_at_once else None)
            self._react(reaction)
            if reaction in (Reaction.RAISE, Reaction.FENCED):
                self._failure = error  # Nothing is sent to the coordinator until a poll raises it.
            self._poll_wakeup.wake()

    async def _send_leave(self, leave: _Leave) -> None:
        await leave.send(leave.deadline)
        with self._accepting_answer():
            self._end_leave()

    def _leave_failed(self, leave: _Leave, reaction: Reaction, error: Exception) -> None:
        if reaction is Reaction.RETRY and not leave.deadline.expired:
            self._next_try.failed()
            return
        if reaction not in (Reaction.GONE, Reaction.LOSE_MEMBER):
            logger.warning("Group %r was not told that a member left: %s", self._group_id, error)
        self._end_leave()

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
        deadline = Deadline.after_ms(_LEAVE_TIMEOUT_MS)
        self._begin_to_leave(deadline, "the consumer did not poll in time")
        self._lose_place()
        self._poll_wakeup.wake()

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
    def _next_request(self) -> Conversation[None] | float:
        """Return the request that is due. If none is, return the seconds until the next one.

        Called if the member is not leaving, has no error to raise, and does not pause.
        """

    @abstractmethod
    def _react(self, reaction: Reaction) -> None:
        """Apply the reaction to an error to the member's state."""

    @abstractmethod
    def _lose_place(self) -> None:
        """Lose the place in the group. The next poll tells the listener, and joins again."""

    @abstractmethod
    def _unsubscribe(self) -> None:
        """Forget the subscription, the partitions, and the place in the group."""

    @abstractmethod
    def _how_to_leave(self, reason: str) -> SendLeave | None:
        """Return the conversation that leaves the group; None if the coordinator need not know."""

    # -- for both ----------------------------------------------------------------------------------

    @contextmanager
    def _accepting_answer(self) -> Iterator[None]:
        """Hold the lock while an answer is stored. Raises an error if it came too late."""
        with self._changed:
            if self._coordinator.is_interrupted:
                raise InterruptedRequestError
            yield

    async def _tell_lost(self, first_error: FirstError) -> None:
        if self.assignment:
            await first_error.tell(self._listener.lost, self.assignment)
        self.assignment = frozenset()

    def _check(self, code: int, what: str, message: str | None = None) -> None:
        """Raise `BrokerError`, with advice for the user, if the code is an error."""
        if code:
            what = f"{what} of group {self._group_id!r}"
            advice = ADVICE.get(error_code(code).name)
            raise refusal(code, what, message, advice=advice, group_id=self._group_id)

    def _pause_after_first(self, tries: int) -> float:
        return self._coordinator.pause_seconds(tries - 1) if tries > 1 else 0.0

    def _plan_heartbeat(self, interval_ms: int | None = None) -> None:
        """Plan the next heartbeat after an answer of the coordinator."""
        self._next_try.reset()
        interval_ms = self._config.heartbeat_interval_ms if interval_ms is None else interval_ms
        self._heartbeat_at_seconds = self._clock() + interval_ms / 1000

    def _heartbeat_seconds(self) -> float:
        """Return the seconds until the next heartbeat; 0 or less if it is due."""
        return self._heartbeat_at_seconds - self._clock()

    def _begin_to_leave(self, deadline: Deadline, reason: str) -> None:
        send = self._how_to_leave(reason)
        if send is not None:
            self._leave = _Leave(send, deadline)
            self._next_try.reset()
        self._coordinator.interrupt()

    def _end_leave(self) -> None:
        self._leave = None
        self._poll_wakeup.wake()
