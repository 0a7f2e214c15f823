"""The classic group protocol: the members join, and one of them divides the partitions.

https://cwiki.apache.org/confluence/display/KAFKA/Kafka+Client-side+Assignment+Proposal, with
cooperative rebalances (KIP-429), member ids from the coordinator (KIP-394), static members
(KIP-345), reasons (KIP-800) and leaders that need not assign (KIP-814).
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from spark_kafka_source.client import Retry
from spark_kafka_source.errors import (
    ConfigurationError,
    KafkaError,
    LocalError,
    UnsupportedVersionError,
    error_named,
)
from spark_kafka_source.groups.assignors import (
    Assignment,
    Assignor,
    Cluster,
    RebalanceProtocol,
    Subscription,
)
from spark_kafka_source.groups.assignors.given import check_user_data
from spark_kafka_source.groups.classic_states import TRANSITIONS, Event, Keep, State
from spark_kafka_source.groups.config import GroupConfig
from spark_kafka_source.groups.leader import LONGEST_LOOKUP_MS, TopicWatch, divide
from spark_kafka_source.groups.listener import FirstError, RebalanceListener
from spark_kafka_source.groups.lookups import TopicsOf
from spark_kafka_source.groups.member import NO_GENERATION, NO_MEMBER_ID, Member
from spark_kafka_source.groups.participant import (
    LONGEST_FAREWELL_MS,
    UNTIL_WOKEN_SECONDS,
    Outgoing,
    Participant,
    Step,
)
from spark_kafka_source.groups.reactions import Reaction
from spark_kafka_source.net import Conversation, Deadline
from spark_kafka_source.protocol.messages.consumer_protocol import PROTOCOL_TYPE
from spark_kafka_source.protocol.messages.membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from spark_kafka_source.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

# The coordinator answers JoinGroup once all members have joined, or when the rebalance timeout
# ends.
_AFTER_REBALANCE_TIMEOUT_MS = 5_000
_INCONSISTENT = error_named("INCONSISTENT_GROUP_PROTOCOL").code


class ClassicParticipant(Participant):
    """A member of the classic protocol. `topics_of` returns the partitions to divide."""

    def __init__(
        self,
        config: GroupConfig,
        assignors: Sequence[Assignor],
        listener: RebalanceListener,
        topics_of: TopicsOf,
        retry: Retry,
        *,
        metadata_max_age_ms: int = 300_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(config, listener, retry, clock)
        if not assignors:
            option = "kafka.partition.assignment.strategy"
            raise ConfigurationError(option, "is empty", "Name an assignor, as in 'range'")
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._topics_of = topics_of
        self._max_age_seconds = metadata_max_age_ms / 1000
        self._state = State.UNJOINED
        self._member_id = NO_MEMBER_ID
        self._generation_id = NO_GENERATION
        self._protocol_name = ""
        self._joined_with: frozenset[str] = frozenset()
        self._rejoin_reason: str | None = None
        self._join_reason: str | None = None
        self._sync = SyncGroupRequest()
        self._assigned = Assignment(())
        self._subscription: frozenset[str] = frozenset()
        self._heartbeat_at_seconds = 0.0
        # Only the leader watches the topics.
        self._watch: TopicWatch | None = None

    @property
    def is_cooperative(self) -> bool:
        """Whether members keep partitions during a rebalance: true if all assignors support it."""
        assignors = self._assignors.values()
        return all(each.protocol is RebalanceProtocol.COOPERATIVE for each in assignors)

    @property
    def state(self) -> State:
        """State of the member."""
        return self._state

    @property
    def member(self) -> Member | None:
        """Identity of the member.

        None while it has no generation, or while it is joining another.
        """
        with self.changed:
            between = (State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE)
            if self._generation_id == NO_GENERATION or self._state in between:
                return None
            return Member(
                self._group_id, self._member_id, self._generation_id, self._group_instance_id
            )

    def _after(self, event: Event) -> bool:
        """Apply the event. Return False if it came too late to matter."""
        found = TRANSITIONS.get((self._state, event))
        if found is None:
            logger.debug("Group %r: %s, too late in %s", self._group_id, event, self._state)
            return False
        self._state, keep = found
        if keep is not Keep.ALL:
            self._generation_id, self._watch = NO_GENERATION, None
        if keep is Keep.NOTHING:
            self._member_id = NO_MEMBER_ID
        return True

    # -- in the thread that polls ------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str], regex: str | None = None) -> None:
        """Subscribe to topics by name.

        Raises `LocalError` for a pattern: the coordinator cannot read one in the classic protocol.
        """
        if regex is not None:
            raise LocalError("the classic protocol knows topics by name: match patterns before it")
        with self.changed:
            self._subscription = frozenset(topics)

    def rejoin(self, reason: str) -> None:
        """Make the group divide the partitions again, from the next poll on."""
        with self.changed:
            self._rejoin_reason = reason

    def look_at_topics(self) -> None:
        """Make a leader look at its topics now. Any other member does nothing."""
        with self.changed:
            if self._watch is not None:
                self._watch.look_now()
                self.to_coordinator.wake()

    def next_step(self) -> Step | None:
        """Return the next step: give up partitions before joining, or take over an assignment."""
        with self.changed:
            if self._state is State.ASSIGNED:
                return Step(self._take_over, self.assignment - frozenset(self._assigned.partitions))
            if self._state is State.UNJOINED and self._subscription:
                return Step(self._prepare, joins=True)
            if self._state is State.STABLE and self._wants_to_rejoin():
                return Step(self._prepare, self._given_up_before_joining(), joins=True)
            return None

    def _given_up_before_joining(self) -> frozenset[TopicPartition]:
        if not self.is_cooperative:
            return self.assignment
        return frozenset(each for each in self.assignment if each.topic not in self._subscription)

    def _wants_to_rejoin(self) -> bool:
        if self._subscription != self._joined_with:
            self._rejoin_reason = self._rejoin_reason or "the subscription has changed"
        return self._rejoin_reason is not None

    async def _prepare(self) -> None:
        first_error = FirstError()
        with self.changed:
            was_in_generation = self._generation_id != NO_GENERATION
        if not was_in_generation:
            await self._lose(first_error)
        else:
            dropped = self._given_up_before_joining()
            # With eager assignors the listener is called even without partitions, as in Kafka.
            if dropped or not self.is_cooperative:
                await first_error.tell(self._listener.revoked, dropped)
            self.assignment -= dropped
        with self.changed:
            is_in_generation = self._generation_id != NO_GENERATION
            # The member may have lost its partitions meanwhile. It must tell the listener of that
            # first.
            if is_in_generation or not self.assignment:
                self._join_reason, self._rejoin_reason = self._rejoin_reason, None
                self._joined_with = self._subscription
                self._after(Event.PREPARED)
                self.to_coordinator.wake()
        first_error.reraise()

    async def _lose(self, first_error: FirstError) -> None:
        if self.assignment:
            await first_error.tell(self._listener.lost, self.assignment)
            self.assignment = frozenset()

    async def _take_over(self) -> None:
        first_error = FirstError()
        with self.changed:
            if self._state is not State.ASSIGNED:
                return
            assigned, generation_id = self._assigned, self._generation_id
        partitions = frozenset(assigned.partitions)
        if {each.topic for each in partitions} <= self._subscription:
            revoked = self.assignment - partitions
            if revoked:
                await first_error.tell(self._listener.revoked, revoked)
                self.rejoin("gave up partitions that others are to get")
            assignor = self._assignors[self._protocol_name]
            await first_error.call(assignor.on_assignment, assigned, generation_id)
            added = partitions - self.assignment
            self.assignment = partitions
            await first_error.tell(self._listener.assigned, added)
        else:
            self.rejoin("the assignment is that of an older subscription")
        with self.changed:
            self._after(Event.TAKEN_OVER)
        first_error.reraise()

    async def leave(self, deadline: Deadline, reason: str) -> None:
        """Give up all partitions, and tell the coordinator unless the member is static."""
        first_error = FirstError()
        if self.assignment:
            told = self._listener.lost if self.member is None else self._listener.revoked
            await first_error.tell(told, self.assignment)
            self.assignment = frozenset()
        with self.changed:
            self._subscription = self._joined_with = frozenset()
            self._rejoin_reason = self._failure = None
            self._go(deadline, reason)
        first_error.reraise()

    def _go(self, deadline: Deadline, reason: str) -> None:
        if self._member_id != NO_MEMBER_ID and self._group_instance_id is None:
            identity = MemberIdentity(self._member_id, reason=reason)
            self._say_farewell(LeaveGroupRequest(self._group_id, members=[identity]), deadline)
        self._asking = None
        self._after(Event.LEFT)

    # -- in the thread that talks to the coordinator -----------------------------------------------

    def _next(self, now_seconds: float) -> Outgoing | float:
        if self._state is State.PREPARING_REBALANCE:
            return Outgoing(self._join_request(), self._rebalance_deadline(), is_held=True)
        if self._state is State.COMPLETING_REBALANCE:
            return Outgoing(self._sync, self._rebalance_deadline(), is_held=True)
        if self._state in (State.UNJOINED, State.FENCED):
            return UNTIL_WOKEN_SECONDS
        wait_seconds = self._heartbeat_at_seconds - now_seconds
        if wait_seconds <= 0:
            return Outgoing(
                HeartbeatRequest(
                    self._group_id, self._generation_id, self._member_id, self._group_instance_id
                ),
                Deadline.after_ms(self.config.session_timeout_ms),
            )
        if self._watch is not None and self._state is State.STABLE:
            wait_seconds = min(wait_seconds, max(self._watch.due_seconds - now_seconds, 0.0))
        return wait_seconds

    def _rebalance_deadline(self) -> Deadline:
        return Deadline.after_ms(self.config.max_poll_interval_ms + _AFTER_REBALANCE_TIMEOUT_MS)

    def _join_request(self) -> JoinGroupRequest:
        topics = tuple(sorted(self._joined_with))
        return JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=self.config.session_timeout_ms,
            rebalance_timeout_ms=self.config.max_poll_interval_ms,
            member_id=self._member_id,
            group_instance_id=self._group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequestProtocol(name, self._subscription_for(assignor, topics).encode())
                for name, assignor in self._assignors.items()
            ],
            reason=self._join_reason,
        )

    def _subscription_for(self, assignor: Assignor, topics: tuple[str, ...]) -> Subscription:
        user_data = assignor.user_data(topics)
        check_user_data(assignor.name, user_data)
        return Subscription(
            topics=topics,
            user_data=user_data,
            owned=tuple(sorted(self.assignment)),
            generation_id=self._generation_id,
            rack_id=self.config.client_rack or None,
        )

    async def answered(self, request: Any, response: Any) -> None:
        """Take in the coordinator's answer. The caller gives errors raised here to `failed`."""
        await _TAKE_IN[type(request)](self, request, response)

    async def _joined(self, request: JoinGroupRequest, response: JoinGroupResponse) -> None:
        if response.error_code == error_named("MEMBER_ID_REQUIRED").code:
            with self.changed:
                if self.wanted(request):
                    self._member_id = response.member_id
        self._check(response.error_code, "JoinGroup")
        self._check_protocol("JoinGroup", response.protocol_type, PROTOCOL_TYPE)
        if response.protocol_name not in self._assignors:
            self._check(_INCONSISTENT, f"JoinGroup with assignor {response.protocol_name!r}")
        watch, assignments = None, list[SyncGroupRequestAssignment]()
        if response.leader == response.member_id:
            assignor = self._assignors[response.protocol_name or ""]
            divided, assignments = await divide(
                response, assignor, self._topics_of, is_cooperative=self.is_cooperative
            )
            watch = self._watch_of(divided)
        with self.changed:
            if not self.wanted(request) or not self._after(Event.JOINED):
                return
            self._member_id, self._generation_id = response.member_id, response.generation_id
            self._protocol_name = response.protocol_name or ""
            self._watch = watch
            self._sync = SyncGroupRequest(
                self._group_id,
                response.generation_id,
                response.member_id,
                self._group_instance_id,
                PROTOCOL_TYPE,
                response.protocol_name,
                assignments,
            )

    def _check_protocol(self, what: str, found: str | None, expected: str) -> None:
        """Check the protocol in an answer.

        Before JoinGroup v7 and SyncGroup v5 there is none (KIP-559).
        """
        if found is not None and found != expected:
            self._check(_INCONSISTENT, what, f"found {found!r}, expected {expected!r}")

    async def _synced(self, request: SyncGroupRequest, response: SyncGroupResponse) -> None:
        self._check(response.error_code, "SyncGroup")
        self._check_protocol("SyncGroup", response.protocol_type, PROTOCOL_TYPE)
        self._check_protocol("SyncGroup", response.protocol_name, request.protocol_name or "")
        # The assignment has no bytes at all if the leader does not know the member.
        empty = not response.assignment
        assigned = Assignment(()) if empty else Assignment.decode(response.assignment)
        with self.changed:
            if self.wanted(request) and self._after(Event.SYNCED):
                self._assigned = assigned
                self._succeeded()
                self._heard()
                self.to_consumer.wake()

    def _heard(self) -> None:
        self._heartbeat_at_seconds = self._clock() + self.config.heartbeat_interval_ms / 1000

    async def _beaten(self, request: HeartbeatRequest, response: HeartbeatResponse) -> None:
        self._check(response.error_code, "Heartbeat")
        with self.changed:
            if self.wanted(request):
                self._succeeded()
                self._heard()

    async def _left(self, _: LeaveGroupRequest, response: LeaveGroupResponse) -> None:
        self._check(response.error_code, "LeaveGroup")
        for each in response.members:
            self._check(each.error_code, "LeaveGroup")
        with self.changed:
            self._has_said_farewell()

    def _farewell_failed(self, farewell: Outgoing, error: Exception) -> None:
        leaving: Any = farewell.request
        if isinstance(error, UnsupportedVersionError) and leaving.members:
            # Before v3 LeaveGroup names one member only.
            alone = LeaveGroupRequest(self._group_id, leaving.members[0].member_id)
            self._say_farewell(alone, farewell.deadline)
        else:
            super()._farewell_failed(farewell, error)

    def _react(self, found: Reaction, request: Any, error: Exception) -> None:
        if found is Reaction.RETRY:
            self._pause()
            self._after(Event.JOIN_AGAIN)
        elif found is Reaction.JOIN_AGAIN:
            self._pause(first_is_free=True)
            self._after(Event.JOIN_AGAIN)
        elif found is Reaction.REBALANCE:
            if self._state in (State.ASSIGNED, State.STABLE):
                self._rejoin_reason = self._rejoin_reason or "the group is rebalancing"
            self._succeeded()
            self._heard()
        elif found in _LOST:
            self._pause(first_is_free=True)
            self._after(_LOST[found])
        else:
            self._after(Event.FAILED)
        if found in (Reaction.RAISE, Reaction.FENCED):
            self._fail(error)
        self.to_consumer.wake()

    def _break(self, error: Exception) -> None:
        self._after(Event.FAILED)
        self._fail(error)

    @property
    def _is_fenced(self) -> bool:
        return self._state is State.FENCED

    @property
    def _is_member(self) -> bool:
        return self._state in (State.COMPLETING_REBALANCE, State.ASSIGNED, State.STABLE)

    def _expire(self) -> None:
        self._warn_of_expiry()
        self._go(Deadline.after_ms(LONGEST_FAREWELL_MS), "the consumer did not poll in time")
        self.to_consumer.wake()

    def _watch_of(self, divided: Cluster) -> TopicWatch:
        # Racks matter only to a leader that is in a rack itself, as in Kafka's client.
        by_rack = bool(self.config.client_rack)
        return TopicWatch(divided, self._max_age_seconds, self._retry, self._clock, by_rack=by_rack)

    async def prepare(self) -> None:
        """Let the leader join again if the partitions of its topics have changed."""
        with self.changed:
            watch = self._watch
            is_stable = self._state is State.STABLE
            if watch is None or not is_stable or watch.due_seconds > self._clock():
                return
            due = watch.due_topics()
        try:
            # Heartbeats wait for the answer, so the session must not end before it.
            longest_ms = min(LONGEST_LOOKUP_MS, self.config.session_timeout_ms // 3)
            cluster = await self._topics_of(due, Deadline.after_ms(longest_ms))
        except KafkaError as error:
            logger.info("Group %r: its topics could not be looked up: %s", self._group_id, error)
            return
        with self.changed:
            changed = watch.changed(due, cluster)
            if changed and self._watch is watch:
                self._rejoin_reason = f"the partitions of {', '.join(changed)} have changed"
                self.to_consumer.wake()


_LOST: Mapping[Reaction, Event] = {
    Reaction.LOSE_GENERATION: Event.GENERATION_LOST,
    Reaction.LOSE_MEMBER: Event.MEMBER_LOST,
    Reaction.FENCED: Event.FENCED,
}
_TAKE_IN: Mapping[type, Callable[[ClassicParticipant, Any, Any], Conversation[None]]] = {
    JoinGroupRequest: ClassicParticipant._joined,
    SyncGroupRequest: ClassicParticipant._synced,
    HeartbeatRequest: ClassicParticipant._beaten,
    LeaveGroupRequest: ClassicParticipant._left,
}
