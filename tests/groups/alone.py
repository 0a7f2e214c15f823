"""A member without connection, thread or clock. A test gives the coordinator's answers."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

from spark_kafka_source.client import Retry
from spark_kafka_source.errors import ErrorCode
from spark_kafka_source.groups import GroupConfig
from spark_kafka_source.groups.assignors import Assignment, Cluster, RebalanceProtocol, Subscription
from spark_kafka_source.groups.classic import ClassicMembership
from spark_kafka_source.groups.coordinator import InterruptedRequestError
from spark_kafka_source.groups.membership import Membership
from spark_kafka_source.net import Deadline, Running, Wakeup, run, wait_for
from spark_kafka_source.protocol import Request, Response
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
M = TypeVar("M", bound=Membership)
RETRY = Retry(backoff_ms=1_000, backoff_max_ms=1_000)


class Coordinator:
    """A coordinator whose answers a test gives. It takes the steps of the member's thread."""

    def __init__(self, clock: Clock) -> None:
        self.wakeup = Wakeup()
        self.is_interrupted = False
        self.asked: Request[Any] | None = None
        self._clock = clock
        self._running: Running[None] | None = None
        self._answer: Response | Exception | None = None

    def of(self, member: M) -> M:
        """Return the member, which has no thread."""
        self._member = member
        member._start = lambda: None  # type: ignore[method-assign]
        return member

    def pause_seconds(self, tries: int) -> float:
        return RETRY.pause_seconds(tries)

    async def wait(self, seconds: float) -> None:
        await wait_for((), Deadline(self._clock.now_seconds + seconds, 0))

    def interrupt(self) -> None:
        self.is_interrupted = True

    def close(self) -> None:
        self.wakeup.close()

    def next_due(self) -> Request[Any] | float:
        """Return the request that waits for its answer, or the seconds until one may be sent."""
        while True:
            if self._running is None or self._running.is_done:
                self._running = Running(self._member._do_due_work())
            self._go_on(self._running)
            if self._running.is_done:
                continue
            if self.asked is not None:
                return self.asked
            wait_seconds = self._running.wait.until.at_seconds - self._clock.now_seconds
            if wait_seconds > 0:
                # Whatever a test does before the next call may change what is due.
                self._running.give_up()
                return wait_seconds

    def next(self) -> Request[Any]:
        """Return the next request, after any pause."""
        for _ in range(10):
            due = self.next_due()
            if isinstance(due, Request):
                return due
            assert due < 1_000, "nothing is due"
            self._clock.now_seconds += due
        raise AssertionError("no request within 10 pauses")

    def idles(self) -> bool:
        """Return whether the member sends nothing before its next poll."""
        due = self.next_due()
        return isinstance(due, float) and due >= 1_000

    def answer(self, request: Request[Any], answer: Response | Exception) -> None:
        """Answer a request, or let it fail. An answer that nobody waits for comes too late."""
        if self._running is not None and not self._running.is_done and request is self.asked:
            self._answer = answer
            self._go_on(self._running)

    def awaits(self, request: Request[Any]) -> bool:
        """Return whether the member still waits for the answer to this request."""
        return request is self.asked and not self.is_interrupted

    def _go_on(self, running: Running[None]) -> None:
        running.go_on()
        if running.is_done:
            try:
                running.result()
            except Exception as error:
                self._member._handle_error(error)

    async def ask(
        self,
        request: Request[Any],
        deadline: Deadline,
        check: Callable[[Any], None],
        *,
        is_held: bool = False,
    ) -> Any:
        self.asked = request
        while self._answer is None:
            await wait_for((), deadline)
            if self.is_interrupted:
                raise InterruptedRequestError
        answer, self._answer = self._answer, None
        if isinstance(answer, Exception):
            raise answer
        check(answer)
        return answer


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
        self.coordinator = Coordinator(self.clock)
        member = ClassicMembership(
            GroupConfig(group_id="g", **self.config),
            [self.deal],
            self.told,
            self.coordinator,  # type: ignore[arg-type]
            self._topics_of,
            metadata_max_age_ms=60_000,
            clock=self.clock.monotonic,
        )
        self.membership = self.coordinator.of(member)
        self.idles = self.coordinator.idles
        self.answer = self.coordinator.answer
        self.membership.subscribe(["t"])

    async def _topics_of(self, topics: Collection[str], _: Deadline) -> Cluster:
        return {each: self.cluster[each] for each in topics if each in self.cluster}

    def next_due(self) -> Request[Any] | float:
        return self.coordinator.next_due()

    def poll(self) -> None:
        run(self.membership.poll())

    def next(self, request_type: type[Q]) -> Q:
        """Return the next request, after any pause. Check its type."""
        request = self.coordinator.next()
        assert isinstance(request, request_type), request
        return request

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
        run(self.membership.leave(Deadline.after_ms(60_000), "test"))
        return self.next(LeaveGroupRequest)

    def state(self) -> Enum:
        return self.membership.state

    def has_left(self) -> bool:
        return self.membership._leave is None

    def subscription(self) -> Subscription:
        """Return the subscription in the next JoinGroup."""
        return Subscription.decode(self.next(JoinGroupRequest).protocols[0].metadata)

    def close(self) -> None:
        self.membership._poll_wakeup.close()
        self.coordinator.close()


LEFT = LeaveGroupResponse()
