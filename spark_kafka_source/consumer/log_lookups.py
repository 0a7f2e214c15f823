"""What a consumer's user asks of the cluster: topics, and offsets of logs."""

from collections.abc import Mapping

from spark_kafka_source.client import KafkaClient, Topic
from spark_kafka_source.client.cluster import PartitionInfo
from spark_kafka_source.consumer.arguments import OneOrMany, checked_partitions
from spark_kafka_source.consumer.topics import describe_topics
from spark_kafka_source.consumer.waiting import Waiting
from spark_kafka_source.denials import topic_failure
from spark_kafka_source.errors import LocalError, ProtocolError
from spark_kafka_source.fetch.offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    NO_OFFSET,
    OffsetAndTimestamp,
    offsets_for_times,
)
from spark_kafka_source.records import IsolationLevel
from spark_kafka_source.topic_partition import TopicPartition

Timestamps = Mapping[TopicPartition, int]


class LogLookups:
    """Questions to the cluster; see `KafkaConsumer`. Each can be woken."""

    def __init__(
        self, client: KafkaClient, waiting: Waiting, isolation_level: IsolationLevel
    ) -> None:
        self._client = client
        self._waiting = waiting
        self._isolation_level = isolation_level

    async def list_topics(self, timeout_ms: int | None) -> dict[str, Topic]:
        """Return all topics that this user may see."""
        return {topic.name: topic for topic in await self._describe(None, timeout_ms)}

    async def partitions_for(self, topic: str, timeout_ms: int | None) -> list[PartitionInfo]:
        """Return the partitions of a topic."""
        for described in await self._describe([topic], timeout_ms):
            if described.error.code:
                raise topic_failure(described.error, topic)
            return described.partition_infos
        raise ProtocolError(f"Metadata of {topic}: the answer leaves it out")

    async def _describe(self, names: list[str] | None, timeout_ms: int | None) -> list[Topic]:
        return await self._waiting.ask(
            "Metadata",
            lambda time_ms: describe_topics(self._client, names, timeout_ms=time_ms),
            timeout_ms,
        )

    async def beginning_offsets(
        self, given: OneOrMany, timeout_ms: int | None
    ) -> dict[TopicPartition, int]:
        """Return the first offset that each partition still has."""
        return await self._ends(given, EARLIEST_TIMESTAMP, timeout_ms)

    async def end_offsets(
        self, given: OneOrMany, timeout_ms: int | None
    ) -> dict[TopicPartition, int]:
        """Return the offsets after the last records that the isolation level shows."""
        return await self._ends(given, LATEST_TIMESTAMP, timeout_ms)

    async def offsets_for_times(
        self, timestamps_ms: Timestamps, timeout_ms: int | None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first offsets at or after these times. Raises `LocalError` for one below 0."""
        checked_partitions(timestamps_ms)
        wrong = [partition for partition, at_ms in timestamps_ms.items() if at_ms < 0]
        if wrong:
            raise LocalError(f"{wrong[0]}: a time is given in milliseconds since the epoch")
        listed = await self._list(timestamps_ms, timeout_ms)
        return {each: None if at.offset == NO_OFFSET else at for each, at in listed.items()}

    async def _ends(
        self, given: OneOrMany, end: int, timeout_ms: int | None
    ) -> dict[TopicPartition, int]:
        listed = await self._list(dict.fromkeys(checked_partitions(given), end), timeout_ms)
        return {partition: at.offset for partition, at in listed.items()}

    async def _list(
        self, timestamps: Timestamps, timeout_ms: int | None
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        level = self._isolation_level
        return await self._waiting.ask(
            "ListOffsets",
            lambda time_ms: offsets_for_times(self._client, timestamps, level, timeout_ms=time_ms),
            timeout_ms,
        )
