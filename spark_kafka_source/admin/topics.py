"""Topics, the replicas of their partitions, and the offsets in the logs."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from uuid import UUID

from spark_kafka_source.admin.questions import metadata
from spark_kafka_source.admin.refusals import no_topic
from spark_kafka_source.client import KafkaClient, Leadership, Topic
from spark_kafka_source.denials import topic_failure
from spark_kafka_source.errors import BrokerError, error_named
from spark_kafka_source.fetch import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, list_offsets
from spark_kafka_source.topic_partition import TopicPartition

_UNKNOWN = error_named("UNKNOWN_TOPIC_OR_PARTITION")
_NO_LEADER = error_named("LEADER_NOT_AVAILABLE")


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """One partition with its replicas, by node id, and its offsets.

    `leader` is None if there is no leader. `latest` is the offset after the last record (the high
    watermark). Without a leader `error` is Kafka's name for the fault, and the offsets are None.
    They are also None if they were not asked for.
    """

    topic: str
    partition: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]
    earliest: int | None = None
    latest: int | None = None
    error: str | None = None

    @property
    def under_replicated(self) -> bool:
        """Whether a replica is not in sync."""
        return len(self.isr) < len(self.replicas)


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic. `error` is Kafka's name for why the topic is not described, if it is not."""

    name: str
    topic_id: UUID
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]
    error: str | None = None

    @property
    def replication_factor(self) -> int:
        """Highest number of replicas that one of its partitions has."""
        return max((len(partition.replicas) for partition in self.partitions), default=0)


@dataclass(frozen=True, slots=True)
class LogRange:
    """The offsets in a partition, without `end`, or why they are not known."""

    start: int | None = None
    end: int | None = None
    error: str | None = None


async def log_ranges(
    client: KafkaClient, topic_partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, LogRange]:
    """Return the range of each partition.

    A partition without a leader, or unknown, has an error.
    """
    partitions = sorted(set(topic_partitions))
    names = sorted({partition.topic for partition in partitions})
    if names:
        await metadata(client, names)
    ranges: dict[TopicPartition, LogRange] = {}
    led = []
    for partition in partitions:
        try:
            client.cluster.leader(partition)
            led.append(partition)
        except BrokerError as error:
            ranges[partition] = LogRange(error=error.error.name)
    starts = await list_offsets(client, dict.fromkeys(led, EARLIEST_TIMESTAMP))
    ends = await list_offsets(client, dict.fromkeys(led, LATEST_TIMESTAMP))
    return ranges | {where: LogRange(starts[where].offset, ends[where].offset) for where in led}


async def describe_topics(
    client: KafkaClient, names: Collection[str] | None, *, offsets: bool
) -> list[TopicDescription]:
    """Return the named topics (None: all) in order; see `KafkaAdmin.describe_topics`."""
    topics = await metadata(client, names)
    if names is not None:
        for topic in topics:
            if topic.error == _UNKNOWN:
                raise await no_topic(client, topic.name)
            if topic.error.code:
                raise topic_failure(topic.error, topic.name)
    ranges: Mapping[TopicPartition, LogRange] = {}
    if offsets:
        partitions = chain.from_iterable(topic.topic_partitions for topic in topics)
        ranges = await log_ranges(client, partitions)
    described = [_described(topic, ranges) for topic in topics]
    return sorted(described, key=lambda topic: topic.name)


async def partitions_named(
    client: KafkaClient, topics: Iterable[str | TopicPartition]
) -> list[TopicPartition]:
    """Return the given partitions, and all of the given topics.

    Raises `BrokerError` for unknown ones.
    """
    given = [topics] if isinstance(topics, str | TopicPartition) else list(topics)
    names = {named if isinstance(named, str) else named.topic for named in given}
    known = await describe_topics(client, names, offsets=False) if names else []
    partitions = {topic.name: [row.partition for row in topic.partitions] for topic in known}
    chosen: list[TopicPartition] = []
    for named in given:
        if isinstance(named, str):
            chosen += [TopicPartition(named, partition) for partition in partitions[named]]
            continue
        if named.partition not in partitions[named.topic]:
            there = f"topic {named.topic!r} has 0 to {len(partitions[named.topic]) - 1}"
            raise BrokerError(_UNKNOWN, f"Metadata of {named}", there)
        chosen.append(TopicPartition(*named))
    return sorted(set(chosen))


def _described(topic: Topic, ranges: Mapping[TopicPartition, LogRange]) -> TopicDescription:
    return TopicDescription(
        topic.name,
        topic.topic_id,
        topic.is_internal,
        tuple(
            _partition(where, topic.partitions[where.partition], ranges.get(where, LogRange()))
            for where in topic.topic_partitions
        ),
        topic.error.name if topic.error.code else None,
    )


def _partition(where: TopicPartition, known: Leadership, reach: LogRange) -> PartitionDescription:
    has_leader = known.leader_id >= 0
    error = known.error if known.error.code else _NO_LEADER
    return PartitionDescription(
        *where,
        known.leader_id if has_leader else None,
        known.leader_epoch,
        known.replica_ids,
        known.in_sync_replica_ids,
        known.offline_replica_ids,
        reach.start,
        reach.end,
        reach.error or (None if has_leader else error.name),
    )
