"""Topics, the replicas of their partitions, and the offsets in the logs."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from spark_kafka_source.admin.refusals import similar_topic
from spark_kafka_source.client import KafkaClient
from spark_kafka_source.denials import topic_failure
from spark_kafka_source.errors import BrokerError, TopicNotFoundError, error_code, error_named
from spark_kafka_source.fetch import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    list_offsets,
)
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from spark_kafka_source.topic_partition import TopicPartition

_UNKNOWN = error_named("UNKNOWN_TOPIC_OR_PARTITION")
_NO_LEADER = error_named("LEADER_NOT_AVAILABLE").code


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
        await client.retrying("Metadata", lambda deadline: client.topics(names, deadline))
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
    wanted = None if names is None else [MetadataRequestTopic(name=each) for each in names]
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)

    async def attempt(deadline: Deadline) -> MetadataResponse:
        answer = await client.send_to_any(request, deadline)
        client.cluster.update(answer)
        return answer

    answer = await client.retrying("Metadata", attempt)
    if names is not None:
        await _check_known(client, answer.topics)
    ranges: Mapping[TopicPartition, LogRange] = {}
    if offsets:
        ranges = await log_ranges(client, _partitions_of(answer.topics))
    found = [_topic(topic, ranges) for topic in answer.topics]
    return sorted(found, key=lambda topic: topic.name)


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


async def _check_known(client: KafkaClient, topics: Iterable[MetadataResponseTopic]) -> None:
    for topic in topics:
        name, error = topic.name or "", error_code(topic.error_code)
        if error == _UNKNOWN:
            raise TopicNotFoundError(name, await similar_topic(client, name))
        if error.code:
            raise topic_failure(error, name)


def _partitions_of(topics: Iterable[MetadataResponseTopic]) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name or "", each.partition_index)
        for topic in topics
        for each in topic.partitions
    ]


def _topic(
    topic: MetadataResponseTopic, ranges: Mapping[TopicPartition, LogRange]
) -> TopicDescription:
    name = topic.name or ""
    partitions = [_partition(name, each, ranges) for each in topic.partitions]
    return TopicDescription(
        name,
        topic.topic_id,
        topic.is_internal,
        tuple(sorted(partitions, key=lambda each: each.partition)),
        error_code(topic.error_code).name if topic.error_code else None,
    )


def _partition(
    topic: str, found: MetadataResponsePartition, ranges: Mapping[TopicPartition, LogRange]
) -> PartitionDescription:
    reach = ranges.get(TopicPartition(topic, found.partition_index), LogRange())
    leaderless = error_code(found.error_code or _NO_LEADER).name if found.leader_id < 0 else None
    return PartitionDescription(
        topic,
        found.partition_index,
        found.leader_id if found.leader_id >= 0 else None,
        found.leader_epoch,
        tuple(found.replica_nodes),
        tuple(found.isr_nodes),
        tuple(found.offline_replicas),
        reach.start,
        reach.end,
        reach.error or leaderless,
    )
