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
    They are also None if nobody asked for them.
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
        return max((len(each.replicas) for each in self.partitions), default=0)


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
    wanted = sorted(set(topic_partitions))
    names = sorted({each.topic for each in wanted})
    if names:
        await metadata(client, names)
    found: dict[TopicPartition, LogRange] = {}
    led = []
    for each in wanted:
        try:
            client.cluster.leader(each)
            led.append(each)
        except BrokerError as error:
            found[each] = LogRange(error=error.error.name)
    starts = await list_offsets(client, dict.fromkeys(led, EARLIEST_TIMESTAMP))
    ends = await list_offsets(client, dict.fromkeys(led, LATEST_TIMESTAMP))
    return found | {each: LogRange(starts[each].offset, ends[each].offset) for each in led}


async def describe_topics(
    client: KafkaClient, names: Collection[str] | None, *, offsets: bool
) -> list[TopicDescription]:
    """Return the named topics (None: all) in order; see `KafkaAdmin.describe_topics`."""
    found = await metadata(client, names)
    if names is not None:
        for topic in found:
            if topic.error == _UNKNOWN:
                raise await no_topic(client, topic.name)
            if topic.error.code:
                raise topic_failure(topic.error, topic.name)
    ranges: Mapping[TopicPartition, LogRange] = {}
    if offsets:
        partitions = chain.from_iterable(topic.topic_partitions for topic in found)
        ranges = await log_ranges(client, partitions)
    described = [_described(topic, ranges) for topic in found]
    return sorted(described, key=lambda topic: topic.name)


async def partitions_named(
    client: KafkaClient, topics: Iterable[str | TopicPartition]
) -> list[TopicPartition]:
    """Return the given partitions, and all of the given topics.

    Raises `BrokerError` for unknown ones.
    """
    given = [topics] if isinstance(topics, str | TopicPartition) else list(topics)
    names = {each if isinstance(each, str) else each.topic for each in given}
    known = await describe_topics(client, names, offsets=False) if names else []
    partitions = {topic.name: [each.partition for each in topic.partitions] for topic in known}
    found: list[TopicPartition] = []
    for each in given:
        if isinstance(each, str):
            found += [TopicPartition(each, partition) for partition in partitions[each]]
            continue
        if each.partition not in partitions[each.topic]:
            there = f"topic {each.topic!r} has 0 to {len(partitions[each.topic]) - 1}"
            raise BrokerError(_UNKNOWN, f"Metadata of {each}", there)
        found.append(TopicPartition(*each))
    return sorted(set(found))


def _described(topic: Topic, ranges: Mapping[TopicPartition, LogRange]) -> TopicDescription:
    return TopicDescription(
        topic.name,
        topic.topic_id,
        topic.is_internal,
        tuple(
            _partition(each, topic.partitions[each.partition], ranges.get(each, LogRange()))
            for each in topic.topic_partitions
        ),
        topic.error.name if topic.error.code else None,
    )


def _partition(where: TopicPartition, found: Leadership, reach: LogRange) -> PartitionDescription:
    has_leader = found.leader_id >= 0
    error = found.error if found.error.code else _NO_LEADER
    return PartitionDescription(
        *where,
        found.leader_id if has_leader else None,
        found.leader_epoch,
        found.replica_ids,
        found.in_sync_replica_ids,
        found.offline_replica_ids,
        reach.start,
        reach.end,
        reach.error or (None if has_leader else error.name),
    )
