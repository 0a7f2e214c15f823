"""Metadata (KIP-4, KIP-516): brokers, topics and the leader of each partition."""

import uuid

from spark_kafka_source.protocol.declaration import Request, Response, array, message, wire
from spark_kafka_source.protocol.wire import BOOLEAN, INT16, INT32, STRING, UUID

# The value of the authorized operations if the request did not ask for them.
_NOT_ASKED_FOR = -0x80000000


@message
class MetadataResponseBroker:
    """Live broker, and its advertised address."""

    node_id: int = wire(INT32, "0+")
    host: str = wire(STRING, "0+")
    port: int = wire(INT32, "0+")
    rack: str | None = wire(STRING, "1+", nullable="1+", default=None, ignorable=True)


@message
class MetadataResponsePartition:
    """Leader and replicas of a partition."""

    error_code: int = wire(INT16, "0+")
    partition_index: int = wire(INT32, "0+")
    leader_id: int = wire(INT32, "0+")
    leader_epoch: int = wire(INT32, "7+", default=-1, ignorable=True)
    replica_nodes: list[int] = wire(array(INT32), "0+")
    isr_nodes: list[int] = wire(array(INT32), "0+")
    offline_replicas: list[int] = wire(array(INT32), "5+", ignorable=True)


@message
class MetadataResponseTopic:
    """Topic. `name` is null if the request had the id of an unknown topic."""

    error_code: int = wire(INT16, "0+")
    name: str | None = wire(STRING, "0+", nullable="12+")
    topic_id: uuid.UUID = wire(UUID, "10+", ignorable=True)
    is_internal: bool = wire(BOOLEAN, "1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = wire(array(MetadataResponsePartition), "0+")
    topic_authorized_operations: int = wire(INT32, "8+", default=_NOT_ASKED_FOR)


@message
class MetadataResponse(Response):
    """Cluster, as one broker knows it."""

    throttle_time_ms: int = wire(INT32, "3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = wire(array(MetadataResponseBroker), "0+")
    cluster_id: str | None = wire(STRING, "2+", nullable="2+", default=None, ignorable=True)
    controller_id: int = wire(INT32, "1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = wire(array(MetadataResponseTopic), "0+")
    cluster_authorized_operations: int = wire(INT32, "8-10", default=_NOT_ASKED_FOR)
    error_code: int = wire(INT16, "13+", ignorable=True)


@message
class MetadataRequestTopic:
    """Topic by name, or from v12 on by id. v10 and v11 have the id, but brokers ignore it."""

    topic_id: uuid.UUID = wire(UUID, "10+", ignorable=True)
    name: str | None = wire(STRING, "0+", nullable="10+")


@message
class MetadataRequest(Request[MetadataResponse]):
    """Request for topics and leaders. Null topics mean all. No topics mean none, but all in v0."""

    KEY, VERSIONS, FLEXIBLE = 3, "0-13", "9+"
    topics: list[MetadataRequestTopic] | None = wire(
        array(MetadataRequestTopic), "0+", nullable="1+"
    )
    allow_auto_topic_creation: bool = wire(BOOLEAN, "4+", default=True)
    include_cluster_authorized_operations: bool = wire(BOOLEAN, "8-10")
    include_topic_authorized_operations: bool = wire(BOOLEAN, "8+")
