"""State of an in-memory cluster: topics, leaders, coordinators, committed offsets."""

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

from spark_kafka_source.protocol import Request, Versions, versions
from spark_kafka_source.protocol.messages.admin import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
)
from spark_kafka_source.protocol.messages.alter_configs import IncrementalAlterConfigsRequest
from spark_kafka_source.protocol.messages.api_versions import ApiVersionsRequest
from spark_kafka_source.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
)
from spark_kafka_source.protocol.messages.describe_configs import DescribeConfigsRequest
from spark_kafka_source.protocol.messages.describe_producers import DescribeProducersRequest
from spark_kafka_source.protocol.messages.describe_transactions import DescribeTransactionsRequest
from spark_kafka_source.protocol.messages.fetch import FetchRequest
from spark_kafka_source.protocol.messages.find_coordinator import FindCoordinatorRequest
from spark_kafka_source.protocol.messages.group_admin import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
    OffsetDeleteRequest,
)
from spark_kafka_source.protocol.messages.groups import OffsetCommitRequest, OffsetFetchRequest
from spark_kafka_source.protocol.messages.list_offsets import ListOffsetsRequest
from spark_kafka_source.protocol.messages.list_transactions import ListTransactionsRequest
from spark_kafka_source.protocol.messages.membership import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from spark_kafka_source.protocol.messages.produce import InitProducerIdRequest, ProduceRequest
from spark_kafka_source.protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from spark_kafka_source.protocol.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
)
from spark_kafka_source.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)
from spark_kafka_source.testing.memory.log import PartitionLog
from spark_kafka_source.testing.memory.sessions import FetchSessions
from spark_kafka_source.topic_partition import TopicPartition

HOST = "127.0.0.1"

# The versions of an API that does not exist yet.
_NONE = Versions.parse("none")
_OLDEST: dict[type[Request[Any]], Versions] = {
    FetchRequest: Versions(0, 10),
    ListOffsetsRequest: Versions(0, 4),
    ProduceRequest: Versions(0, 7),
    InitProducerIdRequest: Versions(0, 1),
    AddPartitionsToTxnRequest: Versions(0, 1),
    AddOffsetsToTxnRequest: Versions(0, 1),
    EndTxnRequest: Versions(0, 1),
    TxnOffsetCommitRequest: Versions(0, 2),
    DescribeProducersRequest: _NONE,
    DescribeTransactionsRequest: _NONE,
    ListTransactionsRequest: _NONE,
    MetadataRequest: Versions(0, 7),
    OffsetCommitRequest: Versions(0, 6),
    OffsetFetchRequest: Versions(0, 5),
    OffsetForLeaderEpochRequest: Versions(0, 2),
    FindCoordinatorRequest: Versions(0, 2),
    JoinGroupRequest: Versions(0, 3),
    SyncGroupRequest: Versions(0, 2),
    HeartbeatRequest: Versions(0, 2),
    LeaveGroupRequest: Versions(0, 2),
    ListGroupsRequest: Versions(0, 2),
    DescribeGroupsRequest: Versions(0, 2),
    DeleteGroupsRequest: Versions(0, 1),
    OffsetDeleteRequest: _NONE,
    ConsumerGroupDescribeRequest: _NONE,
    DescribeConfigsRequest: Versions(0, 2),
    IncrementalAlterConfigsRequest: _NONE,
    CreateTopicsRequest: Versions(0, 3),
    CreatePartitionsRequest: Versions(0, 1),
    DeleteTopicsRequest: Versions(0, 3),
    DeleteRecordsRequest: Versions(0, 1),
    ApiVersionsRequest: Versions(0, 2),
    SaslHandshakeRequest: Versions(0, 1),
    SaslAuthenticateRequest: Versions(0, 0),
}

_OF_TELEMETRY: list[type[Request[Any]]] = [
    GetTelemetrySubscriptionsRequest,
    PushTelemetryRequest,
]
_USUAL: list[type[Request[Any]]] = [*_OLDEST, ConsumerGroupHeartbeatRequest]
REQUESTS = {request_type.KEY: request_type for request_type in (*_USUAL, *_OF_TELEMETRY)}

NEWEST = {request_type.KEY: versions(request_type) for request_type in _USUAL}
"""All API versions that this package declares and that a broker without plugins has."""

TELEMETRY = {request_type.KEY: versions(request_type) for request_type in _OF_TELEMETRY}
"""API versions that a broker has in addition if a plugin of its takes clients' metrics."""

KAFKA_2_1 = {request_type.KEY: spoken for request_type, spoken in _OLDEST.items()}
"""API versions of the oldest broker that Kafka's clients support (KIP-896)."""


@dataclass
class MemoryTopic:
    """A topic: its id (zero before Kafka 2.8) and the logs of its partitions."""

    name: str
    topic_id: uuid.UUID
    logs: list[PartitionLog]
    replication_factor: int = 1


class Pending(NamedTuple):
    """An offset that waits for the end of its transaction, and the number of its commit."""

    offset: int
    commit: int
    metadata: str = ""
    leader_epoch: int = -1


class RefusedError(Exception):
    """The client's credentials are wrong. The client gets the text."""


Verify = Callable[[list[bytes]], bytes | None]
"""Takes all messages of a client in one authentication. Returns the broker's next message, or None
when the client is authenticated. Raises `RefusedError`."""


@dataclass
class MemoryCluster:
    """The state that handlers read and tests write. A node without a port is down.

    With `mechanisms` (by name) connections must authenticate before any other request.
    With a `refusal` (an error code) handlers answer only this error, where their API has errors.
    """

    nodes: int = 1
    first_node_id: int = 0
    cluster_id: str | None = None
    """The id of the cluster. With it, nodes refuse connections meant for others (KIP-1242)."""
    ports: dict[int, int] = field(default_factory=dict)
    topics: dict[str, MemoryTopic] = field(default_factory=dict)
    coordinators: dict[str, int] = field(default_factory=dict)
    """By group."""
    transaction_coordinators: dict[str, int] = field(default_factory=dict)
    """By transactional id."""
    groups: dict[str, Any] = field(default_factory=dict)
    consumer_groups: dict[str, Any] = field(default_factory=dict)
    consumer_session_timeout_ms: int = 45_000
    """The session timeout of KIP-848 members (`group.consumer.session.timeout.ms`)."""
    committed: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)
    metadata: dict[tuple[str, TopicPartition], str] = field(default_factory=dict)
    committed_epochs: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    """The leader epoch of each committed offset."""
    racks: dict[int, str] = field(default_factory=dict)
    throttle_time_ms: dict[type[Request[Any]], int] = field(default_factory=dict)
    fetch_sessions: dict[int, FetchSessions] = field(default_factory=dict)
    most_fetch_sessions: int = 1_000
    transactions: dict[str, Any] = field(default_factory=dict)
    """By transactional id."""
    producer_ids: Iterator[int] = field(default_factory=lambda: count(1_000))
    """The free producer ids."""
    pending: dict[str, dict[int, dict[TopicPartition, Pending]]] = field(default_factory=dict)
    """By group and producer id. An entry stays until its transaction ends."""
    commits: Iterator[int] = field(default_factory=count)
    """Numbers for all commits of offsets, with a transaction or without."""
    last_commits: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    max_message_bytes: int = 1_048_588
    broker_settings: dict[str, str] = field(
        default_factory=lambda: {"offset.metadata.max.bytes": "4096"}
    )
    """Settings of each node, for DescribeConfigs. A node tells others nothing."""
    topic_settings: dict[str, dict[str, str]] = field(default_factory=dict)
    """The settings that topics have of their own, by topic."""
    default_replication_factor: int = 1
    """The number of replicas of a topic that a client creates without one."""
    creates_topics: bool = False
    """Whether a request for metadata may create a topic (`auto.create.topics.enable`)."""
    versions: dict[int, Versions] = field(default_factory=lambda: dict(NEWEST))
    telemetry: GetTelemetrySubscriptionsResponse = field(
        default_factory=lambda: GetTelemetrySubscriptionsResponse(
            subscription_id=1, push_interval_ms=300_000, telemetry_max_bytes=1 << 20
        )
    )
    """The metrics that all nodes want; at first none."""
    features: dict[str, int] = field(default_factory=dict)
    """The levels of features that are in use, as `transaction.version`."""
    refusal: int = 0
    mechanisms: dict[str, Verify] = field(default_factory=dict)
    session_lifetime_ms: int = 0
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    """The clock for the start times of transactions."""

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        topic_id: uuid.UUID | None = None,
        replication_factor: int = 1,
    ) -> list[PartitionLog]:
        """Create a topic. Return its partitions' logs. The leaders are spread over all nodes."""
        logs = [PartitionLog(self.new_leader(each)) for each in range(partitions)]
        self.topics[name] = MemoryTopic(name, topic_id or uuid.uuid4(), logs, replication_factor)
        return logs

    def delete_topic(self, name: str) -> None:
        """Delete a topic, its settings, and the groups' offsets of it, pending ones included."""
        del self.topics[name]
        self.topic_settings.pop(name, None)
        pending = (offsets for group in self.pending.values() for offsets in group.values())
        by_partition: list[dict[TopicPartition, Any]] = [*self.committed.values(), *pending]
        for offsets in by_partition:
            for where in [each for each in offsets if each.topic == name]:
                del offsets[where]
        by_group: list[dict[tuple[str, TopicPartition], Any]]
        by_group = [self.metadata, self.committed_epochs, self.last_commits]
        for values in by_group:
            for key in [each for each in values if each[1].topic == name]:
                del values[key]

    def new_leader(self, partition: int) -> int:
        """Return the leader of a new partition: the running nodes in turn."""
        node_ids = sorted(self.ports) or self.node_ids
        return node_ids[partition % len(node_ids)]

    @property
    def node_ids(self) -> Sequence[int]:
        """The ids of all nodes, also of those that are down."""
        return range(self.first_node_id, self.first_node_id + self.nodes)

    def replicas(self, topic: MemoryTopic, log: PartitionLog) -> list[int]:
        """Return the nodes that clients see as replicas: the leader, and the next ones by id."""
        later = [each for each in self.node_ids if each > log.leader_id]
        earlier = [each for each in self.node_ids if each < log.leader_id]
        return [log.leader_id, *later, *earlier][: topic.replication_factor]

    def log(self, topic: str, partition: int) -> PartitionLog | None:
        """Return the log of a partition. None if there is no such partition."""
        logs = self.topics[topic].logs if topic in self.topics else []
        return logs[partition] if 0 <= partition < len(logs) else None

    def logs_of(self, node_id: int) -> list[PartitionLog]:
        """Return the logs of the partitions that a node leads."""
        logs = (log for topic in self.topics.values() for log in topic.logs)
        return [log for log in logs if log.leader_id == node_id]

    def coordinator(self, group_id: str) -> int:
        """Return the node that a test named, or else any node that is up."""
        return self.coordinators.get(group_id, min(self.ports))

    def transaction_coordinator(self, transactional_id: str) -> int:
        """Return the node that a test named, or else any node that is up."""
        return self.transaction_coordinators.get(transactional_id, min(self.ports))

    def commit(self, group_id: str, where: TopicPartition, found: Pending) -> None:
        """Store a committed offset, unless a later commit is stored already."""
        committed = self.committed.setdefault(group_id, {})
        if where not in committed or found.commit > self.last_commits.get((group_id, where), -1):
            committed[where] = found.offset
            self.metadata[group_id, where] = found.metadata
            self.committed_epochs[group_id, where] = found.leader_epoch
            self.last_commits[group_id, where] = found.commit

    def has_offsets(self, group_id: str) -> bool:
        """Return whether the group has offsets, committed or pending in a transaction."""
        return group_id in self.committed or any(self.pending.get(group_id, {}).values())

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        """Return the name of the topic with this id. None if there is no such topic."""
        names = (topic.name for topic in self.topics.values() if topic.topic_id == topic_id)
        return next(names, None)
