"""Administration of groups: ListGroups (KIP-518, KIP-848), DescribeGroups, DeleteGroups.

And OffsetDelete. DescribeGroups is for groups of the classic protocol; `consumer_group_describe` is
for others.
"""

from spark_kafka_source.protocol.declaration import Request, Response, array, message, wire
from spark_kafka_source.protocol.wire import BOOLEAN, BYTES, INT16, INT32, STRING

# The value of the authorized operations if the request did not ask for them.
_NOT_ASKED_FOR = -0x80000000


@message
class ListedGroup:
    """Group in a list. It has a state from v4 on, and a type from v5 on."""

    group_id: str = wire(STRING, "0+")
    protocol_type: str = wire(STRING, "0+")
    group_state: str = wire(STRING, "4+", ignorable=True)
    group_type: str = wire(STRING, "5+", ignorable=True)


@message
class ListGroupsResponse(Response):
    """Groups that this broker coordinates."""

    throttle_time_ms: int = wire(INT32, "1+", ignorable=True)
    error_code: int = wire(INT16, "0+")
    groups: list[ListedGroup] = wire(array(ListedGroup), "0+")


@message
class ListGroupsRequest(Request[ListGroupsResponse]):
    """Request for the groups that a broker coordinates. An empty filter excludes nothing."""

    KEY, VERSIONS, FLEXIBLE = 16, "0-5", "3+"
    states_filter: list[str] = wire(array(STRING), "4+")
    types_filter: list[str] = wire(array(STRING), "5+")


@message
class DescribedGroupMember:
    """Member. Its metadata and assignment are present only while the group is Stable."""

    member_id: str = wire(STRING, "0+")
    group_instance_id: str | None = wire(STRING, "4+", nullable="4+", default=None, ignorable=True)
    client_id: str = wire(STRING, "0+")
    client_host: str = wire(STRING, "0+")
    member_metadata: bytes = wire(BYTES, "0+")
    member_assignment: bytes = wire(BYTES, "0+")


@message
class DescribedGroup:
    """Group. A missing group is Dead, or from v6 on an error. `protocol_data` is the assignor."""

    error_code: int = wire(INT16, "0+")
    error_message: str | None = wire(STRING, "6+", nullable="6+", default=None)
    group_id: str = wire(STRING, "0+")
    group_state: str = wire(STRING, "0+")
    protocol_type: str = wire(STRING, "0+")
    protocol_data: str = wire(STRING, "0+")
    members: list[DescribedGroupMember] = wire(array(DescribedGroupMember), "0+")
    authorized_operations: int = wire(INT32, "3+", default=_NOT_ASKED_FOR)


@message
class DescribeGroupsResponse(Response):
    """Description of each group."""

    throttle_time_ms: int = wire(INT32, "1+", ignorable=True)
    groups: list[DescribedGroup] = wire(array(DescribedGroup), "0+")


@message
class DescribeGroupsRequest(Request[DescribeGroupsResponse]):
    """Request for the members of classic groups. Send it to their coordinator."""

    KEY, VERSIONS, FLEXIBLE = 15, "0-6", "5+"
    groups: list[str] = wire(array(STRING), "0+")
    include_authorized_operations: bool = wire(BOOLEAN, "3+")


@message
class DeletableGroupResult:
    """Result for one group."""

    group_id: str = wire(STRING, "0+")
    error_code: int = wire(INT16, "0+")
    error_message: str | None = wire(STRING, "3+", nullable="3+", default=None, ignorable=True)


@message
class DeleteGroupsResponse(Response):
    """Results for each group."""

    throttle_time_ms: int = wire(INT32, "0+")
    results: list[DeletableGroupResult] = wire(array(DeletableGroupResult), "0+")


@message
class DeleteGroupsRequest(Request[DeleteGroupsResponse]):
    """Request to delete groups without members. Send it to their coordinator."""

    KEY, VERSIONS, FLEXIBLE = 42, "0-3", "2+"
    groups_names: list[str] = wire(array(STRING), "0+")


@message
class OffsetDeleteResponsePartition:
    """Result for one partition."""

    partition_index: int = wire(INT32, "0+")
    error_code: int = wire(INT16, "0+")


@message
class OffsetDeleteResponseTopic:
    """Partitions of one topic."""

    name: str = wire(STRING, "0+")
    partitions: list[OffsetDeleteResponsePartition] = wire(
        array(OffsetDeleteResponsePartition), "0+"
    )


@message
class OffsetDeleteResponse(Response):
    """Results for the group and for each partition."""

    error_code: int = wire(INT16, "0+")
    throttle_time_ms: int = wire(INT32, "0+", ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = wire(array(OffsetDeleteResponseTopic), "0+")


@message
class OffsetDeleteRequestPartition:
    """Partition of a topic."""

    partition_index: int = wire(INT32, "0+")


@message
class OffsetDeleteRequestTopic:
    """Partitions of one topic."""

    name: str = wire(STRING, "0+")
    partitions: list[OffsetDeleteRequestPartition] = wire(array(OffsetDeleteRequestPartition), "0+")


@message
class OffsetDeleteRequest(Request[OffsetDeleteResponse]):
    """Request to delete a group's offsets, for topics that no member subscribes to (KIP-496)."""

    KEY, VERSIONS, FLEXIBLE = 47, "0", "none"
    group_id: str = wire(STRING, "0+")
    topics: list[OffsetDeleteRequestTopic] = wire(array(OffsetDeleteRequestTopic), "0+")
