"""The topics of a consumer, and the partitions that it reads: its share in the group, or all."""

import re
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from spark_kafka_source.client import LOOKUP_MS, KafkaClient, NextTry, Retry, Topic
from spark_kafka_source.consumer.arguments import checked_topics
from spark_kafka_source.consumer.consumer_config import ConsumerConfig
from spark_kafka_source.consumer.metrics import GroupMetrics
from spark_kafka_source.consumer.rebalance_listener import (
    NO_LISTENER,
    GivenListener,
    ListenerMethod,
)
from spark_kafka_source.consumer.topics import MissingTopics, describe_topics, described_once
from spark_kafka_source.consumer.waiting import Waiting
from spark_kafka_source.denials import refusal
from spark_kafka_source.errors import (
    ConfigurationError,
    KafkaTimeoutError,
    LocalError,
    RemoteError,
)
from spark_kafka_source.fetch.positions import Positions
from spark_kafka_source.groups import GroupProtocol, Member, Membership, Step, new_membership
from spark_kafka_source.groups.assignors import Assignor
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Deadline, InterruptedConversationError, Running
from spark_kafka_source.topic_partition import TopicPartition
from spark_kafka_source.typed import letters_are_read

logger = logger_of(__name__)

# A client may try again without a pause, but it must not look for a topic without one.
_LEAST_PAUSE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class _HeldBack:
    """Partitions that are held back until their offsets are committed."""

    partitions: frozenset[TopicPartition]
    is_committed: Callable[[], bool]


class Subscription:
    """Subscription of a consumer. It adds and drops positions, as partitions come and go.

    It is also the listener of the membership (`revoked`, `assigned`, `lost`). Before a revocation
    it commits the offsets. Then it calls the user's listener, and then it drops the positions.
    """

    def __init__(
        self,
        client: KafkaClient,
        config: ConsumerConfig,
        assignors: Sequence[Assignor],
        positions: Positions,
        waiting: Waiting,
        *,
        begin_commit: Callable[[], Callable[[], bool]],
        metrics: GroupMetrics,
    ) -> None:
        """Keep the parts. `begin_commit` begins to commit the positions.

        It returns a function that returns whether they are committed.
        """
        self._client = client
        self._waiting = waiting
        self._metrics = metrics
        self._config = config
        self._assignors = assignors
        self._positions = positions
        self._begin_commit = begin_commit
        self._membership: Membership | None = None
        self._listener = NO_LISTENER
        self._pattern: re.Pattern[str] | None = None
        self._server_pattern: str | None = None
        self._next_look = NextTry(client.pause_seconds, least_seconds=_LEAST_PAUSE_SECONDS)
        self._rare_looks = Retry(client.config.retry_backoff_ms, client.config.metadata_max_age_ms)
        self._look: Running[list[Topic]] | None = None
        self._look_to_join: Running[list[Topic]] | None = None
        self._has_looked = False
        self._has_found_all = False
        self._held_back: _HeldBack | None = None
        self._waits_for_commit = False
        self._missing = MissingTopics()
        self._may_create = config.poll.allow_auto_create_topics
        self._assigned: set[str] = set()
        """Assigned topics that were there once."""
        self.topics: frozenset[str] = frozenset()

    @property
    def is_active(self) -> bool:
        """Whether there is a subscription."""
        return bool(self.topics) or self._pattern is not None or self._server_pattern is not None

    @property
    def names(self) -> set[str]:
        """The topics. With a pattern for the coordinator, the topics of assigned partitions."""
        if self._server_pattern is not None:
            return {partition.topic for partition in self._positions.partitions}
        return set(self.topics)

    @property
    def in_group(self) -> bool:
        """Whether the group assigns the partitions."""
        return self._membership is not None

    def member(self) -> Member | None:
        """Return this consumer's member identity, or None outside of a generation."""
        return None if self._membership is None else self._membership.member

    @property
    def waited_for(self) -> list[Any]:
        """The objects that become readable once there is something to `follow`."""
        return [] if self._membership is None else [self._membership]

    @property
    def next_look_seconds(self) -> float | None:
        """The time of the next topic lookup, on the monotonic clock."""
        is_due = self._looks_for_itself and self._look is None
        return self._next_look.at_seconds if is_due else None

    def begin(
        self,
        topics: Iterable[str],
        pattern: str | re.Pattern[str] | None,
        listener: GivenListener | None,
        server_pattern: str | None = None,
    ) -> None:
        """Replace the subscription. See `KafkaConsumer.subscribe`."""
        names = checked_topics(topics)
        if [bool(names), pattern is not None, bool(server_pattern)].count(True) != 1:
            raise LocalError("Give either topics or a pattern; unsubscribe() ends a subscription")
        if server_pattern:
            self._check_protocol()
        if self._positions.partitions and not self.is_active:
            raise LocalError("Partitions are assigned: unsubscribe() first")
        compiled = _compiled(pattern)
        letters = self._config.typed.bad_records_topic
        if letters and (letters in names or (compiled and compiled.fullmatch(letters))):
            raise letters_are_read(letters)
        self._listener, self.topics, self._pattern = listener or NO_LISTENER, names, compiled
        self._next_look.reset()
        self._has_looked = self._has_found_all = False
        self._look = self._look_to_join = None
        self._missing = MissingTopics()
        if self._config.group is not None and self._membership is None:
            client, group = self._client.sibling(), self._config.group
            self._membership = new_membership(
                client,
                group,
                self,
                self._assignors,
                is_ready=self._is_ready,
                on_request=self._metrics.requested,
            )
        self._server_pattern = server_pattern or None
        if self._membership is not None and (names or server_pattern):
            self._membership.subscribe(names, self._server_pattern)

    def _check_protocol(self) -> None:
        group = self._config.group
        if group is None or group.group_protocol is not GroupProtocol.CONSUMER:
            found = "is missing" if group is None else "is classic, which has no server_pattern"
            raise ConfigurationError(
                "kafka.group.id" if group is None else "kafka.group.protocol",
                found,
                "Give a 'kafka.group.id' and 'consumer' as its 'kafka.group.protocol', or use "
                "`pattern`",
            )

    async def end(self, deadline: Deadline) -> None:
        """Leave the group, if there is one, and stop reading."""
        try:
            if self._membership is not None:
                await self._membership.close(deadline)
        finally:
            self._membership = self._pattern = self._look = None
            self._server_pattern = self._held_back = None
            self._listener = NO_LISTENER
            self.topics = frozenset()
            self._positions.keep(())

    def rejoin(self, reason: str) -> None:
        """Make the group rebalance."""
        if self._membership is not None:
            self._membership.rejoin(reason)

    async def follow(self) -> None:
        """Look for topics if a lookup is due, and take the group's next step. Do not wait.

        Raises `BrokerError`, and the listener's errors.
        """
        self._end_look()
        if self._looks_for_itself and self._next_look.is_due:
            self._begin_look()
        if self._membership is not None:
            self._positions.hold(())
            self._waits_for_commit = False
            await self._membership.poll()
            if not self._waits_for_commit:  # No step waits for a commit now.
                self._held_back = None

    def _is_ready(self, step: Step) -> bool:
        """Return whether a step can be taken now. Its preparation may take several polls.

        Before a join, a member with a pattern looks up the topics again, so all members join with
        the same topics. Before a revocation, the member commits the offsets.
        """
        if step.joins or step.revokes:
            self._metrics.rebalance_began()
        if step.joins and self._pattern is not None:
            self._look_to_join = self._look_to_join or self._begin_look()
            if not self._look_to_join.is_done or self._look is not None:
                return False
        if step.revokes and not self._is_committed(step.revokes):
            self._positions.hold(step.revokes)
            self._waits_for_commit = True
            return False
        self._held_back = None
        if step.joins:
            self._look_to_join = None
        return True

    def _is_committed(self, partitions: frozenset[TopicPartition]) -> bool:
        """Begin a commit, if needed, and return whether it is done.

        A commit for other partitions does not count: it held back other partitions.
        """
        if self._held_back is None or self._held_back.partitions != partitions:
            self._held_back = _HeldBack(partitions, self._begin_commit())
        return self._held_back.is_committed()

    @property
    def _looks_for_itself(self) -> bool:
        """Whether this consumer looks up topics. The group's leader looks up named topics.

        A member looks up named topics only until all of them exist. It warns its user of missing
        ones, and its broker may create them.
        """
        in_group = self._membership is not None
        return self._pattern is not None or (
            bool(self.topics) and not (in_group and self._has_found_all)
        )

    def _begin_look(self) -> Running[list[Topic]]:
        if self._look is None:
            names = None if self._pattern is not None else self.topics
            # A topic that was there was deleted since: its readers do not make it again.
            create = self._may_create and names is not None and not self._has_found_all
            self._look = self._waiting.lookups.begin(
                describe_topics(self._client, names, timeout_ms=LOOKUP_MS, create=create)
            )
        return self._look

    async def describe(self, names: list[str], deadline: Deadline) -> list[Topic]:
        """Ask for topics with unknown leaders. A broker may create an assigned one."""
        create = self._may_create and not self.is_active and self._assigned.isdisjoint(names)
        topics = await described_once(self._client, names, deadline, create=create)
        self._assigned.update(topic.name for topic in topics if not topic.error.code)
        return topics

    def _end_look(self) -> None:
        look = self._look
        if look is None or not look.is_done:
            return
        self._look = None
        if isinstance(look.error(), InterruptedConversationError):
            return  # `follow` begins another.
        if not self._has_looked:  # The first lookup also counts as the one before the join.
            self._look_to_join = look
        try:
            described = look.result()
            self._has_looked = True
        except RemoteError as error:
            self._next_look.failed()
            if not error.retriable and not isinstance(error, KafkaTimeoutError):
                raise
            logger.warning("%s; trying again", error)
            return
        topics = [topic for topic in described if self._is_wanted(topic)]
        for topic in self._missing.newly(topics):
            logger.warning("Topic %r: %s; looking for it again", topic.name, topic.error)
        self._plan_look(topics)
        if self._pattern is not None:
            self.topics = frozenset(topic.name for topic in topics)
            if self._membership is not None:
                self._membership.subscribe(self.topics)
        if self._membership is None:
            self._positions.keep(each for topic in topics for each in self._partitions_of(topic))

    def _plan_look(self, topics: Collection[Topic]) -> None:
        """Set the time of the next look, after a look that found these topics.

        A consumer that waits for a missing topic looks as often as a client tries again. A member
        of a group leaves that to the leader, and looks seldom. A pattern that matches nothing looks
        seldom, too: each of its looks brings all topics of the cluster.
        """
        is_missing = any(topic.error.code for topic in topics)
        if is_missing and (self._membership is None or self._pattern is not None):
            self._next_look.failed()
        elif is_missing or not topics:
            self._next_look.failed(self._rare_looks.pause_seconds)
        else:
            age_seconds = self._client.config.metadata_max_age_ms / 1000
            self._next_look.succeeded()
            self._next_look.at_seconds = time.monotonic() + age_seconds
            self._has_found_all = True

    def _partitions_of(self, topic: Topic) -> list[TopicPartition]:
        """Return a topic's partitions. A topic with an error keeps its present partitions."""
        if topic.error.code:
            return [each for each in self._positions.partitions if each.topic == topic.name]
        return topic.topic_partitions

    def _is_wanted(self, topic: Topic) -> bool:
        if self._pattern is None:
            if topic.error.code and not topic.error.retriable:
                raise refusal(topic.error, f"Metadata of {topic.name}", topic=topic.name)
            return True
        if topic.error.code:
            return topic.error.retriable and topic.name in self.topics
        hidden = topic.is_internal and self._config.poll.exclude_internal_topics
        return not hidden and bool(self._pattern.fullmatch(topic.name))

    # -- what a membership tells -------------------------------------------------------------------

    async def revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Handle revoked partitions. See `RebalanceListener`."""
        await self._tell_and_drop(self._listener.revoked, partitions)

    async def assigned(self, partitions: Collection[TopicPartition]) -> None:
        """Handle new partitions. See `RebalanceListener`."""
        group = self._config.group
        if group is not None and group.group_protocol is GroupProtocol.CONSUMER:
            self._next_look.at_seconds = 0.0  # A new topic may be the cause of the rebalance.
        self._metrics.rebalance_ended()
        if self._membership is not None:
            assignment = self._membership.assignment
            # A topic that is deleted from now on is not made again.
            self._has_found_all |= {partition.topic for partition in assignment} >= self.topics
            self._positions.keep(sorted(assignment))
        try:
            await self._listener.assigned(partitions)
        except Exception:
            raise
        except BaseException:  # The next poll tells again, unless they are lost by then.
            self._drop(partitions)
            raise

    async def lost(self, partitions: Collection[TopicPartition]) -> None:
        """Handle lost partitions. See `RebalanceListener`."""
        self._metrics.rebalance_failed()
        await self._tell_and_drop(self._listener.lost, partitions)

    async def _tell_and_drop(
        self, tell: ListenerMethod, partitions: Collection[TopicPartition]
    ) -> None:
        try:
            await tell(partitions)
        except Exception:
            self._drop(partitions)
            raise
        self._drop(partitions)  # Not after a Ctrl-C or a cancellation: the next poll tells again.

    def _drop(self, partitions: Collection[TopicPartition]) -> None:
        gone = set(partitions)
        self._positions.keep(each for each in self._positions.partitions if each not in gone)


def _compiled(pattern: str | re.Pattern[str] | None) -> re.Pattern[str] | None:
    try:
        return None if pattern is None else re.compile(pattern)
    except re.error as error:
        raise LocalError(f"The pattern {pattern!r} is no regular expression: {error}") from error
