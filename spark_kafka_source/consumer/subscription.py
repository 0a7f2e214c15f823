"""Which topics a consumer reads, and which of their partitions: its group's share, or all."""

import logging
import re
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from spark_kafka_source.client import LOOKUP_MS, KafkaClient, Lookup, Lookups, Topic
from spark_kafka_source.consumer.committer import Commit, Wait
from spark_kafka_source.consumer.consumer_config import ConsumerConfig
from spark_kafka_source.consumer.group_metrics import GroupMetrics
from spark_kafka_source.errors import (
    BrokerError,
    ConfigurationError,
    KafkaTimeoutError,
    LocalError,
    RemoteError,
)
from spark_kafka_source.fetch.positions import Positions
from spark_kafka_source.groups import GroupProtocol, Hooks, Member, Membership, Step, new_membership
from spark_kafka_source.groups.assignors import Assignor
from spark_kafka_source.net import Deadline
from spark_kafka_source.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

_FAREWELL_MS = 2_000


class ConsumerRebalanceListener:
    """Told, within `poll`, `unsubscribe` and `close`, which partitions come and go.

    It may use the consumer: commit or store offsets of what is revoked, seek in what is assigned.
    What it raises comes out of `poll` once the rebalance is through.
    """

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """These are given up: the last moment to commit what was read of them."""

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        """These are new; called after each rebalance, also with none."""

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        """These are another's already, maybe: nothing can be committed any more.

        For who does not say otherwise, the same as revoked.
        """
        self.on_partitions_revoked(partitions)


@dataclass(frozen=True, slots=True)
class _GivingUp:
    """Partitions that hand out nothing until what was handed out of them is committed."""

    partitions: frozenset[TopicPartition]
    commit: Commit


class Subscription:
    """Keeps a consumer's positions those of the partitions that it is to read.

    Also what a membership tells (`revoked`, `assigned`, `lost`): before partitions are revoked
    their offsets are committed; then the user's listener is told, and only then are they gone.
    """

    def __init__(
        self,
        client: KafkaClient,
        config: ConsumerConfig,
        assignors: Sequence[Assignor],
        positions: Positions,
        *,
        lookups: Lookups,
        begin_commit: Callable[[int | None], Commit | None],
        wait: Wait,
        metrics: GroupMetrics,
    ) -> None:
        """`begin_commit` commits what was handed out, within so many ms; None: nothing is to be.

        `wait` is how the consumer's thread waits for it where it leaves for good.
        """
        self._client = client
        self._lookups = lookups
        self._metrics = metrics
        self._hooks = Hooks(self._is_ready, metrics.requested)
        self._config = config
        self._assignors = assignors
        self._positions = positions
        self._begin_commit = begin_commit
        self._wait = wait
        self._membership: Membership | None = None
        self._listener: ConsumerRebalanceListener | None = None
        self._pattern: re.Pattern[str] | None = None
        self._server_pattern: str | None = None
        self._look_at_seconds = 0.0
        self._looks_in_vain = 0
        self._look: Lookup[list[Topic]] | None = None
        self._look_to_join: Lookup[list[Topic]] | None = None
        self._has_looked = False
        self._giving_up: _GivingUp | None = None
        self._holds_back = False
        self._told: set[str] = set()
        self._ends_by: Deadline | None = None
        self.topics: frozenset[str] = frozenset()

    @property
    def is_active(self) -> bool:
        """Whether anything is subscribed to."""
        return bool(self.topics) or self._pattern is not None or self._server_pattern is not None

    @property
    def names(self) -> set[str]:
        """The topics; of a pattern that the coordinator looks for, those that are assigned."""
        if self._server_pattern is not None:
            return {each.topic for each in self._positions.partitions}
        return set(self.topics)

    @property
    def in_group(self) -> bool:
        """Whether the group says which partitions to read."""
        return self._membership is not None

    def member(self) -> Member | None:
        """Who this consumer is in its group; None while it is in no generation of it."""
        membership = self._membership  # Commits ask from their own thread.
        return None if membership is None else membership.member

    @property
    def waited_for(self) -> list[Any]:
        """What becomes readable once there is something to `follow`."""
        return [] if self._membership is None else [self._membership]

    @property
    def next_look_seconds(self) -> float | None:
        """When, on the monotonic clock, topics are looked for again."""
        is_due = self._looks_for_itself and self._look is None
        return self._look_at_seconds if is_due else None

    def begin(
        self,
        topics: Iterable[str],
        pattern: str | re.Pattern[str] | None,
        listener: ConsumerRebalanceListener | None,
        server_pattern: str | None = None,
    ) -> None:
        """Takes the place of what was subscribed to before; see `KafkaConsumer.subscribe`."""
        wanted = frozenset((topics,) if isinstance(topics, str) else topics)
        if [bool(wanted), pattern is not None, bool(server_pattern)].count(True) != 1:
            raise LocalError("Give either topics or a pattern; unsubscribe() ends a subscription")
        if server_pattern:
            self._check_protocol()
        if self._positions.partitions and not self.is_active:
            raise LocalError("Partitions are assigned: unsubscribe() first")
        compiled = _compiled(pattern)
        self._listener, self.topics, self._pattern = listener, wanted, compiled
        self._look_at_seconds, self._looks_in_vain, self._has_looked = 0.0, 0, False
        self._look = self._look_to_join = None
        self._told.clear()
        if self._config.group is not None and self._membership is None:
            client, group = self._client.sibling(), self._config.group
            self._membership = new_membership(client, group, self, self._assignors, self._hooks)
        self._server_pattern = server_pattern or None
        if self._membership is not None and (wanted or server_pattern):
            self._membership.subscribe(wanted, self._server_pattern)

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

    def end(self, deadline: Deadline) -> None:
        """Leaves the group, if there is one, and reads nothing any more."""
        self._ends_by = deadline
        try:
            if self._membership is not None:
                self._membership.close(deadline)
        finally:
            self._membership = self._listener = self._pattern = self._look = None
            self._server_pattern = self._ends_by = self._giving_up = None
            self.topics = frozenset()
            self._positions.keep(())

    def rejoin(self, reason: str) -> None:
        """Has the group share its partitions out anew."""
        if self._membership is not None:
            self._membership.rejoin(reason)

    def follow(self) -> None:
        """Looks for topics when it is time to, and does what the group demands; waits for nothing.

        Raises `BrokerError`, and what the listener raises.
        """
        self._take_look()
        if self._looks_for_itself and time.monotonic() >= self._look_at_seconds:
            self._begin_look()
        if self._membership is not None:
            self._positions.hold(())
            self._holds_back = False
            self._membership.poll()
            if not self._holds_back:  # The step that waited for a commit is not to be taken now.
                self._giving_up = None

    def _is_ready(self, step: Step) -> bool:
        """Return whether a step can be taken now; its preparation may take several polls.

        Before joining a member looks at the topics again that its pattern may match, so that all
        members join with the same. Before partitions are given up, their offsets are committed.
        """
        if step.joins or step.revokes:
            self._metrics.rebalance_began()
        if step.joins and self._pattern is not None:
            self._look_to_join = self._look_to_join or self._begin_look()
            if not self._look_to_join.is_done or self._look is not None:
                return False
        if step.revokes and not self._is_committed(step.revokes):
            self._positions.hold(step.revokes)
            self._holds_back = True
            return False
        self._giving_up = None
        if step.joins:
            self._look_to_join = None
        return True

    def _is_committed(self, partitions: frozenset[TopicPartition]) -> bool:
        """Whether their commit is through, which begins here. One of other partitions says nothing.

        Those were held back since it began, but these have been handed out further.
        """
        if self._giving_up is None or self._giving_up.partitions != partitions:
            commit = self._begin_commit(None)
            self._giving_up = None if commit is None else _GivingUp(partitions, commit)
        return self._giving_up is None or self._giving_up.commit.is_done

    @property
    def _looks_for_itself(self) -> bool:
        """Whether this consumer asks for topics. A group's leader asks for those that are named.

        A member asks for them once, to tell its user of topics that are not there.
        """
        in_group = self._membership is not None
        return self._pattern is not None or (
            bool(self.topics) and not (in_group and self._has_looked)
        )

    def _begin_look(self) -> Lookup[list[Topic]]:
        if self._look is None:
            names = None if self._pattern is not None else self.topics
            self._look = self._lookups.ask(
                lambda client: describe_topics(client, names, Deadline.after_ms(LOOKUP_MS))
            )
        return self._look

    def _take_look(self) -> None:
        look = self._look
        if look is None or not look.is_done:
            return
        self._look = None
        if not self._has_looked:  # The first one is also that before the first join.
            self._look_to_join = look
        try:
            asked = look.result()
            self._has_looked = True
        except RemoteError as error:
            self._look_again()
            if not error.retriable and not isinstance(error, KafkaTimeoutError):
                raise
            logger.warning("%s; trying again", error)
            return
        found = [each for each in asked if self._is_wanted(each)]
        self._warn_of_unknown(found)
        if any(each.error.code for each in found):
            self._look_again()
        else:
            age_seconds = self._client.config.metadata_max_age_ms / 1000
            self._look_at_seconds, self._looks_in_vain = time.monotonic() + age_seconds, 0
        if self._pattern is not None:
            self.topics = frozenset(each.name for each in found)
            if self._membership is not None:
                self._membership.subscribe(self.topics)
        if self._membership is None:
            self._positions.keep(each for topic in found for each in self._partitions_of(topic))

    def _warn_of_unknown(self, topics: Iterable[Topic]) -> None:
        """Once, and again when a topic was there meanwhile."""
        for topic in topics:
            if topic.error.code and topic.name not in self._told:
                logger.warning("Topic %r: %s; looking for it again", topic.name, topic.error)
            (self._told.add if topic.error.code else self._told.discard)(topic.name)

    def _look_again(self) -> None:
        self._looks_in_vain += 1
        pause_seconds = self._client.pause_seconds(self._looks_in_vain)
        self._look_at_seconds = time.monotonic() + pause_seconds

    def _partitions_of(self, topic: Topic) -> list[TopicPartition]:
        """Those of a topic that a broker does not know (yet, or now) are those that there were."""
        if topic.error.code:
            return [each for each in self._positions.partitions if each.topic == topic.name]
        return topic.topic_partitions

    def _is_wanted(self, topic: Topic) -> bool:
        if self._pattern is None:
            if topic.error.code and not topic.error.retriable:
                raise BrokerError(topic.error, f"Metadata of {topic.name}")
            return True
        if topic.error.code:
            return topic.error.retriable and topic.name in self.topics
        hidden = topic.is_internal and self._config.poll.exclude_internal_topics
        return not hidden and bool(self._pattern.fullmatch(topic.name))

    # -- what a membership tells -------------------------------------------------------------------

    def revoked(self, partitions: Collection[TopicPartition]) -> None:
        """See `RebalanceListener`."""
        try:
            if self._ends_by is not None:
                # Also where a commit is under way: the coordinator takes none after the farewell,
                # and what was not held back has been handed out further.
                self._commit(self._ends_by)
            if self._listener is not None:
                self._listener.on_partitions_revoked(partitions)
        finally:
            self._drop(partitions)

    def _commit(self, deadline: Deadline) -> None:
        """Leaves the coordinator some of the time to be told that the member leaves."""
        left_ms = deadline.remaining_ms()
        commit_by = deadline.within_ms(max(left_ms - _FAREWELL_MS, left_ms // 2))
        commit = self._begin_commit(commit_by.remaining_ms())
        if commit is not None:
            self._wait(lambda: commit.is_done, commit_by)

    def assigned(self, partitions: Collection[TopicPartition]) -> None:
        """See `RebalanceListener`."""
        group = self._config.group
        if group is not None and group.group_protocol is GroupProtocol.CONSUMER:
            self._look_at_seconds = 0.0  # What made the group move may be a topic yet unknown here.
        self._metrics.rebalance_ended()
        if self._membership is not None:
            self._positions.keep(sorted(self._membership.assignment))
        if self._listener is not None:
            self._listener.on_partitions_assigned(partitions)

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        """See `RebalanceListener`."""
        self._metrics.rebalance_failed()
        try:
            if self._listener is not None:
                self._listener.on_partitions_lost(partitions)
        finally:
            self._drop(partitions)

    def _drop(self, partitions: Collection[TopicPartition]) -> None:
        gone = set(partitions)
        self._positions.keep(each for each in self._positions.partitions if each not in gone)


def _compiled(pattern: str | re.Pattern[str] | None) -> re.Pattern[str] | None:
    try:
        return None if pattern is None else re.compile(pattern)
    except re.error as error:
        raise LocalError(f"The pattern {pattern!r} is no regular expression: {error}") from error


def describe_topics(
    client: KafkaClient, names: Iterable[str] | None, deadline: Deadline
) -> list[Topic]:
    """The named topics, or all with None, asked for until there is an answer."""
    names = None if names is None else list(names)
    attempt = partial(client.topics, names)
    return client.retrying("Metadata", attempt, timeout_ms=deadline.remaining_ms())
