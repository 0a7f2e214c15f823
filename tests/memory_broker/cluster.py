"""What all nodes of an in-memory cluster know: topics, leaders, coordinators, committed offsets."""

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

from spark_kafka_source.protocol import Request, Versions, versions
from spark_kafka_source.protocol.messages.api_versions import ApiVersionsRequest
from spark_kafka_source.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
)
from spark_kafka_source.protocol.messages.describe_producers import DescribeProducersRequest
from spark_kafka_source.protocol.messages.describe_transactions import DescribeTransactionsRequest
from spark_kafka_source.protocol.messages.fetch import FetchRequest
from spark_kafka_source.protocol.messages.group_admin import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
    OffsetDeleteRequest,
)
from spark_kafka_source.protocol.messages.groups import (
    FindCoordinatorRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
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
from spark_kafka_source.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)
from spark_kafka_source.topic_partition import TopicPartition
from tests.memory_broker.log import PartitionLog
from tests.memory_broker.sessions import FetchSessions

HOST = "127.0.0.1"

# Of an API that is newer.
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
    ApiVersionsRequest: Versions(0, 2),
    SaslHandshakeRequest: Versions(0, 1),
    SaslAuthenticateRequest: Versions(0, 0),
}

_ALL: list[type[Request[Any]]] = [*_OLDEST, ConsumerGroupHeartbeatRequest]
REQUESTS = {request_type.KEY: request_type for request_type in _ALL}

NEWEST = {key: versions(request_type) for key, request_type in REQUESTS.items()}
"""All versions that this package declares."""

KAFKA_2_1 = {request_type.KEY: spoken for request_type, spoken in _OLDEST.items()}
"""The oldest broker that is supported (KIP-896)."""


@dataclass
class MemoryTopic:
    """A topic's id (zero before Kafka 2.8) and the logs of its partitions."""

    name: str
    topic_id: uuid.UUID
    logs: list[PartitionLog]


class Pending(NamedTuple):
    """An offset that waits for a transaction's end, and which commit of all it was."""

    offset: int
    commit: int
    metadata: str = ""
    leader_epoch: int = -1


class RefusedError(Exception):
    """What a client shows is not right; the text is told to it."""


Verify = Callable[[list[bytes]], bytes | None]
"""Judges all that a client has said in one authentication: what to say next, None where it is in.

Raises `RefusedError`."""


@dataclass
class MemoryCluster:
    """The state that handlers read and tests write; a node without a port is down.

    With `mechanisms`, by name, connections must authenticate before they ask for anything else.
    With a `refusal`, an error code, handlers answer nothing else, wherever their API has errors.
    """

    nodes: int = 1
    ports: dict[int, int] = field(default_factory=dict)
    topics: dict[str, MemoryTopic] = field(default_factory=dict)
    coordinators: dict[str, int] = field(default_factory=dict)
    """By group."""
    transaction_coordinators: dict[str, int] = field(default_factory=dict)
    """By transactional id."""
    groups: dict[str, Any] = field(default_factory=dict)
    consumer_groups: dict[str, Any] = field(default_factory=dict)
    committed: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)
    metadata: dict[tuple[str, TopicPartition], str] = field(default_factory=dict)
    committed_epochs: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    """What was said with an offset that is committed."""
    racks: dict[int, str] = field(default_factory=dict)
    throttle_time_ms: dict[type[Request[Any]], int] = field(default_factory=dict)
    fetch_sessions: dict[int, FetchSessions] = field(default_factory=dict)
    most_fetch_sessions: int = 1_000
    transactions: dict[str, Any] = field(default_factory=dict)
    """By transactional id."""
    producer_ids: Iterator[int] = field(default_factory=lambda: count(1_000))
    """Those that are not given yet."""
    pending: dict[str, dict[int, dict[TopicPartition, Pending]]] = field(default_factory=dict)
    """By group and producer id, until the end of the producer's transaction."""
    commits: Iterator[int] = field(default_factory=count)
    """A number for each offset that is committed, with a transaction or without."""
    last_commits: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    max_message_bytes: int = 1_048_588
    creates_topics: bool = False
    """Whether a client that asks for a topic may have it made (`auto.create.topics.enable`)."""
    versions: dict[int, Versions] = field(default_factory=lambda: dict(NEWEST))
    refusal: int = 0
    mechanisms: dict[str, Verify] = field(default_factory=dict)
    session_lifetime_ms: int = 0
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    """By which transactions are begun."""

    def create_topic(
        self, name: str, partitions: int = 1, topic_id: uuid.UUID | None = None
    ) -> list[PartitionLog]:
        """The logs of a new topic's partitions, their leaders spread over all nodes."""
        logs = [PartitionLog(each % self.nodes) for each in range(partitions)]
        self.topics[name] = MemoryTopic(name, topic_id or uuid.uuid4(), logs)
        return logs

    def log(self, topic: str, partition: int) -> PartitionLog | None:
        logs = self.topics[topic].logs if topic in self.topics else []
        return logs[partition] if 0 <= partition < len(logs) else None

    def logs_of(self, node_id: int) -> list[PartitionLog]:
        """Those that a node leads."""
        logs = (log for topic in self.topics.values() for log in topic.logs)
        return [log for log in logs if log.leader_id == node_id]

    def coordinator(self, group_id: str) -> int:
        """Any node that is up, unless a test names one."""
        return self.coordinators.get(group_id, min(self.ports))

    def transaction_coordinator(self, transactional_id: str) -> int:
        """Any node that is up, unless a test names one."""
        return self.transaction_coordinators.get(transactional_id, min(self.ports))

    def commit(self, group_id: str, where: TopicPartition, found: Pending) -> None:
        """The offset counts from now on, unless a commit that came later does already."""
        committed = self.committed.setdefault(group_id, {})
        if where not in committed or found.commit > self.last_commits.get((group_id, where), -1):
            committed[where] = found.offset
            self.metadata[group_id, where] = found.metadata
            self.committed_epochs[group_id, where] = found.leader_epoch
            self.last_commits[group_id, where] = found.commit

    def has_offsets(self, group_id: str) -> bool:
        """Whether the group has some, or will have once a transaction is committed."""
        return group_id in self.committed or any(self.pending.get(group_id, {}).values())

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        names = (topic.name for topic in self.topics.values() if topic.topic_id == topic_id)
        return next(names, None)
