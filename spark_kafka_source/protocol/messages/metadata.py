"""Brokers, topics and who leads each partition: Metadata (KIP-4, KIP-516)."""

import uuid
from dataclasses import dataclass

from spark_kafka_source.protocol.declaration import Request, Response, array, wire
from spark_kafka_source.protocol.wire import BOOLEAN, INT16, INT32, STRING, UUID

# The authorized operations of one who did not ask for them.
_NOT_ASKED_FOR = -0x80000000


@dataclass(slots=True)
class MetadataResponseBroker:
    """A broker that is up, and the address it advertises."""

    node_id: int = wire(INT32, "0+")
    host: str = wire(STRING, "0+")
    port: int = wire(INT32, "0+")
    rack: str | None = wire(STRING, "1+", nullable="1+", default=None, ignorable=True)


@dataclass(slots=True)
class MetadataResponsePartition:
    """A partition's leader and replicas."""

    error_code: int = wire(INT16, "0+")
    partition_index: int = wire(INT32, "0+")
    leader_id: int = wire(INT32, "0+")
    leader_epoch: int = wire(INT32, "7+", default=-1, ignorable=True)
    replica_nodes: list[int] = wire(array(INT32), "0+")
    isr_nodes: list[int] = wire(array(INT32), "0+")
    offline_replicas: list[int] = wire(array(INT32), "5+", ignorable=True)


@dataclass(slots=True)
class MetadataResponseTopic:
    """A topic; `name` is null where an unknown topic was asked for by its id."""

    error_code: int = wire(INT16, "0+")
    name: str | None = wire(STRING, "0+", nullable="12+")
    topic_id: uuid.UUID = wire(UUID, "10+", ignorable=True)
    is_internal: bool = wire(BOOLEAN, "1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = wire(array(MetadataResponsePartition), "0+")
    topic_authorized_operations: int = wire(INT32, "8+", default=_NOT_ASKED_FOR)


@dataclass(slots=True)
class MetadataResponse(Response):
    """The cluster as one broker knows it."""

    KEY, VERSIONS, FLEXIBLE = 3, "0-13", "9+"
    throttle_time_ms: int = wire(INT32, "3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = wire(array(MetadataResponseBroker), "0+")
    cluster_id: str | None = wire(STRING, "2+", nullable="2+", default=None, ignorable=True)
    controller_id: int = wire(INT32, "1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = wire(array(MetadataResponseTopic), "0+")
    cluster_authorized_operations: int = wire(INT32, "8-10", default=_NOT_ASKED_FOR)
    error_code: int = wire(INT16, "13+", ignorable=True)


@dataclass(slots=True)
class MetadataRequestTopic:
    """A topic by name, or from v12 by id; v10 and v11 have the id, but brokers do not obey it."""

    topic_id: uuid.UUID = wire(UUID, "10+", ignorable=True)
    name: str | None = wire(STRING, "0+", nullable="10+")


@dataclass(slots=True)
class MetadataRequest(Request[MetadataResponse]):
    """Who leads what? Null topics mean all, none mean none; in v0, none mean all."""

    KEY, VERSIONS, FLEXIBLE = 3, "0-13", "9+"
    topics: list[MetadataRequestTopic] | None = wire(
        array(MetadataRequestTopic), "0+", nullable="1+"
    )
    allow_auto_topic_creation: bool = wire(BOOLEAN, "4+", default=True)
    include_cluster_authorized_operations: bool = wire(BOOLEAN, "8-10")
    include_topic_authorized_operations: bool = wire(BOOLEAN, "8+")
