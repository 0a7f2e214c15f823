"""The group protocol of KIP-848: the coordinator assigns partitions in its answers to heartbeats.

https://cwiki.apache.org/confluence/display/KAFKA/KIP-848%3A+The+Next+Generation+of+the+Consumer+Rebalance+Protocol
"""

import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import partial

from spark_kafka_source.groups.config import GroupConfig
from spark_kafka_source.groups.coordinator import Coordinator
from spark_kafka_source.groups.error_reactions import Reaction
from spark_kafka_source.groups.listener import FirstError, RebalanceListener
from spark_kafka_source.groups.lookups import LONGEST_LOOKUP_MS, NamesOf
from spark_kafka_source.groups.member import Member
from spark_kafka_source.groups.membership import (
    UNTIL_WOKEN_SECONDS,
    IsReady,
    Membership,
    SendLeave,
    Step,
)
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Conversation, Deadline
from spark_kafka_source.protocol.messages.membership import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from spark_kafka_source.topic_partition import TopicPartition, partitions_by_topic

logger = logger_of(__name__)

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
class _Subscription:
    """The subscription of a member: topics, and a pattern that the coordinator matches."""

    topics: frozenset[str] = frozenset()
    regex: str | None = None

    def __bool__(self) -> bool:
        return bool(self.topics or self.regex)


# How a poll or the answer to a heartbeat changes the state:
#
#                 poll             a target            poll takes it over
#   UNSUBSCRIBED ------> JOINING -----------> RECONCILING ------> ACKNOWLEDGING
#                        ^     |                ^     ^                |     |
#                        |     | an empty one   |     +- a new target -+     |
#                   poll |     v                |                            | the answer
#                        |   STABLE ------------+ a new target               | to its
#                        |     ^                                             | heartbeat
#                        |     +---------------------------------------------+
#                     FENCED   from any state: the coordinator does not know the member,
#                              or no poll came in time
#
#   FATAL: from any state, if another member has this instance id
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
        self._subscription = _Subscription()
        # The subscription in the last heartbeat. With None the next heartbeat is a full one.
        self._sent: _Subscription | None = None
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
            self._subscription = _Subscription(frozenset(topics), regex)
            self._coordinator.wakeup.wake()

    def rejoin(self, reason: str) -> None:
        """Log a warning: with KIP-848 the coordinator decides when to rebalance."""
        logger.warning("Group %r: its coordinator decides when to rebalance", self._group_id)

    def _next_step(self) -> Step | None:
        """Return the next step: join, reconcile with the target, or give up lost partitions."""
        with self._changed:
            is_new = self.state is ConsumerState.UNSUBSCRIBED
            if self.state is ConsumerState.FENCED or (is_new and self._subscription):
                return Step(self._join, joins=is_new)
            if self.state is ConsumerState.RECONCILING:
                # Keep the target of this moment: it may change before the step runs.
                revoked = frozenset(self._partitions(self._owned - self._target))
                return Step(partial(self._reconcile, self._target), revoked)
            return None

    async def _join(self, first_error: FirstError) -> None:
        """Give up lost partitions, and ask to be a member."""
        await self._tell_lost(first_error)
        self._owned = _NOTHING
        with self._changed:
            if self.state in (ConsumerState.UNSUBSCRIBED, ConsumerState.FENCED):
                self.state = ConsumerState.JOINING
            self._coordinator.wakeup.wake()

    def _set_owned(self, owned: Owned) -> None:
        self._owned = owned
        self.assignment = frozenset(self._partitions(owned))

    def _partitions(self, owned: Owned) -> list[TopicPartition]:
        return [TopicPartition(self._names[topic_id], number) for topic_id, number in owned]

    async def _reconcile(self, target: Owned, first_error: FirstError) -> None:
        """Give up partitions that are not in the target, then take the new ones."""
        revoked, added = self._owned - target, target - self._owned
        if revoked:
            await first_error.tell(self._listener.revoked, self._partitions(revoked))
            self._set_owned(self._owned - revoked)
        with self._changed:
            is_lost = self.state is not ConsumerState.RECONCILING
        if not is_lost:
            before = self._owned
            self._set_owned(target)
            try:
                await first_error.tell(self._listener.assigned, self._partitions(added))
            except BaseException:  # A Ctrl-C or a cancellation. The next poll tells it again.
                self._set_owned(before)
                raise
            with self._changed:
                # The target may have changed meanwhile. Another step then takes it over.
                if self._target == target and self.state is ConsumerState.RECONCILING:
                    self.state = ConsumerState.ACKNOWLEDGING
                    self._coordinator.wakeup.wake()

    def _unsubscribe(self) -> None:
        self._set_owned(_NOTHING)
        self._subscription = _Subscription()
        self._lose_place()
        self.state = ConsumerState.UNSUBSCRIBED

    # -- in the thread that talks to the coordinator -----------------------------------------------

    def _next_request(self) -> Conversation[None] | float:
        if not self._may_be_known:
            return UNTIL_WOKEN_SECONDS
        joins = self.state is ConsumerState.JOINING and self._sent is None
        acknowledges = self.state is ConsumerState.ACKNOWLEDGING
        has_news = self._sent not in (None, self._subscription)
        wait_seconds = self._heartbeat_seconds()
        if wait_seconds > 0 and not (joins or acknowledges or has_news):
            return wait_seconds
        return self._send_heartbeat(self._heartbeat_request(), acknowledges=acknowledges)

    @property
    def _may_be_known(self) -> bool:
        """Whether the coordinator may know the member, also from a request without an answer."""
        return self.state is ConsumerState.JOINING or self._is_member

    async def _send_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, *, acknowledges: bool
    ) -> None:
        """Send a heartbeat, and store the epoch and the target in its answer."""
        response = await self._coordinator.ask(
            request, Deadline.after_ms(_HEARTBEAT_TIMEOUT_MS), self._check_heartbeat
        )
        target = None
        if response.assignment is not None:
            target = await self._with_known_topics(response.assignment.topic_partitions)
        with self._accepting_answer():
            self._plan_heartbeat(max(response.heartbeat_interval_ms, _SHORTEST_INTERVAL_MS))
            self._epoch = response.member_epoch
            self._member_id = response.member_id or self._member_id
            if acknowledges and self.state is ConsumerState.ACKNOWLEDGING:
                self.state = ConsumerState.STABLE
            if target is not None:
                self._set_target(target, joins=request.member_epoch == _JOIN_EPOCH)

    def _check_heartbeat(self, response: ConsumerGroupHeartbeatResponse) -> None:
        self._check(response.error_code, "ConsumerGroupHeartbeat", response.error_message)

    def _heartbeat_request(self) -> ConsumerGroupHeartbeatRequest:
        """Return a heartbeat.

        It is a full one if the member joins or an answer was lost. Otherwise it has only changes.
        """
        request = ConsumerGroupHeartbeatRequest(
            self._group_id, self._member_id, self._epoch, self._group_instance_id
        )
        is_full, sent = self._sent is None, self._sent or _Subscription()
        if is_full:
            request.rack_id = self._config.client_rack or None
            request.rebalance_timeout_ms = self._config.max_poll_interval_ms
            request.server_assignor = self._config.group_remote_assignor or None
        if is_full or self._subscription.topics != sent.topics:
            request.subscribed_topic_names = sorted(self._subscription.topics)
        if self._subscription.regex != sent.regex:
            request.subscribed_topic_regex = self._subscription.regex or ""
        if self._epoch == _JOIN_EPOCH:
            request.topic_partitions = []
        elif is_full or self.state is ConsumerState.ACKNOWLEDGING:
            by_topic = partitions_by_topic(sorted(self._owned))
            request.topic_partitions = [TopicPartitions(*topic) for topic in by_topic.items()]
        self._sent = self._subscription
        return request

    def _set_target(self, target: Owned, *, joins: bool) -> None:
        self._target = target
        if target != self._owned or joins:
            self.state = ConsumerState.RECONCILING
            self._poll_wakeup.wake()
        elif self.state is ConsumerState.JOINING:
            self.state = ConsumerState.STABLE

    async def _with_known_topics(self, assigned: Iterable[TopicPartitions]) -> Owned:
        """Return the assigned partitions of topics whose names are known.

        If a name is not known, the next heartbeat is a full one, and the coordinator answers with
        the whole assignment again.
        """
        ids = {topic.topic_id for topic in assigned}
        unknown = ids - self._names.keys()
        if unknown:
            self._names.update(await self._names_of(unknown, Deadline.after_ms(LONGEST_LOOKUP_MS)))
        missing = ids - self._names.keys()
        if missing:
            ids_shown = ", ".join(map(str, missing))
            logger.info("Group %r: no broker knows topics %s yet", self._group_id, ids_shown)
            self._sent = None
        return frozenset(
            (topic.topic_id, partition)
            for topic in assigned
            if topic.topic_id in self._names
            for partition in topic.partitions
        )

    def _how_to_leave(self, reason: str) -> SendLeave | None:
        """Return the conversation that leaves, also for a static member. KIP-848 has no reasons."""
        if not self._may_be_known:
            return None
        epoch = _LEAVE_EPOCH if self._group_instance_id is None else _LEAVE_STATIC_EPOCH
        request = ConsumerGroupHeartbeatRequest(
            self._group_id, self._member_id, epoch, self._group_instance_id
        )
        return lambda deadline: self._coordinator.ask(request, deadline, self._check_heartbeat)

    def _react(self, reaction: Reaction) -> None:
        self._sent = None
        if reaction is Reaction.LOSE_MEMBER:
            self._lose_place()
        elif reaction is Reaction.FENCED:
            self._lose_place()
            self.state = ConsumerState.FATAL

    def _lose_place(self) -> None:
        self.state = ConsumerState.FENCED
        self._epoch, self._sent, self._target = _JOIN_EPOCH, None, _NOTHING

    @property
    def _is_fenced(self) -> bool:
        return self.state is ConsumerState.FATAL

    @property
    def _is_member(self) -> bool:
        return self._epoch > _JOIN_EPOCH
