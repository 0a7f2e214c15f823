"""What a consumer commits: when it is told to, and by itself."""

import logging
import time
from collections.abc import Collection, Iterable, Mapping

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.consumer.committer import Commit, CommitCallback, Committer, Wait
from spark_kafka_source.consumer.consumer_config import ConsumerConfig
from spark_kafka_source.consumer.subscription import Subscription
from spark_kafka_source.errors import ConfigurationError, LocalError
from spark_kafka_source.fetch.positions import Positions
from spark_kafka_source.groups import GroupProtocol, MemberOf, OffsetAndMetadata, committed
from spark_kafka_source.net import Deadline
from spark_kafka_source.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

OffsetsToCommit = Mapping[TopicPartition, OffsetAndMetadata | int]
"""The next offset to read of each partition, perhaps with a text for people."""


class Commits:
    """The offsets of one consumer in its group. `committer` is None where there is no group."""

    def __init__(
        self,
        config: ConsumerConfig,
        positions: Positions,
        subscription: Subscription,
        committer: Committer | None,
        wait: Wait,
    ) -> None:
        """`wait` is how the consumer's thread waits for commits."""
        self._config = config
        self._wait = wait
        self._positions = positions
        self._subscription = subscription
        self._committer = committer
        self._by_itself = committer is not None and config.poll.enable_auto_commit
        self._due_seconds: float | None = None
        self._automatic: Commit | None = None
        self._last_failure = ""

    def commit(self, offsets: OffsetsToCommit | None, timeout_ms: int) -> None:
        """These, or what was handed out, after all that was asked for before; waits for it."""
        committer = self._group_committer()
        wanted = self._consumed() if offsets is None else _with_metadata(offsets)
        if wanted:
            committer.commit(wanted, self._member_of, timeout_ms, self._wait)

    def commit_async(
        self, offsets: OffsetsToCommit | None, callback: CommitCallback | None
    ) -> None:
        """The same without waiting; the callback is told within `attend` or `commit`."""
        committer = self._group_committer()
        wanted = self._consumed() if offsets is None else _with_metadata(offsets)
        committer.run_callbacks()
        committer.begin(wanted, self._member_of, callback=callback)

    def committed(
        self, client: KafkaClient, topic_partitions: Iterable[TopicPartition], timeout_ms: int
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """What the group has; partitions without are left out, and there are none without group."""
        if self._config.group is None:
            return {}
        return committed(
            client,
            self._config.group.group_id,
            topic_partitions,
            timeout_ms=timeout_ms,
            member_of=self._member_of,
        )

    def require_group(self) -> None:
        """Raises `ConfigurationError` where there is none."""
        self._group_committer()

    @property
    def due_seconds(self) -> float | None:
        """When, on the monotonic clock, it commits by itself."""
        return self._due_seconds

    def attend(self) -> None:
        """Runs callbacks, and commits what was handed out before if it is time to."""
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
        """Whether the last commit of its own is through: a slow coordinator gets no queue."""
        return self._automatic is None or self._automatic.is_done

    def commit_consumed_async(self) -> None:
        """What was handed out, where that is to be done, and can be now."""
        can_be = not self._subscription.in_group or self._subscription.member() is not None
        if can_be:
            self.begin_automatic()

    def commit_before_giving_up(self, deadline: Deadline) -> None:
        """What was handed out, and waits for it; a failure is only logged."""
        commit = self.begin_automatic(deadline.remaining_ms())
        if commit is not None:
            self._wait(lambda: commit.is_done, deadline)

    def begin_automatic(self, timeout_ms: int | None = None) -> Commit | None:
        """Begins to commit what was handed out, if that is to be done; a failure is only logged."""
        consumed = self._consumed()
        if not self._by_itself or self._committer is None or not consumed:
            return None
        try:
            self._automatic = self._committer.begin(
                consumed, self._member_of, timeout_ms, self._log_failure
            )
        except LocalError as error:  # As many as there may be wait already.
            self._log_failure(consumed, error)
            return None
        return self._automatic

    def _log_failure(self, _: object, error: Exception | None) -> None:
        """Once for each cause: a topic that is gone would be told of every few seconds."""
        text = "" if error is None else str(error)
        if text and text != self._last_failure:
            logger.warning("Offsets were not committed: %s", text)
        self._last_failure = text

    def close(self, deadline: Deadline) -> None:
        """Waits for the commits that were asked for, and runs their callbacks."""
        if self._committer is not None:
            self._committer.close(deadline)
            self._committer.run_callbacks()

    def _group_committer(self) -> Committer:
        if self._committer is None:
            raise ConfigurationError(
                "kafka.group.id", "is missing", "Give it, to commit to the group"
            )
        return self._committer

    @property
    def _member_of(self) -> MemberOf | None:
        """Says who commits; None for a consumer that is assigned its partitions by hand.

        With the classic protocol the one who it was when the commit was asked for: what waited
        through a rebalance is refused, or it would undo what the new owner has committed. With
        KIP-848 the one who it is by then, since its epoch goes on while it keeps its partitions.
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
        """Where it goes on in each of these."""
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


def _with_metadata(offsets: OffsetsToCommit) -> dict[TopicPartition, OffsetAndMetadata]:
    found = {
        each: OffsetAndMetadata(at) if isinstance(at, int) else at for each, at in offsets.items()
    }
    for each, at in found.items():
        if at.offset < 0:
            raise LocalError(f"Cannot commit offset {at.offset} of {each}")
    return found
