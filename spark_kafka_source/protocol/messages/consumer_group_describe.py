"""ConsumerGroupDescribe: the members of groups that use the protocol of KIP-848."""

import uuid

from spark_kafka_source.protocol.declaration import Request, Response, array, message, wire
from spark_kafka_source.protocol.wire import BOOLEAN, INT8, INT16, INT32, STRING, UUID

# The value of the authorized operations if the request did not ask for them.
_NOT_ASKED_FOR = -0x80000000


@message
class TopicPartitions:
    """Partitions of one topic."""

    topic_id: uuid.UUID = wire(UUID, "0+")
    topic_name: str = wire(STRING, "0+")
    partitions: list[int] = wire(array(INT32), "0+")


@message
class Assignment:
    """Partitions that a member owns, or its target partitions."""

    topic_partitions: list[TopicPartitions] = wire(array(TopicPartitions), "0+")


@message
class Member:
    """Member. `member_type` is 0 if it uses the classic protocol, else 1 (KIP-1099)."""

    member_id: str = wire(STRING, "0+")
    instance_id: str | None = wire(STRING, "0+", nullable="0+", default=None)
    rack_id: str | None = wire(STRING, "0+", nullable="0+", default=None)
    member_epoch: int = wire(INT32, "0+")
    client_id: str = wire(STRING, "0+")
    client_host: str = wire(STRING, "0+")
    subscribed_topic_names: list[str] = wire(array(STRING), "0+")
    subscribed_topic_regex: str | None = wire(STRING, "0+", nullable="0+", default=None)
    assignment: Assignment = wire(Assignment, "0+")
    target_assignment: Assignment = wire(Assignment, "0+")
    member_type: int = wire(INT8, "1+", default=-1, ignorable=True)


@message
class DescribedGroup:
    """Group. GROUP_ID_NOT_FOUND also stands for a group of the classic protocol."""

    error_code: int = wire(INT16, "0+")
    error_message: str | None = wire(STRING, "0+", nullable="0+", default=None)
    group_id: str = wire(STRING, "0+")
    group_state: str = wire(STRING, "0+")
    group_epoch: int = wire(INT32, "0+")
    assignment_epoch: int = wire(INT32, "0+")
    assignor_name: str = wire(STRING, "0+")
    members: list[Member] = wire(array(Member), "0+")
    authorized_operations: int = wire(INT32, "0+", default=_NOT_ASKED_FOR)


@message
class ConsumerGroupDescribeResponse(Response):
    """Description of each group."""

    throttle_time_ms: int = wire(INT32, "0+")
    groups: list[DescribedGroup] = wire(array(DescribedGroup), "0+")


@message
class ConsumerGroupDescribeRequest(Request[ConsumerGroupDescribeResponse]):
    """Request for the members of these groups. Send it to their coordinator."""

    KEY, VERSIONS, FLEXIBLE = 69, "0-1", "0+"
    group_ids: list[str] = wire(array(STRING), "0+")
    include_authorized_operations: bool = wire(BOOLEAN, "0+")
