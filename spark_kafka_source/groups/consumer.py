"""The group protocol of KIP-848: the coordinator assigns partitions in its answers to heartbeats.

https://cwiki.apache.org/confluence/display/KAFKA/KIP-848%3A+The+Next+Generation+of+the+Consumer+Rebalance+Protocol
"""

import logging
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import partial

from spark_kafka_source.groups.config import GroupConfig
from spark_kafka_source.groups.coordinator import Coordinator
from spark_kafka_source.groups.listener import FirstError, RebalanceListener
from spark_kafka_source.groups.lookups import LONGEST_LOOKUP_MS, NamesOf
from spark_kafka_source.groups.member import Member
from spark_kafka_source.groups.membership import UNTIL_WOKEN_SECONDS, IsReady, Membership, Say, Step
from spark_kafka_source.groups.reactions import Reaction
from spark_kafka_source.net import Conversation, Deadline
from spark_kafka_source.protocol.messages.membership import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from spark_kafka_source.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

_JOIN_EPOCH = 0
_LEAVE_EPOCH = -1
_LEAVE_STATIC_EPOCH = -2
_HEARTBEAT_TIMEOUT_MS = 30_000
# A lower bound for the interval that the coordinator sets.
_SHORTEST_INTERVAL_MS = 10

Owned = frozenset[tuple[uuid.UUID, int]]
_NOTHING: Owned = frozenset()


class ConsumerState(Enum):
    """States as in Kafka's `MemberState`."""

    UNSUBSCRIBED = "not a member; the next poll joins if there is a subscription"
    JOINING = "it asks to be a member, with epoch 0"
    RECONCILING = "its target has changed; the next poll takes the target over"
    ACKNOWLEDGING = "it owns its target, and tells the coordinator"
    STABLE = "it owns its target, and the coordinator knows"
    FENCED = "the coordinator does not know it; the next poll gives everything up as lost"
    FATAL = "another member has its instance id; it can only leave"


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The subscription of a member: topics, and a pattern that the coordinator matches."""

    topics: frozenset[str] = frozenset()
    regex: str | None = None

    def __bool__(self) -> bool:
        return bool(self.topics or self.regex)


class ConsumerMembership(Membership):
    """A member of KIP-848's protocol.

    `names_of` returns the names of assigned topics by their ids.
    """

    def __init__(
        self,
        config: GroupConfig,
        listener: RebalanceListener,
        coordinator: Coordinator,
        names_of: NamesOf,
        *,
        is_ready: IsReady = lambda _: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(config, listener, coordinator, is_ready, clock)
        self._names_of = names_of
        self._names: dict[uuid.UUID, str] = {}
        self.state = ConsumerState.UNSUBSCRIBED
        # The member id lasts as long as the consumer does (KIP-1082).
        self._member_id = str(uuid.uuid4())
        self._epoch = _JOIN_EPOCH
        self._wanted = _Wanted()
        # The subscription in the last heartbeat. None: the next heartbeat is a full one.
        self._told: _Wanted | None = None
        self._target: Owned = _NOTHING
        self._owned: Owned = _NOTHING

    @property
    def member(self) -> Member | None:
        """Identity of the member. None until the coordinator gives it an epoch."""
        with self._changed:
            if not self._is_member:
                return None
            return Member(self._group_id, self._member_id, self._epoch, self._group_instance_id)

    # -- in the thread that polls ------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str] = (), regex: str | None = None) -> None:
        """Subscribe to topics by name, and to topics whose whole names match an RE2 pattern.

        The coordinator matches the pattern.
        """
        with self._changed:
            self._wanted = _Wanted(frozenset(topics), regex)
            self._coordinator.wakeup.wake()

    def rejoin(self, reason: str) -> None:
        """Log a warning: with KIP-848 the coordinator decides when to rebalance."""
        logger.warning("Group %r: its coordinator decides when to rebalance", self._group_id)

    def _next_step(self) -> Step | None:
        """Return the next step: join, reconcile with the target, or give up what is lost."""
        with self._changed:
            is_new = self.state is ConsumerState.UNSUBSCRIBED
            if self.state is ConsumerState.FENCED or (is_new and self._wanted):
                return Step(self._join, joins=is_new)
            if self.state is ConsumerState.RECONCILING:
                # Keep the target of this moment: it may change before the step runs.
                revoked = frozenset(self._named(self._owned - self._target))
                return Step(partial(self._reconcile, self._target), revoked)
            return None

    async def _join(self, first_error: FirstError) -> None:
        """Give up what is lost, and ask to be a member."""
        await self._tell_lost(first_error)
        self._owned = _NOTHING
        with self._changed:
            if self.state in (ConsumerState.UNSUBSCRIBED, ConsumerState.FENCED):
                self.state = ConsumerState.JOINING
            self._coordinator.wakeup.wake()

    def _own(self, owned: Owned) -> None:
        self._owned = owned
        self.assignment = frozenset(self._named(owned))

    def _named(self, owned: Owned) -> list[TopicPartition]:
        return [TopicPartition(self._names[topic_id], each) for topic_id, each in owned]

    async def _reconcile(self, target: Owned, first_error: FirstError) -> None:
        """Give up partitions that are not in the target, then take the new ones."""
        revoked, added = self._owned - target, target - self._owned
        if revoked:
            await first_error.tell(self._listener.revoked, self._named(revoked))
            self._own(self._owned - revoked)
        with self._changed:
            is_lost = self.state is not ConsumerState.RECONCILING
        if not is_lost:
            before = self._owned
            self._own(target)
            try:
                await first_error.tell(self._listener.assigned, self._named(added))
            except BaseException:  # A Ctrl-C or a cancellation. The next poll tells it again.
                self._own(before)
                raise
            with self._changed:
                # The target may have changed meanwhile. Another step then takes it over.
                if self._target == target and self.state is ConsumerState.RECONCILING:
                    self.state = ConsumerState.ACKNOWLEDGING
                    self._coordinator.wakeup.wake()

    def _unsubscribe(self) -> None:
        self._own(_NOTHING)
        self._wanted = _Wanted()
        self._lose()
        self.state = ConsumerState.UNSUBSCRIBED

    # -- in the thread that talks to the coordinator -----------------------------------------------

    def _next(self) -> Conversation[None] | float:
        if not self._may_be_known:
            return UNTIL_WOKEN_SECONDS
        joins = self.state is ConsumerState.JOINING and self._told is None
        acknowledges = self.state is ConsumerState.ACKNOWLEDGING
        has_news = self._told not in (None, self._wanted)
        wait_seconds = self._heartbeat_seconds()
        if wait_seconds > 0 and not (joins or acknowledges or has_news):
            return wait_seconds
        return self._beat(self._heartbeat_request(), acknowledges=acknowledges)

    @property
    def _may_be_known(self) -> bool:
        """Whether the coordinator may know the member. It may have taken in a lost request."""
        return self.state is ConsumerState.JOINING or self._is_member

    async def _beat(self, request: ConsumerGroupHeartbeatRequest, *, acknowledges: bool) -> None:
        """Send a heartbeat, and take in the epoch and the target in its answer."""
        response = await self._coordinator.ask(
            request, Deadline.after_ms(_HEARTBEAT_TIMEOUT_MS), self._check_beat
        )
        target = None
        if response.assignment is not None:
            target = await self._looked_up(response.assignment.topic_partitions)
        with self._taking_in():
            self._heard(max(response.heartbeat_interval_ms, _SHORTEST_INTERVAL_MS))
            self._epoch = response.member_epoch
            self._member_id = response.member_id or self._member_id
            if acknowledges and self.state is ConsumerState.ACKNOWLEDGING:
                self.state = ConsumerState.STABLE
            if target is not None:
                self._aim_at(target, joins=request.member_epoch == _JOIN_EPOCH)

    def _check_beat(self, response: ConsumerGroupHeartbeatResponse) -> None:
        self._check(response.error_code, "ConsumerGroupHeartbeat", response.error_message)

    def _heartbeat_request(self) -> ConsumerGroupHeartbeatRequest:
        """Return a heartbeat.

        It is a full one if the member joins or an answer was lost. Otherwise it has only changes.
        """
        request = ConsumerGroupHeartbeatRequest(
            self._group_id, self._member_id, self._epoch, self._group_instance_id
        )
        says_all, told = self._told is None, self._told or _Wanted()
        if says_all:
            request.rack_id = self._config.client_rack or None
            request.rebalance_timeout_ms = self._config.max_poll_interval_ms
            request.server_assignor = self._config.group_remote_assignor or None
        if says_all or self._wanted.topics != told.topics:
            request.subscribed_topic_names = sorted(self._wanted.topics)
        if self._wanted.regex != told.regex:
            request.subscribed_topic_regex = self._wanted.regex or ""
        if self._epoch == _JOIN_EPOCH:
            request.topic_partitions = []
        elif says_all or self.state is ConsumerState.ACKNOWLEDGING:
            request.topic_partitions = _by_topic(self._owned)
        self._told = self._wanted
        return request

    def _aim_at(self, target: Owned, *, joins: bool) -> None:
        self._target = target
        if target != self._owned or joins:
            self.state = ConsumerState.RECONCILING
            self._news.wake()
        elif self.state is ConsumerState.JOINING:
            self.state = ConsumerState.STABLE

    async def _looked_up(self, assigned: Iterable[TopicPartitions]) -> Owned:
        """Return the assigned partitions of topics whose names are known.

        If a name is not known, the next heartbeat is a full one, and the coordinator answers with
        the whole assignment again.
        """
        ids = {each.topic_id for each in assigned}
        unknown = ids - self._names.keys()
        if unknown:
            self._names.update(await self._names_of(unknown, Deadline.after_ms(LONGEST_LOOKUP_MS)))
        missing = ids - self._names.keys()
        if missing:
            ids_shown = ", ".join(map(str, missing))
            logger.info("Group %r: no broker knows topics %s yet", self._group_id, ids_shown)
            self._told = None
        return frozenset(
            (each.topic_id, partition)
            for each in assigned
            if each.topic_id in self._names
            for partition in each.partitions
        )

    def _farewell_to_say(self, reason: str) -> Say | None:
        """Return how to leave the group, also for a static member. KIP-848 has no reasons."""
        if not self._may_be_known:
            return None
        epoch = _LEAVE_EPOCH if self._group_instance_id is None else _LEAVE_STATIC_EPOCH
        request = ConsumerGroupHeartbeatRequest(
            self._group_id, self._member_id, epoch, self._group_instance_id
        )
        return lambda deadline: self._coordinator.ask(request, deadline, self._check_beat)

    def _react(self, found: Reaction) -> None:
        self._told = None
        if found is Reaction.LOSE_MEMBER:
            self._lose()
        elif found is Reaction.FENCED:
            self._lose()
            self.state = ConsumerState.FATAL

    def _lose(self) -> None:
        self.state = ConsumerState.FENCED
        self._epoch, self._told, self._target = _JOIN_EPOCH, None, _NOTHING

    @property
    def _is_fenced(self) -> bool:
        return self.state is ConsumerState.FATAL

    @property
    def _is_member(self) -> bool:
        return self._epoch > _JOIN_EPOCH


def _by_topic(owned: Owned) -> list[TopicPartitions]:
    by_topic: dict[uuid.UUID, list[int]] = {}
    for topic_id, partition in sorted(owned):
        by_topic.setdefault(topic_id, []).append(partition)
    return [TopicPartitions(topic_id, partitions) for topic_id, partitions in by_topic.items()]
