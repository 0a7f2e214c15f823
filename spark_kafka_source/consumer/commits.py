"""Commits of a consumer: requested and automatic ones."""

import logging
import time
from collections.abc import Collection, Iterable, Mapping

from spark_kafka_source.consumer.committer import Commit, CommitCallback, Committer, Wait
from spark_kafka_source.consumer.consumer_config import ConsumerConfig
from spark_kafka_source.consumer.partition_arguments import Offsets
from spark_kafka_source.consumer.partition_arguments import offsets as checked_offsets
from spark_kafka_source.consumer.subscription import Subscription
from spark_kafka_source.errors import ConfigurationError, LocalError
from spark_kafka_source.fetch.positions import Positions
from spark_kafka_source.groups import GroupProtocol, MemberOf, OffsetAndMetadata
from spark_kafka_source.net import Deadline
from spark_kafka_source.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

_COMMIT = "commit"


class Commits:
    """Committed offsets of one consumer. `committer` is None without a group."""

    def __init__(
        self,
        config: ConsumerConfig,
        positions: Positions,
        subscription: Subscription,
        committer: Committer | None,
        wait: Wait,
    ) -> None:
        """Keep the parts. The consumer's thread waits for commits by `wait`."""
        self._config = config
        self._wait = wait
        self._positions = positions
        self._subscription = subscription
        self._committer = committer
        self._by_itself = committer is not None and config.poll.enable_auto_commit
        self._due_seconds: float | None = None
        self._automatic: Commit | None = None
        self._last_failure = ""

    async def commit(self, offsets: Offsets | None, timeout_ms: int) -> None:
        """Commit these offsets, or the positions, after all earlier commits, and wait."""
        committer = self._group_committer()
        wanted = self._consumed() if offsets is None else checked_offsets(offsets, _COMMIT)
        if wanted:
            await committer.commit(wanted, self._member_of, timeout_ms, self._wait)

    def commit_async(self, offsets: Offsets | None, callback: CommitCallback | None) -> None:
        """Commit without waiting. A later call, such as `attend`, runs the callback."""
        committer = self._group_committer()
        wanted = self._consumed() if offsets is None else checked_offsets(offsets, _COMMIT)
        committer.run_callbacks()
        committer.begin(wanted, self._member_of, callback=callback)

    async def committed(
        self, topic_partitions: Iterable[TopicPartition], timeout_ms: int
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """Return the group's offsets, without partitions that have none. Empty without a group."""
        if self._committer is None:
            return {}
        return await self._committer.committed(topic_partitions, self._member_of, timeout_ms)

    def require_group(self) -> None:
        """Raise `ConfigurationError` without a group."""
        self._group_committer()

    @property
    def due_seconds(self) -> float | None:
        """The time of the next automatic commit, on the monotonic clock."""
        return self._due_seconds

    def attend(self) -> None:
        """Run callbacks, and commit the positions if an automatic commit is due."""
        if self._committer is not None:
            self._committer.run_callbacks()
        if not self._by_itself:
            return
        now_seconds = time.monotonic()
        if self._due_seconds is not None and now_seconds < self._due_seconds:
            return
        if self._due_seconds is not None and self._is_idle:
            self.commit_consumed_async()
        self._due_seconds = now_seconds + self._config.poll.auto_commit_interval_ms / 1000

    @property
    def _is_idle(self) -> bool:
        """Whether the last automatic commit is done, so a slow coordinator gets no queue."""
        return self._automatic is None or self._automatic.is_done

    def commit_consumed_async(self) -> None:
        """Begin an automatic commit, except for a group member outside of a generation."""
        can_be = not self._subscription.in_group or self._subscription.member() is not None
        if can_be:
            self.begin_automatic()

    async def commit_before_giving_up(self, deadline: Deadline) -> None:
        """Commit the positions if commits are automatic, and wait. A failure is only logged."""
        commit = self.begin_automatic(deadline.remaining_ms())
        if commit is not None:
            await self._wait(lambda: commit.is_done, deadline)

    def begin_automatic(self, timeout_ms: int | None = None) -> Commit | None:
        """Begin to commit the positions if commits are automatic. A failure is only logged."""
        consumed = self._consumed()
        if not self._by_itself or self._committer is None or not consumed:
            return None
        try:
            self._automatic = self._committer.begin(
                consumed, self._member_of, timeout_ms, self._log_failure
            )
        except LocalError as error:  # Too many commits wait already.
            self._log_failure(consumed, error)
            return None
        return self._automatic

    def _log_failure(self, _: object, error: Exception | None) -> None:
        """Warn once for each cause: a deleted topic fails every few seconds."""
        text = "" if error is None else str(error)
        if text and text != self._last_failure:
            logger.warning("Offsets were not committed: %s", text)
        self._last_failure = text

    async def close(self, deadline: Deadline) -> None:
        """Wait for the requested commits until the deadline, and run their callbacks."""
        if self._committer is not None:
            committer = self._committer
            await self._wait(lambda: committer.is_idle, deadline)
            committer.close()
            committer.run_callbacks()

    def _group_committer(self) -> Committer:
        if self._committer is None:
            raise ConfigurationError(
                "kafka.group.id", "is missing", "Give it, to commit to the group"
            )
        return self._committer

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

    def next_offsets(
        self, topic_partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the known positions of these partitions."""
        found = {each: self._positions[each].next for each in topic_partitions}
        return {
            each: OffsetAndMetadata(at.offset, at.leader_epoch) for each, at in found.items() if at
        }

    def _consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return {
            each.topic_partition: OffsetAndMetadata(each.next.offset, each.next.leader_epoch)
            for each in self._positions
            if each.next is not None
        }
