"""Commits of a consumer, one after another, from a thread of their own.

So no commit overtakes another: who commits and waits comes after all who did not wait.
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
"""Told what was to be committed, and why it was not, or None."""

Wait = Callable[[Callable[[], bool], Deadline], bool]
"""Waits until something is so, or until the deadline; returns whether it is so."""

_MOST_WAITING = 1_000
_LAST_TRY_SECONDS = 0.5
# To have the thread end once nobody waits for what it does.
_LAST_WORDS_SECONDS = 1.0


@dataclass(slots=True)
class Commit:
    """One commit. Once `is_done`, `error` is why it failed, or None."""

    offsets: Offsets
    member_of: MemberOf | None
    callback: CommitCallback | None
    deadline: Deadline
    is_done: bool = False
    error: Exception | None = None
    took_ms: float = 0.0


class Committer:
    """Belongs to one thread, that of the consumer, which also runs all callbacks."""

    def __init__(
        self,
        client: KafkaClient,
        group_id: str,
        done: Wakeup,
        on_commit: Callable[[float], None] = lambda _: None,
    ) -> None:
        """`done` is woken after each commit, and `on_commit` told how many ms it took."""
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
        """Commits after all that was asked for before, and waits for it.

        Raises `CommitFailedError`, `BrokerError`, `KafkaTimeoutError`; what callbacks raise, too,
        and what `wait` raises.
        """
        commit = self.begin(offsets, member_of, timeout_ms)
        # The last try has its own time to end in.
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
        """Commits without waiting; the callback is told in `run_callbacks`."""
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
        """Tells who asked for a commit what came of it, one after another."""
        if self._is_telling:  # A callback may commit itself.
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
        """Waits for all commits until then, gives up the rest and ends the thread.

        Callbacks are still to run.
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
