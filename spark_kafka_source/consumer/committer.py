"""Commits of a consumer, one after another, in a thread of their own.

So no commit overtakes another: a commit that waits comes after all earlier asynchronous ones.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import KafkaTimeoutError, LocalError
from spark_kafka_source.groups import MemberOf, OffsetAndMetadata, commit_offsets
from spark_kafka_source.net import Deadline, Wakeup
from spark_kafka_source.topic_partition import TopicPartition

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
CommitCallback = Callable[[Offsets, Exception | None], None]
"""A function of the offsets, and the error of their commit or None."""

Wait = Callable[[Callable[[], bool], Deadline], bool]
"""A function that waits for a condition or the deadline. It returns the condition."""

_MOST_WAITING = 1_000
_LAST_TRY_SECONDS = 0.5
# The time for the thread to end after its client is closed.
_LAST_WORDS_SECONDS = 1.0


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
    """Queue of commits. Only the consumer's thread uses it, and runs all callbacks."""

    def __init__(
        self,
        client: KafkaClient,
        group_id: str,
        done: Wakeup,
        on_commit: Callable[[float], None] = lambda _: None,
    ) -> None:
        """Wake `done` after each commit. `on_commit` gets the duration in ms."""
        self._client = client.sibling()
        self._group_id = group_id
        self._done = done
        self._on_commit = on_commit
        self._changed = threading.Condition()
        self._waiting: deque[Commit] = deque()
        self._finished: deque[Commit] = deque()
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self._is_telling = False

    def commit(
        self, offsets: Offsets, member_of: MemberOf | None, timeout_ms: int, wait: Wait
    ) -> None:
        """Commit after all earlier commits, and wait for the end.

        Raises `CommitFailedError`, `BrokerError`, `KafkaTimeoutError`, and the errors of callbacks
        and of `wait`.
        """
        commit = self.begin(offsets, member_of, timeout_ms)
        # The last try gets extra time to end.
        deadline = Deadline(commit.deadline.at_seconds + _LAST_TRY_SECONDS, timeout_ms)
        in_time = wait(lambda: commit.is_done, deadline)
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
        with self._changed:
            if len(self._waiting) >= _MOST_WAITING:
                raise LocalError(
                    f"{_MOST_WAITING} commits to group {self._group_id!r} wait already"
                )
            self._waiting.append(commit)
            self._changed.notify_all()
        if self._thread is None:
            name = f"commits of group {self._group_id}"
            self._thread = threading.Thread(
                target=copy_context().run, args=[self._run], name=name, daemon=True
            )
            self._thread.start()
        return commit

    def run_callbacks(self) -> None:
        """Call the callbacks of finished commits, in order."""
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

    def close(self, deadline: Deadline) -> None:
        """Wait for all commits until the deadline, give up the rest, and end the thread.

        The callbacks are not called here.
        """
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(deadline.remaining_seconds())
        self._client.close()
        if self._thread is not None:
            self._thread.join(_LAST_WORDS_SECONDS)

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        while (commit := self._next()) is not None:
            began_seconds = time.monotonic()
            try:
                self._commit(commit)
            except Exception as error:
                commit.error = error
            commit.took_ms = (time.monotonic() - began_seconds) * 1000
            self._finished.append(commit)
            commit.is_done = True
            self._done.wake()

    def _next(self) -> Commit | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closing)
            return self._waiting.popleft() if self._waiting else None

    def _commit(self, commit: Commit) -> None:
        timeout_ms = max(1, commit.deadline.remaining_ms())
        commit_offsets(
            self._client,
            self._group_id,
            {where: at.offset for where, at in commit.offsets.items()},
            leader_epochs={where: at.leader_epoch for where, at in commit.offsets.items()},
            metadata={where: at.metadata for where, at in commit.offsets.items()},
            member_of=commit.member_of,
            timeout_ms=timeout_ms,
        )
