"""Partitions whose readers of committed records wait for a transaction to end (KIP-664)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from spark_kafka_source.admin.topics import partitions_named
from spark_kafka_source.client import LEADER, Broker, KafkaClient, Told, ask_each
from spark_kafka_source.fetch.offsets import latest_offsets
from spark_kafka_source.producer import ProducerId
from spark_kafka_source.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from spark_kafka_source.records import IsolationLevel
from spark_kafka_source.topic_partition import TopicPartition, each_partition, partitions_by_topic


@dataclass(frozen=True, slots=True)
class OpenWriter:
    """A producer that has a transaction open in a partition, from `start_offset` on."""

    producer: ProducerId
    start_offset: int
    last_written_ms: int
    """Timestamp of its last record batch, in ms, as the batch gives it; -1 if there is none."""


@dataclass(frozen=True, slots=True)
class HeldUpPartition:
    """A partition in which readers of committed records wait for the transactions of `writers`."""

    topic_partition: TopicPartition
    last_stable_offset: int
    end_offset: int
    writers: tuple[OpenWriter, ...]
    """In the order in which they began: readers wait for the first."""

    @property
    def offsets_held_up(self) -> int:
        """Number of offsets that such readers do not see yet."""
        return max(self.end_offset - self.last_stable_offset, 0)


async def held_up(
    client: KafkaClient, topics: Iterable[str | TopicPartition]
) -> list[HeldUpPartition]:
    """Return the partitions of topics, or these partitions, in order. See `KafkaAdmin.held_up`."""
    asked = await partitions_named(client, topics)
    writers = await open_writers(client, asked)
    stable = await latest_offsets(client, asked, IsolationLevel.READ_COMMITTED)
    ends = await latest_offsets(client, asked)
    return [
        HeldUpPartition(where, stable[where].offset, ends[where].offset, writers[where])
        for where in asked
    ]


async def open_writers(
    client: KafkaClient, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
) -> dict[TopicPartition, tuple[OpenWriter, ...]]:
    """Return the producers with an open transaction in each partition, the first to begin first."""
    return await ask_each(
        client,
        "DescribeProducers",
        LEADER,
        partitions,
        request=_request,
        answers=_open_writers,
        timeout_ms=timeout_ms,
    )


def _request(partitions: Iterable[TopicPartition]) -> DescribeProducersRequest:
    by_topic = partitions_by_topic(partitions)
    return DescribeProducersRequest([TopicRequest(*topic) for topic in by_topic.items()])


def _open_writers(
    answer: DescribeProducersResponse, _: Broker
) -> Iterator[Told[TopicPartition, tuple[OpenWriter, ...]]]:
    for where, partition in each_partition(answer.topics):
        writers = [
            OpenWriter(
                ProducerId(producer.producer_id, producer.producer_epoch),
                producer.current_txn_start_offset,
                producer.last_timestamp,
            )
            for producer in partition.active_producers
            if producer.current_txn_start_offset >= 0
        ]
        writers.sort(key=lambda writer: writer.start_offset)
        yield Told(where, tuple(writers), partition.error_code)
