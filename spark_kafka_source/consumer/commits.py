"""Commits of a consumer: requested and automatic ones, one after another.

So no commit overtakes another: a commit that waits comes after all earlier asynchronous ones.
"""

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.client.given_objects import refuse_async, refuse_awaitable
from spark_kafka_source.consumer.arguments import (
    Offsets,
    OneOrMany,
    checked_offsets,
    checked_partitions,
)
from spark_kafka_source.consumer.consumer_config import ConsumerConfig
from spark_kafka_source.consumer.subscription import Subscription
from spark_kafka_source.consumer.waiting import Waiting
from spark_kafka_source.errors import ClosedError, ConfigurationError, KafkaTimeoutError, LocalError
from spark_kafka_source.fetch.positions import Positions
from spark_kafka_source.groups import (
    GroupProtocol,
    MemberOf,
    OffsetAndMetadata,
    commit_offsets,
    committed,
)
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Deadline, Running
from spark_kafka_source.topic_partition import TopicPartition

logger = logger_of(__name__)

CommitCallback = Callable[[Mapping[TopicPartition, OffsetAndMetadata], Exception | None], None]
"""A function of the offsets, and the error of their commit or None."""

_MOST_WAITING = 1_000


@dataclass(slots=True)
class Commit:
    """Offsets on their way to the group. Once `is_done`, `error` is their error, or None."""

    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    member_of: MemberOf | None
    deadline: Deadline
    callback: CommitCallback | None
    is_done: bool = False
    error: Exception | None = None
    took_ms: float = 0.0


class Commits:
    """Commits of one consumer. The consumer's calls advance them, and run their callbacks."""

    def __init__(
        self,
        client: KafkaClient,
        config: ConsumerConfig,
        positions: Positions,
        subscription: Subscription,
        waiting: Waiting,
        *,
        on_commit: Callable[[float], None],
    ) -> None:
        """Keep the parts. `on_commit` gets the duration of each commit in ms."""
        self._client = client
        self._config = config
        self._group_id = None if config.group is None else config.group.group_id
        self._positions = positions
        self._subscription = subscription
        self._waiting = waiting
        self._on_commit = on_commit
        self._is_automatic = self._group_id is not None and config.poll.enable_auto_commit
        self._queue: deque[Commit] = deque()
        self._finished: deque[Commit] = deque()
        self._running: Running[None] | None = None
        self._is_calling_back = False
        self._automatic: Commit | None = None
        self._last_failure = ""
        self.due_seconds: float | None = None
        """The time of the next automatic commit, on the monotonic clock."""

    # -- requested ones ----------------------------------------------------------------------------

    async def commit(self, offsets: Offsets | None, timeout_ms: int | None) -> None:
        """Commit these offsets, or the positions, after all earlier commits, and wait.

        Raises `CommitFailedError`, `BrokerError`, `KafkaTimeoutError`, `WakeupError`, and the
        errors of callbacks.
        """
        group_id, to_commit = self._needed_group(), self._offsets_to_commit(offsets)
        if not to_commit:
            return
        commit = self._begin(to_commit, timeout_ms)
        in_time = await self._waiting.in_time(lambda: commit.is_done, commit.deadline)
        self._run_callbacks()
        if not in_time:
            raise KafkaTimeoutError(
                f"OffsetCommit to group {group_id!r}: not done within "
                f"{commit.deadline.timeout_ms} ms"
            )
        if commit.error is not None:
            raise commit.error

    def commit_async(self, offsets: Offsets | None, callback: CommitCallback | None) -> None:
        """Commit without waiting. A later call, such as `attend`, runs the callback."""
        if callback is not None:
            refuse_async("callback", callback, "function")
        self._needed_group()
        to_commit = self._offsets_to_commit(offsets)
        self._run_callbacks()
        self._begin(to_commit, None, callback)

    async def committed(
        self, given: OneOrMany, timeout_ms: int | None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's last committed offsets, None for partitions without one."""
        self._needed_group()
        partitions = checked_partitions(given)
        offsets = await self._waiting.ask(
            "OffsetFetch", lambda time_ms: self.group_offsets(partitions, time_ms), timeout_ms
        )
        return {partition: offsets.get(partition) for partition in partitions}

    async def group_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: int
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """Return the group's offsets, without partitions that have none. Empty without a group."""
        if self._group_id is None:
            return {}
        return await committed(
            self._client,
            self._group_id,
            partitions,
            timeout_ms=timeout_ms,
            member_of=self._member_of,
        )

    def _needed_group(self) -> str:
        if self._group_id is None:
            expected = "Give it, to commit to the group"
            raise ConfigurationError("kafka.group.id", "is missing", expected)
        return self._group_id

    def _offsets_to_commit(
        self, offsets: Offsets | None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        return self.consumed() if offsets is None else checked_offsets(offsets, "commit")

    def consumed(
        self, partitions: Collection[TopicPartition] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the known positions of these partitions, or of all."""
        positions = self._positions if partitions is None else map(self._positions.get, partitions)
        return {
            position.topic_partition: OffsetAndMetadata(*position.next)
            for position in positions
            if position is not None and position.next is not None
        }

    # -- automatic ones ----------------------------------------------------------------------------

    def attend(self) -> None:
        """Run callbacks, and commit the positions if an automatic commit is due."""
        self._run_callbacks()
        if not self._is_automatic:
            return
        now_seconds = time.monotonic()
        if self.due_seconds is not None and now_seconds < self.due_seconds:
            return
        # A slow coordinator gets no queue of them.
        is_idle = self._automatic is None or self._automatic.is_done
        if self.due_seconds is not None and is_idle:
            self.commit_consumed_async()
        self.due_seconds = now_seconds + self._config.poll.auto_commit_interval_ms / 1000

    def commit_consumed_async(self, timeout_ms: int | None = None) -> None:
        """Begin an automatic commit, except for a group member outside of a generation."""
        if not self._subscription.in_group or self._subscription.member() is not None:
            self.begin_automatic(timeout_ms)

    def begin_automatic(self, timeout_ms: int | None = None) -> Callable[[], bool]:
        """Begin to commit the positions if commits are automatic. A failure is only logged.

        Return a function that returns whether the commit is done, or was not needed.
        """
        consumed = self.consumed()
        if not self._is_automatic or not consumed:
            return lambda: True
        try:
            self._automatic = commit = self._begin(consumed, timeout_ms, self._log_failure)
        except LocalError as error:  # Too many commits wait already.
            self._log_failure(consumed, error)
            return lambda: True
        return lambda: commit.is_done

    def _log_failure(self, _: object, error: Exception | None) -> None:
        """Warn once for each cause: a deleted topic fails every few seconds."""
        text = "" if error is None else str(error)
        if text and text != self._last_failure:
            logger.warning("Offsets were not committed: %s", text)
        self._last_failure = text

    # -- the queue ---------------------------------------------------------------------------------

    def _begin(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        timeout_ms: int | None,
        callback: CommitCallback | None = None,
    ) -> Commit:
        if len(self._queue) >= _MOST_WAITING:
            raise LocalError(f"{_MOST_WAITING} commits to group {self._group_id!r} wait already")
        deadline = Deadline.after_ms(self._waiting.default_ms if timeout_ms is None else timeout_ms)
        commit = Commit(dict(offsets), self._member_of, deadline, callback)
        self._queue.append(commit)
        self._go_on()
        return commit

    @property
    def _member_of(self) -> MemberOf | None:
        """A function that returns the committing member, or None for assigned partitions.

        With the classic protocol it is the member at the time of the request. The coordinator then
        refuses a commit that waited through a rebalance, which would undo the new owner's commits.
        With KIP-848 it is the current member, because a member that keeps its partitions gets new
        epochs.
        """
        if not self._subscription.in_group:
            return None
        member = self._subscription.member()
        group = self._config.group
        if group is not None and group.group_protocol is GroupProtocol.CONSUMER:
            return self._subscription.member
        return lambda: member

    def _go_on(self) -> None:
        # A Ctrl-C may have ended the conversation. The queue has its commit still.
        if self._queue and (self._running is None or self._running.is_done):
            self._running = self._waiting.commits.begin(self._commit_waiting())

    async def _commit_waiting(self) -> None:
        while self._queue:
            commit = self._queue[0]
            began_seconds = time.monotonic()
            try:
                await self._request(commit)
            except Exception as error:
                commit.error = error
            commit.took_ms = (time.monotonic() - began_seconds) * 1000
            self._end_first()

    async def _request(self, commit: Commit) -> None:
        await commit_offsets(
            self._client,
            self._needed_group(),
            commit.offsets,
            member_of=commit.member_of,
            timeout_ms=max(1, commit.deadline.remaining_ms()),
        )

    def _end_first(self) -> None:
        commit = self._queue.popleft()
        self._finished.append(commit)
        commit.is_done = True

    def _run_callbacks(self) -> None:
        """Call the callbacks of finished commits, in order."""
        self._go_on()
        if self._is_calling_back:  # A callback may commit, too.
            return
        self._is_calling_back = True
        try:
            while self._finished:
                commit = self._finished.popleft()
                self._on_commit(commit.took_ms)
                if commit.callback is not None:
                    result: object = commit.callback(commit.offsets, commit.error)
                    refuse_awaitable("callback", result, "function")
        finally:
            self._is_calling_back = False

    async def finish(self, deadline: Deadline) -> None:
        """Wait for the requested commits until the deadline."""
        self._go_on()
        await self._waiting.until(lambda: not self._queue, deadline)

    async def close(self, deadline: Deadline) -> None:
        """Wait for the requested commits until the deadline, and run all callbacks.

        Commits that are not done then are given up. Their callbacks get the error.
        """
        try:
            await self.finish(deadline)
        finally:
            if self._running is not None:
                self._running.give_up()
            while self._queue:
                what = "the consumer was closed before the commit ended"
                self._queue[0].error = ClosedError(what)
                self._end_first()
            self._run_callbacks()
