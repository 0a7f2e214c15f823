"""Commits of a consumer, one after another.

So no commit overtakes another: a commit that waits comes after all earlier asynchronous ones.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import ClosedError, KafkaTimeoutError, LocalError
from spark_kafka_source.groups import MemberOf, OffsetAndMetadata, commit_offsets, committed
from spark_kafka_source.net import Conversation, Conversations, Deadline, Running
from spark_kafka_source.topic_partition import TopicPartition

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
CommitCallback = Callable[[Offsets, Exception | None], None]
"""A function of the offsets, and the error of their commit or None."""

Wait = Callable[[Callable[[], bool], Deadline], Conversation[bool]]
"""A wait for a condition or the deadline. It returns the condition."""

_MOST_WAITING = 1_000
_LAST_TRY_SECONDS = 0.5


@dataclass(slots=True)
class Commit:
    """One commit. Once `is_done`, `error` is its error, or None."""

    offsets: Offsets
    member_of: MemberOf | None
    callback: CommitCallback | None
    deadline: Deadline
    is_done: bool = False
    error: Exception | None = None
    took_ms: float = 0.0


class Committer:
    """Queue of commits. The consumer's calls let it go on, and run the callbacks."""

    def __init__(
        self,
        client: KafkaClient,
        group_id: str,
        conversations: Conversations,
        on_commit: Callable[[float], None] = lambda _: None,
    ) -> None:
        """`conversations` are for commits alone. `on_commit` gets the duration of each in ms."""
        self._client = client
        self._group_id = group_id
        self._conversations = conversations
        self._on_commit = on_commit
        self._waiting: deque[Commit] = deque()
        self._finished: deque[Commit] = deque()
        self._running: Running[None] | None = None
        self._is_telling = False

    @property
    def is_idle(self) -> bool:
        """Whether all commits are done."""
        return not self._waiting

    async def commit(
        self, offsets: Offsets, member_of: MemberOf | None, timeout_ms: int, wait: Wait
    ) -> None:
        """Commit after all earlier commits, and wait for the end.

        Raises `CommitFailedError`, `BrokerError`, `KafkaTimeoutError`, and the errors of callbacks
        and of `wait`.
        """
        commit = self.begin(offsets, member_of, timeout_ms)
        # The last try gets extra time to end.
        deadline = Deadline(commit.deadline.at_seconds + _LAST_TRY_SECONDS, timeout_ms)
        in_time = await wait(lambda: commit.is_done, deadline)
        self.run_callbacks()
        if not in_time:
            raise KafkaTimeoutError(
                f"OffsetCommit to group {self._group_id!r}: not done within {timeout_ms} ms"
            )
        if commit.error is not None:
            raise commit.error

    def begin(
        self,
        offsets: Offsets,
        member_of: MemberOf | None,
        timeout_ms: int | None = None,
        callback: CommitCallback | None = None,
    ) -> Commit:
        """Commit without waiting. `run_callbacks` calls the callback."""
        if timeout_ms is None:
            timeout_ms = self._client.config.default_api_timeout_ms
        commit = Commit(dict(offsets), member_of, callback, Deadline.after_ms(timeout_ms))
        if len(self._waiting) >= _MOST_WAITING:
            raise LocalError(f"{_MOST_WAITING} commits to group {self._group_id!r} wait already")
        self._waiting.append(commit)
        self._go_on()
        return commit

    def _go_on(self) -> None:
        # A Ctrl-C may have ended the conversation. The queue has its commit still.
        if self._waiting and (self._running is None or self._running.is_done):
            self._running = self._conversations.begin(self._commit_waiting())

    def run_callbacks(self) -> None:
        """Call the callbacks of finished commits, in order."""
        self._go_on()
        if self._is_telling:  # A callback may commit, too.
            return
        self._is_telling = True
        try:
            while self._finished:
                commit = self._finished.popleft()
                self._on_commit(commit.took_ms)
                if commit.callback is not None:
                    commit.callback(commit.offsets, commit.error)
        finally:
            self._is_telling = False

    async def committed(
        self,
        topic_partitions: Iterable[TopicPartition],
        member_of: MemberOf | None,
        timeout_ms: int,
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """Return the group's offsets, without partitions that have none."""
        return await committed(
            self._client,
            self._group_id,
            topic_partitions,
            timeout_ms=timeout_ms,
            member_of=member_of,
        )

    def close(self) -> None:
        """Give up the commits that are not done. Their callbacks get the error."""
        if self._running is not None:
            self._running.give_up()
        while self._waiting:
            self._waiting[0].error = ClosedError("the consumer was closed before the commit ended")
            self._end_first()

    async def _commit_waiting(self) -> None:
        while self._waiting:
            commit = self._waiting[0]
            began_seconds = time.monotonic()
            try:
                await self._commit(commit)
            except Exception as error:
                commit.error = error
            commit.took_ms = (time.monotonic() - began_seconds) * 1000
            self._end_first()

    def _end_first(self) -> None:
        commit = self._waiting.popleft()
        self._finished.append(commit)
        commit.is_done = True

    async def _commit(self, commit: Commit) -> None:
        timeout_ms = max(1, commit.deadline.remaining_ms())
        await commit_offsets(
            self._client,
            self._group_id,
            {where: at.offset for where, at in commit.offsets.items()},
            leader_epochs={where: at.leader_epoch for where, at in commit.offsets.items()},
            metadata={where: at.metadata for where, at in commit.offsets.items()},
            member_of=commit.member_of,
            timeout_ms=timeout_ms,
        )
