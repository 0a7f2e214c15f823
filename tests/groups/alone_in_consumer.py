"""A KIP-848 member without connection, thread or clock, as in `alone`."""

import uuid
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from spark_kafka_source.errors import ErrorCode
from spark_kafka_source.groups import GroupConfig, Member
from spark_kafka_source.groups.consumer import ConsumerMembership, ConsumerState
from spark_kafka_source.net import Deadline, run
from spark_kafka_source.protocol.messages.membership import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from tests.client.clock import Clock
from tests.groups.alone import Coordinator
from tests.groups.members import Told

T, U = uuid.UUID(int=1), uuid.UUID(int=2)


@dataclass
class AloneInConsumer:
    """A member, the topics' names by id, and the calls to its listener."""

    config: dict[str, Any] = field(default_factory=dict)
    interval_ms: int = 5_000
    names: dict[uuid.UUID, str] = field(default_factory=lambda: {T: "t", U: "u"})

    def __post_init__(self) -> None:
        self.told, self.clock = Told(), Clock()
        self.coordinator = Coordinator(self.clock)
        member = ConsumerMembership(
            GroupConfig(group_id="g", **self.config),
            self.told,
            self.coordinator,  # type: ignore[arg-type]
            self._names_of,
            clock=self.clock.monotonic,
        )
        self.membership = self.coordinator.of(member)
        self.idles = self.coordinator.idles
        self.membership.subscribe(["t"])

    async def _names_of(self, ids: Collection[uuid.UUID], _: Deadline) -> dict[uuid.UUID, str]:
        return {each: self.names[each] for each in ids if each in self.names}

    def poll(self) -> None:
        run(self.membership.poll())

    def next(self) -> ConsumerGroupHeartbeatRequest:
        """Return the next heartbeat, after any pause."""
        request = self.coordinator.next()
        assert isinstance(request, ConsumerGroupHeartbeatRequest)
        return request

    def answer(
        self,
        request: ConsumerGroupHeartbeatRequest,
        epoch: int = 1,
        assigned: dict[uuid.UUID, list[int]] | None = None,
        **more: Any,
    ) -> None:
        """Answer a heartbeat, as the member's thread does."""
        response = ConsumerGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=epoch,
            heartbeat_interval_ms=self.interval_ms,
            assignment=None
            if assigned is None
            else Assignment([TopicPartitions(each, found) for each, found in assigned.items()]),
            **more,
        )
        self.coordinator.answer(request, response)

    def refuse(self, request: ConsumerGroupHeartbeatRequest, error: ErrorCode) -> None:
        self.answer(request, error_code=error.code, error_message="because")

    def settle(self, assigned: dict[uuid.UUID, list[int]], epoch: int = 1) -> None:
        """Get this assignment, take it over, and confirm it."""
        self.poll()
        self.answer(self.next(), epoch, assigned)
        self.poll()
        acknowledging = self.next()
        says_all = acknowledging.subscribed_topic_names is not None
        # The coordinator answers a full heartbeat with the full assignment.
        self.answer(acknowledging, epoch, assigned if says_all else None)
        assert self.state() is ConsumerState.STABLE

    def state(self) -> Enum:
        return self.membership.state

    def member(self) -> Member | None:
        return self.membership.member

    def has_left(self) -> bool:
        return self.membership._leave is None

    def leave(self) -> None:
        run(self.membership.leave(Deadline.after_ms(60_000), "test"))

    def close(self) -> None:
        self.membership._poll_wakeup.close()
        self.coordinator.close()
