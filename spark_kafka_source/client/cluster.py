"""Metadata of a cluster: its brokers, its topics, and the leader of each partition."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias
from uuid import UUID

from spark_kafka_source.denials import Access, refusal
from spark_kafka_source.errors import BrokerError, ErrorCode, error_code, error_named
from spark_kafka_source.net import Address, Identity
from spark_kafka_source.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from spark_kafka_source.topic_partition import TopicPartition

if TYPE_CHECKING:
    from spark_kafka_source.protocol.messages.fetch import FetchResponse, PartitionData
    from spark_kafka_source.protocol.messages.produce import (
        PartitionProduceResponse,
        ProduceResponse,
    )


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker of the cluster, as the cluster advertises it."""

    node_id: int
    address: Address
    rack: str | None = None


class CoordinatorKind(Enum):
    """The kinds of coordinators. The value is FindCoordinator's key type."""

    GROUP = 0
    TRANSACTION = 1


@dataclass(frozen=True, slots=True)
class CoordinatorKey:
    """A group, or a transactional id: each has a coordinator."""

    kind: CoordinatorKind
    key: str

    @classmethod
    def of_group(cls, group_id: str) -> "CoordinatorKey":
        """Return the key of a group."""
        return cls(CoordinatorKind.GROUP, group_id)

    @classmethod
    def of_transaction(cls, transactional_id: str) -> "CoordinatorKey":
        """Return the key of a producer's transactional id."""
        return cls(CoordinatorKind.TRANSACTION, transactional_id)

    def __str__(self) -> str:
        name = "group" if self.kind is CoordinatorKind.GROUP else "transactional id"
        return f"{name} {self.key!r}"


@dataclass(frozen=True, slots=True)
class Leadership:
    """A partition's leader, leader epoch and replicas. `error` tells why there is no leader."""

    leader_id: int
    leader_epoch: int
    error: ErrorCode
    replica_ids: tuple[int, ...] = ()
    in_sync_replica_ids: tuple[int, ...] = ()
    offline_replica_ids: tuple[int, ...] = ()
    racks: frozenset[str] = frozenset()
    """Those of the brokers with a replica."""


class PartitionInfo(TopicPartition):
    """A partition with the node ids of its brokers, from the newest metadata.

    It is a `TopicPartition`: it is equal to the plain one, has its hash, and sorts with it.
    """

    leader_id: int | None = None
    """None while the partition has no leader."""
    replica_ids: tuple[int, ...] = ()
    in_sync_replica_ids: tuple[int, ...] = ()
    offline_replica_ids: tuple[int, ...] = ()
    racks: frozenset[str] = frozenset()
    """The racks of the brokers with a replica. A broker may have none."""

    @classmethod
    def of(
        cls,
        topic_partition: TopicPartition,
        leader_id: int | None,
        replica_ids: tuple[int, ...],
        in_sync_replica_ids: tuple[int, ...],
        offline_replica_ids: tuple[int, ...],
        *,
        racks: frozenset[str] = frozenset(),
    ) -> "PartitionInfo":
        """Return a partition with its brokers."""
        info = cls(*topic_partition)
        info.leader_id = leader_id
        info.replica_ids = replica_ids
        info.in_sync_replica_ids = in_sync_replica_ids
        info.offline_replica_ids = offline_replica_ids
        info.racks = racks
        return info

    def __repr__(self) -> str:
        return (
            f"PartitionInfo({self.topic!r}, {self.partition}, leader_id={self.leader_id},"
            f" replica_ids={self.replica_ids}, in_sync_replica_ids={self.in_sync_replica_ids},"
            f" offline_replica_ids={self.offline_replica_ids}, racks={sorted(self.racks)})"
        )


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic and its partitions by number. `error` tells why the broker did not describe it."""

    name: str
    topic_id: UUID
    is_internal: bool
    partitions: Mapping[int, Leadership]
    error: ErrorCode

    @property
    def topic_partitions(self) -> list[TopicPartition]:
        """Partitions of the topic, in order."""
        return [TopicPartition(self.name, partition) for partition in sorted(self.partitions)]

    @property
    def partition_infos(self) -> list[PartitionInfo]:
        """Partitions of the topic with their brokers, in order."""
        return [
            PartitionInfo.of(
                TopicPartition(self.name, partition),
                led.leader_id if led.leader_id >= 0 and not led.error.code else None,
                led.replica_ids,
                led.in_sync_replica_ids,
                led.offline_replica_ids,
                racks=led.racks,
            )
            for partition, led in sorted(self.partitions.items())
        ]


Log: TypeAlias = tuple[Broker, UUID, int]
"""The log of a partition at its leader: the leader, the topic's id, and the leader epoch or -1."""


class Cluster:
    """The newest metadata of each topic that a client asked for, and of all brokers.

    Clients of several threads may share the object. `access` is what they do with topics: the
    error after a denial names the right for it.
    """

    def __init__(self, access: Access = Access.READ) -> None:
        self.access = access
        self.cluster_id = ""
        """The id in the newest metadata; empty if brokers give none."""
        self.brokers: dict[int, Broker] = {}
        self.topics: dict[str, Topic] = {}
        self.learnt_at_seconds: dict[str, float] = {}
        """Time of each topic's last metadata, on the monotonic clock."""
        self.coordinators: dict[CoordinatorKey, Broker] = {}
        self._stale: set[str] = set()
        self._lock = threading.Lock()

    def update(self, response: MetadataResponse) -> list[Topic]:
        """Take in a broker's answer. Return its topics. Raises `BrokerError` for its error code."""
        if response.error_code:
            raise refusal(response.error_code, "Metadata")
        self.cluster_id = response.cluster_id or ""
        self.brokers = {
            broker.node_id: Broker(broker.node_id, Address(broker.host, broker.port), broker.rack)
            for broker in response.brokers
        }
        racks = {broker.node_id: broker.rack for broker in response.brokers if broker.rack}
        topics = [_topic(topic, racks) for topic in response.topics]
        with self._lock:
            for topic in topics:
                self.topics[topic.name] = self._newest(topic)
                self._stale.discard(topic.name)
        return topics

    def identity(self, address: Address) -> Identity | None:
        """Return the only broker that has this address, or None (KIP-1242)."""
        node_ids = [broker.node_id for broker in self.brokers.values() if broker.address == address]
        if len(node_ids) != 1 or not self.cluster_id:
            return None
        return Identity(self.cluster_id, node_ids[0])

    def forget_brokers(self) -> None:
        """Forget all brokers, so that the bootstrap addresses are asked next."""
        self.brokers = {}

    def forget_leaders(self) -> None:
        """Mark all topics to be asked for again, as after an error that says a leader moved."""
        with self._lock:
            self._stale |= self.topics.keys()

    def forget_leaders_of(self, names: Iterable[str]) -> None:
        """Mark these topics to be asked for again."""
        with self._lock:
            self._stale.update(names)

    def learn_leader(
        self, topic_partition: TopicPartition, leader_epoch: int, broker: Broker
    ) -> bool:
        """Take the leader that an answer named (KIP-951). Return False if it is not newer."""
        name, partition = topic_partition
        with self._lock:
            topic = self.topics.get(name)
            known = topic.partitions.get(partition) if topic is not None else None
            if topic is None or known is None or leader_epoch <= known.leader_epoch:
                return False
            self.brokers = {**self.brokers, broker.node_id: broker}
            newer = replace(known, leader_id=broker.node_id, leader_epoch=leader_epoch)
            partitions = {**topic.partitions, partition: newer}
            self.topics[name] = replace(topic, partitions=partitions)
        return True

    def learn_named(
        self,
        topic_partition: TopicPartition,
        data: "PartitionData | PartitionProduceResponse",
        answer: "FetchResponse | ProduceResponse",
    ) -> bool:
        """Take the leader that an answer names beside its error, as `learn_leader` does."""
        leader = data.current_leader
        for broker in answer.node_endpoints:
            if broker.node_id == leader.leader_id:
                named = Broker(broker.node_id, Address(broker.host, broker.port), broker.rack)
                return self.learn_leader(topic_partition, leader.leader_epoch, named)
        return False

    def is_led_by(self, broker: Broker, topic_partition: TopicPartition) -> bool:
        """Whether this broker leads a partition by the newest metadata."""
        log = self.log(topic_partition)
        return log is not None and log[0] == broker

    def missing(self, topic_partitions: Iterable[TopicPartition]) -> list[str]:
        """Return the topics to ask for: the leader of one of the partitions is not known."""
        return sorted({each.topic for each in topic_partitions if not self._is_known(each)})

    def log(self, topic_partition: TopicPartition) -> Log | None:
        """Return the log of a partition at its leader, or None if that is unknown."""
        topic = self.topics.get(topic_partition.topic)
        leadership = None if topic is None else topic.partitions.get(topic_partition.partition)
        leader = None if leadership is None else self.brokers.get(leadership.leader_id)
        if topic is None or leadership is None or leader is None or topic.error.code:
            return None
        return leader, topic.topic_id, leadership.leader_epoch

    def leader(self, topic_partition: TopicPartition) -> tuple[Broker, int]:
        """Return the broker that leads a partition, and the leader epoch (-1 if unknown).

        Raises `BrokerError`: UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE, or the broker's
        error.
        """
        log = self.log(topic_partition)
        if log is None:
            raise self._no_leader(topic_partition)
        leader, _, leader_epoch = log
        return leader, leader_epoch

    def _no_leader(self, topic_partition: TopicPartition) -> BrokerError:
        topic = self.topics.get(topic_partition.topic)
        leadership = None if topic is None else topic.partitions.get(topic_partition.partition)
        what = f"Metadata of {topic_partition}"
        if topic is not None and topic.error.code:
            return refusal(topic.error, what, topic=topic.name, access=self.access)
        if leadership is None:
            return BrokerError(error_named("UNKNOWN_TOPIC_OR_PARTITION"), what)
        error = leadership.error
        return BrokerError(error if error.code else error_named("LEADER_NOT_AVAILABLE"), what)

    def _is_known(self, topic_partition: TopicPartition) -> bool:
        name, partition = topic_partition
        topic = self.topics.get(name)
        if topic is None or topic.error.code or name in self._stale:
            return False
        leadership = topic.partitions.get(partition)
        return leadership is not None and leadership.leader_id in self.brokers

    def _newest(self, topic: Topic) -> Topic:
        """Return the topic, with known leaders where their epoch is newer.

        A broker that lags behind may send old leaders.
        """
        known = self.topics.get(topic.name)
        if known is None or known.topic_id != topic.topic_id:
            return topic
        partitions = {
            partition: max(leadership, known.partitions.get(partition, leadership), key=_epoch)
            for partition, leadership in topic.partitions.items()
        }
        return Topic(topic.name, topic.topic_id, topic.is_internal, partitions, topic.error)


def _epoch(leadership: Leadership) -> int:
    return leadership.leader_epoch


_NO_RACKS = frozenset[str]()


def _topic(topic: MetadataResponseTopic, racks: Mapping[int, str]) -> Topic:
    return Topic(
        name=topic.name or "",
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions={
            partition.partition_index: Leadership(
                partition.leader_id,
                partition.leader_epoch,
                error_code(partition.error_code),
                tuple(partition.replica_nodes),
                tuple(partition.isr_nodes),
                tuple(partition.offline_replicas),
                _racks(partition.replica_nodes, racks) if racks else _NO_RACKS,
            )
            for partition in topic.partitions
        },
        error=error_code(topic.error_code),
    )


def _racks(node_ids: Iterable[int], racks: Mapping[int, str]) -> frozenset[str]:
    return frozenset(racks[each] for each in node_ids if each in racks)
