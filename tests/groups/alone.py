"""A member without connection, thread or clock. A test gives the coordinator's answers."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, TypeVar

from spark_kafka_source.client import Retry
from spark_kafka_source.errors import ErrorCode
from spark_kafka_source.groups import GroupConfig
from spark_kafka_source.groups.assignors import Assignment, Cluster, RebalanceProtocol, Subscription
from spark_kafka_source.groups.classic import ClassicParticipant
from spark_kafka_source.groups.classic_states import State
from spark_kafka_source.groups.participant import Outgoing
from spark_kafka_source.net import Deadline, run
from spark_kafka_source.protocol import Request
from spark_kafka_source.protocol.messages.membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from spark_kafka_source.topic_partition import TopicPartition
from tests.client.clock import Clock
from tests.groups.assignors.topics import topics
from tests.groups.members import Deal, Told

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
Q = TypeVar("Q", bound=Request[Any])
RETRY = Retry(backoff_ms=1_000, backoff_max_ms=1_000)


@dataclass
class Alone:
    """A member that is alone in its group, and the calls to its listener."""

    cooperative: bool = False
    config: dict[str, Any] = field(default_factory=dict)
    cluster: Cluster = field(default_factory=lambda: topics(t=2))

    def __post_init__(self) -> None:
        eager, cooperative = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE
        self.deal = Deal(cooperative if self.cooperative else eager)
        self.told, self.clock = Told(), Clock()
        self.participant = ClassicParticipant(
            GroupConfig(group_id="g", **self.config),
            [self.deal],
            self.told,
            self._topics_of,
            RETRY,
            metadata_max_age_ms=60_000,
            clock=self.clock.monotonic,
        )
        self.participant.subscribe(["t"])

    async def _topics_of(self, topics: Collection[str], _: Deadline) -> Cluster:
        return {each: self.cluster[each] for each in topics if each in self.cluster}

    def next_due(self) -> Outgoing | float:
        run(self.participant.prepare())
        return self.participant.next_request()

    def poll(self) -> None:
        self.participant.begin_poll()
        while (step := self.participant.next_step()) is not None:
            run(step.run())

    def next(self, request_type: type[Q]) -> Q:
        """Return the next request, after any pause. Check its type."""
        for _ in range(10):
            due = self.next_due()
            if isinstance(due, Outgoing):
                assert isinstance(due.request, request_type), due
                return due.request
            assert due < 1_000, f"nothing is due, {request_type} was expected"
            self.clock.now_seconds += due
        raise AssertionError(f"no {request_type} within 10 pauses")

    def idles(self) -> bool:
        """Return whether the member sends nothing before its next poll."""
        due = self.next_due()
        return isinstance(due, float) and due >= 1_000

    def answer(self, request: Request[Any], response: Any) -> None:
        """Answer a request, as the member's thread does."""
        try:
            run(self.participant.answered(request, response))
        except Exception as error:
            self.participant.failed(request, error)

    def refuse(self, request: Request[Any], error: ErrorCode) -> None:
        self.answer(request, request.RESPONSE(error_code=error.code))  # type: ignore[call-arg]

    def join(self, generation_id: int = 1, member_id: str = "m") -> None:
        """Do JoinGroup and its answer, as the leader or not."""
        request = self.next(JoinGroupRequest)
        mine = request.protocols[0].metadata
        members = [JoinGroupResponseMember(member_id, request.group_instance_id, mine)]
        response = JoinGroupResponse(
            generation_id=generation_id,
            protocol_type="consumer",
            protocol_name="deal",
            leader=member_id,
            member_id=member_id,
            members=members,
        )
        self.answer(request, response)

    def sync(self, *partitions: TopicPartition) -> None:
        request = self.next(SyncGroupRequest)
        assignment = Assignment(partitions).encode() if partitions else b""
        self.answer(request, SyncGroupResponse(0, 0, "consumer", "deal", assignment))

    def beat(self) -> None:
        self.answer(self.next(HeartbeatRequest), HeartbeatResponse())

    def settle(self, *partitions: TopicPartition, generation_id: int = 1) -> None:
        """Join, get these partitions, and take them over."""
        self.poll()
        self.join(generation_id)
        self.sync(*partitions)
        self.poll()

    def leave(self) -> LeaveGroupRequest:
        run(self.participant.leave(Deadline.after_ms(60_000), "test"))
        return self.next(LeaveGroupRequest)

    def state(self) -> State:
        return self.participant.state

    def has_left(self) -> bool:
        return self.participant.has_left

    def subscription(self) -> Subscription:
        """Return the subscription in the next JoinGroup."""
        return Subscription.decode(self.next(JoinGroupRequest).protocols[0].metadata)

    def close(self) -> None:
        self.participant.to_consumer.close()
        self.participant.to_coordinator.close()


LEFT = LeaveGroupResponse()
