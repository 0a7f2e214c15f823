"""The classic group protocol: the members join, and one of them divides the partitions.

https://cwiki.apache.org/confluence/display/KAFKA/Kafka+Client-side+Assignment+Proposal, with
cooperative rebalances (KIP-429), member ids from the coordinator (KIP-394), static members
(KIP-345), reasons (KIP-800) and leaders that need not assign (KIP-814). The module is long because
the thread that polls and the thread that asks the coordinator share one state, told here in full.
"""

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from enum import Enum
from functools import partial

from spark_kafka_source.errors import KafkaError, LocalError, UnsupportedVersionError, error_named
from spark_kafka_source.groups.assignors import (
    Assignment,
    Assignor,
    RebalanceProtocol,
    Subscription,
)
from spark_kafka_source.groups.assignors.custom import check_user_data
from spark_kafka_source.groups.config import GroupConfig
from spark_kafka_source.groups.coordinator import Coordinator, InterruptedRequestError, R
from spark_kafka_source.groups.error_reactions import Reaction
from spark_kafka_source.groups.leader import TopicWatch, divide
from spark_kafka_source.groups.listener import FirstError, RebalanceListener
from spark_kafka_source.groups.lookups import LONGEST_LOOKUP_MS, TopicsOf
from spark_kafka_source.groups.member import NO_GENERATION, NO_MEMBER_ID, Member
from spark_kafka_source.groups.membership import (
    UNTIL_WOKEN_SECONDS,
    IsReady,
    Membership,
    SendLeave,
    Step,
)
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Conversation, Deadline
from spark_kafka_source.protocol import Request
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

logger = logger_of(__name__)

# The coordinator answers JoinGroup once all members have joined, or when the rebalance timeout
# ends.
_AFTER_REBALANCE_TIMEOUT_MS = 5_000
_INCONSISTENT = error_named("INCONSISTENT_GROUP_PROTOCOL").code
_MEMBER_ID_REQUIRED = error_named("MEMBER_ID_REQUIRED").code


class State(Enum):
    """States as in Kafka's `MemberState`, with FENCED and ASSIGNED added."""

    UNJOINED = "in no generation; the next poll begins to join one"
    PREPARING_REBALANCE = "JoinGroup: the coordinator gathers the members"
    COMPLETING_REBALANCE = "SyncGroup: the leader divides the partitions"
    FENCED = "another member has its instance id; it can only leave"
    ASSIGNED = "in a generation; the next poll takes its assignment over"
    STABLE = "in a generation, with its assignment"


_JOINING = (State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE)
_IN_GENERATION = (State.ASSIGNED, State.STABLE)


# How a poll or an answer changes the state:
#
#              poll                 JoinGroup's answer               SyncGroup's answer
#   UNJOINED ------> PREPARING_REBALANCE -----> COMPLETING_REBALANCE -----> ASSIGNED
#      ^                  ^      ^                       |                      | poll takes the
#      |                  |      +-- error: try again ---+                      | assignment over
#      |                  |                                                     v
#      |                  +------- poll, if the member has to rejoin -------- STABLE
#      |
#      +-- from any state: the generation or the member id is lost, no poll came in time,
#          or a join failed with an error that the next poll raises
#
#   FENCED: from any state, if another member has this instance id
class ClassicMembership(Membership):
    """A member of the classic protocol. `topics_of` returns the partitions to divide."""

    def __init__(
        self,
        config: GroupConfig,
        assignors: Sequence[Assignor],
        listener: RebalanceListener,
        coordinator: Coordinator,
        topics_of: TopicsOf,
        *,
        is_ready: IsReady = lambda _: True,
        metadata_max_age_ms: int = 300_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(config, listener, coordinator, is_ready, clock)
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._topics_of = topics_of
        self._max_age_seconds = metadata_max_age_ms / 1000
        self.state = State.UNJOINED
        self._member_id = NO_MEMBER_ID
        self._generation_id = NO_GENERATION
        self._protocol_name = ""
        self._joined_topics: frozenset[str] = frozenset()
        self._rejoin_reason: str | None = None
        self._join_reason: str | None = None
        self._received = Assignment(())
        self._subscription: frozenset[str] = frozenset()
        # Only the leader watches the topics.
        self._watch: TopicWatch | None = None

    @property
    def is_cooperative(self) -> bool:
        """Whether members keep partitions during a rebalance: true if all assignors support it."""
        assignors = self._assignors.values()
        return all(assignor.protocol is RebalanceProtocol.COOPERATIVE for assignor in assignors)

    @property
    def member(self) -> Member | None:
        """Identity of the member.

        None while it has no generation, or while it is joining another.
        """
        with self._changed:
            if self._generation_id == NO_GENERATION or self.state in _JOINING:
                return None
            return Member(
                self._group_id, self._member_id, self._generation_id, self._group_instance_id
            )

    # -- in the thread that polls ------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str] = (), regex: str | None = None) -> None:
        """Subscribe to topics by name.

        Raises `LocalError` for a pattern: the coordinator cannot read one in the classic protocol.
        """
        if regex is not None:
            raise LocalError("the classic protocol knows topics by name: match patterns before it")
        with self._changed:
            self._subscription = frozenset(topics)

    def rejoin(self, reason: str) -> None:
        """Make the group divide the partitions again, from the next poll on."""
        with self._changed:
            self._rejoin_reason = reason

    def look_at_topics(self) -> None:
        """Make a leader look at its topics now. Any other member does nothing."""
        with self._changed:
            if self._watch is not None:
                self._watch.look_now()
                self._coordinator.wakeup.wake()

    def _next_step(self) -> Step | None:
        """Give up partitions before joining, or take over an assignment."""
        with self._changed:
            if self.state is State.ASSIGNED:
                revoked = self.assignment - frozenset(self._received.partitions)
                return Step(self._take_assignment, revoked)
            if self.state is State.UNJOINED and self._subscription:
                return Step(self._prepare_to_join, joins=True)
            if self.state is State.STABLE and self._wants_to_rejoin():
                return Step(self._prepare_to_join, self._given_up_before_joining(), joins=True)
            return None

    def _given_up_before_joining(self) -> frozenset[TopicPartition]:
        if not self.is_cooperative:
            return self.assignment
        return frozenset(
            where for where in self.assignment if where.topic not in self._subscription
        )

    def _wants_to_rejoin(self) -> bool:
        if self._subscription != self._joined_topics:
            self._rejoin_reason = self._rejoin_reason or "the subscription has changed"
        return self._rejoin_reason is not None

    async def _prepare_to_join(self, first_error: FirstError) -> None:
        with self._changed:
            was_in_generation = self._generation_id != NO_GENERATION
        if not was_in_generation:
            await self._tell_lost(first_error)
        else:
            dropped = self._given_up_before_joining()
            # With eager assignors the listener is called even without partitions, as in Kafka.
            if dropped or not self.is_cooperative:
                await first_error.tell(self._listener.revoked, dropped)
            self.assignment -= dropped
        with self._changed:
            is_in_generation = self._generation_id != NO_GENERATION
            # The member may have lost its partitions meanwhile. It must tell the listener of that
            # first.
            if is_in_generation or not self.assignment:
                self._join_reason, self._rejoin_reason = self._rejoin_reason, None
                self._joined_topics = self._subscription
                if self.state in (State.UNJOINED, State.STABLE):
                    self.state = State.PREPARING_REBALANCE
                self._coordinator.wakeup.wake()

    async def _take_assignment(self, first_error: FirstError) -> None:
        with self._changed:
            if self.state is not State.ASSIGNED:
                return
            assigned, generation_id = self._received, self._generation_id
        partitions = frozenset(assigned.partitions)
        if {partition.topic for partition in partitions} <= self._subscription:
            revoked = self.assignment - partitions
            if revoked:
                await first_error.tell(self._listener.revoked, revoked)
                self.assignment -= revoked
                self.rejoin("gave up partitions that others are to get")
            assignor = self._assignors[self._protocol_name]
            await first_error.call(assignor.on_assignment, assigned, generation_id)
            before, self.assignment = self.assignment, partitions
            try:
                await first_error.tell(self._listener.assigned, partitions - before)
            except BaseException:  # A Ctrl-C or a cancellation. The next poll tells it again.
                self.assignment = before
                raise
        else:
            self.rejoin("the assignment is that of an older subscription")
        with self._changed:
            if self.state is State.ASSIGNED:
                self.state = State.STABLE

    def _unsubscribe(self) -> None:
        self.assignment, self._rejoin_reason = frozenset(), None
        self._subscription = self._joined_topics = frozenset()
        self._lose_place()

    # -- in the thread that talks to the coordinator -----------------------------------------------

    def _next_request(self) -> Conversation[None] | float:
        if self.state in _JOINING:
            return self._join(self._join_request())
        if self.state not in _IN_GENERATION:
            return UNTIL_WOKEN_SECONDS
        wait_seconds = self._heartbeat_seconds()
        if wait_seconds <= 0:
            return self._send_heartbeat()
        if self._watch is not None and self.state is State.STABLE:
            look_seconds = self._watch.due_seconds - self._clock()
            if look_seconds <= 0:
                return self._look_for_changes(self._watch, self._watch.due_topics())
            wait_seconds = min(wait_seconds, look_seconds)
        return wait_seconds

    async def _join(self, request: JoinGroupRequest) -> None:
        """Join the next generation, and get this member's assignment in it."""
        joined = await self._ask_with_all_members(request, self._check_joined)
        watch, assignments = None, list[SyncGroupRequestAssignment]()
        if joined.leader == joined.member_id:
            divided, assignments = await divide(
                joined,
                self._assignors[joined.protocol_name or ""],
                self._topics_of,
                is_cooperative=self.is_cooperative,
            )
            watch = TopicWatch(
                divided,
                self._max_age_seconds,
                self._coordinator.pause_seconds,
                self._clock,
                # Racks matter only to a leader that is in a rack itself, as in Kafka's client.
                by_rack=bool(self._config.client_rack),
            )
        with self._accepting_answer():
            self.state = State.COMPLETING_REBALANCE
            self._member_id, self._generation_id = joined.member_id, joined.generation_id
            self._protocol_name = joined.protocol_name or ""
            self._watch = watch
            if self._left_to_poll_seconds() <= 0:
                self._expire()
                raise InterruptedRequestError
        sync = SyncGroupRequest(
            self._group_id,
            joined.generation_id,
            joined.member_id,
            self._group_instance_id,
            PROTOCOL_TYPE,
            joined.protocol_name,
            assignments,
        )
        synced = await self._ask_with_all_members(sync, self._check_synced)
        # The assignment has no bytes at all if the leader does not know the member.
        empty = not synced.assignment
        assigned = Assignment(()) if empty else Assignment.decode(synced.assignment)
        with self._accepting_answer():
            self.state, self._received = State.ASSIGNED, assigned
            self._plan_heartbeat()
            self._poll_wakeup.wake()

    async def _ask_with_all_members(self, request: Request[R], check: Callable[[R], None]) -> R:
        """Send a request that the coordinator answers once all members have sent it."""
        longest_ms = self._config.max_poll_interval_ms + _AFTER_REBALANCE_TIMEOUT_MS
        return await self._coordinator.ask(
            request, Deadline.after_ms(longest_ms), check, is_held=True
        )

    def _join_request(self) -> JoinGroupRequest:
        topics = tuple(sorted(self._joined_topics))
        return JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=self._config.session_timeout_ms,
            rebalance_timeout_ms=self._config.max_poll_interval_ms,
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
            rack_id=self._config.client_rack or None,
        )

    def _check_joined(self, response: JoinGroupResponse) -> None:
        if response.error_code == _MEMBER_ID_REQUIRED:
            with self._accepting_answer():
                self._member_id = response.member_id
        self._check(response.error_code, "JoinGroup")
        self._check_protocol("JoinGroup", response.protocol_type, PROTOCOL_TYPE)
        if response.protocol_name not in self._assignors:
            self._check(_INCONSISTENT, f"JoinGroup with assignor {response.protocol_name!r}")

    def _check_synced(self, response: SyncGroupResponse) -> None:
        self._check(response.error_code, "SyncGroup")
        self._check_protocol("SyncGroup", response.protocol_type, PROTOCOL_TYPE)
        self._check_protocol("SyncGroup", response.protocol_name, self._protocol_name)

    def _check_protocol(self, what: str, found: str | None, expected: str) -> None:
        """Check the protocol in an answer.

        Before JoinGroup v7 and SyncGroup v5 there is none (KIP-559).
        """
        if found is not None and found != expected:
            self._check(_INCONSISTENT, what, f"found {found!r}, expected {expected!r}")

    async def _send_heartbeat(self) -> None:
        request = HeartbeatRequest(
            self._group_id, self._generation_id, self._member_id, self._group_instance_id
        )
        deadline = Deadline.after_ms(self._config.session_timeout_ms)
        await self._coordinator.ask(request, deadline, self._check_heartbeat)
        with self._accepting_answer():
            self._plan_heartbeat()

    def _check_heartbeat(self, response: HeartbeatResponse) -> None:
        self._check(response.error_code, "Heartbeat")

    def _how_to_leave(self, reason: str) -> SendLeave | None:
        if self._member_id == NO_MEMBER_ID or self._group_instance_id is not None:
            return None
        return partial(self._leave_group, MemberIdentity(self._member_id, reason=reason))

    async def _leave_group(self, member: MemberIdentity, deadline: Deadline) -> None:
        request = LeaveGroupRequest(self._group_id, members=[member])
        try:
            await self._coordinator.ask(request, deadline, self._check_left)
        except UnsupportedVersionError:  # Before v3 LeaveGroup names one member only.
            alone = LeaveGroupRequest(self._group_id, member.member_id)
            await self._coordinator.ask(alone, deadline, self._check_left)

    def _check_left(self, response: LeaveGroupResponse) -> None:
        for code in (response.error_code, *(member.error_code for member in response.members)):
            self._check(code, "LeaveGroup")

    def _react(self, reaction: Reaction) -> None:
        if reaction is Reaction.REBALANCE:
            if self.state in _IN_GENERATION:
                self._rejoin_reason = self._rejoin_reason or "the group is rebalancing"
        elif reaction is Reaction.LOSE_GENERATION:
            self._lose_generation()
        elif reaction is Reaction.LOSE_MEMBER:
            self._lose_place()
        elif reaction is Reaction.FENCED:
            self._lose_place()
            self.state = State.FENCED
        elif self.state in _JOINING:
            is_raised = reaction is Reaction.RAISE
            self.state = State.UNJOINED if is_raised else State.PREPARING_REBALANCE

    def _lose_place(self) -> None:
        self._lose_generation()
        self._member_id = NO_MEMBER_ID

    def _lose_generation(self) -> None:
        self.state, self._generation_id, self._watch = State.UNJOINED, NO_GENERATION, None

    @property
    def _is_fenced(self) -> bool:
        return self.state is State.FENCED

    @property
    def _is_member(self) -> bool:
        return self.state in _IN_GENERATION

    async def _look_for_changes(self, watch: TopicWatch, topics: Collection[str]) -> None:
        """Let the leader join again if the partitions of its topics have changed."""
        try:
            # Heartbeats wait for the answer, so the session must not end before it.
            longest_ms = min(LONGEST_LOOKUP_MS, self._config.session_timeout_ms // 3)
            cluster = await self._topics_of(topics, Deadline.after_ms(longest_ms))
        except KafkaError as error:
            logger.info("Group %r: its topics could not be looked up: %s", self._group_id, error)
            return
        with self._changed:
            changed = watch.changed(topics, cluster)
            if changed and self._watch is watch:
                self._rejoin_reason = f"the partitions of {', '.join(changed)} have changed"
                self._poll_wakeup.wake()
