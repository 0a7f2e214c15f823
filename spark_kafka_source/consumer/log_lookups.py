"""What a consumer's user asks of the cluster: topics, and offsets of logs."""

from collections.abc import Collection, Mapping

from spark_kafka_source.client import KafkaClient, Topic
from spark_kafka_source.client.partition_info import PartitionInfo
from spark_kafka_source.consumer.subscription import describe_topics
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
from spark_kafka_source.net import Deadline
from spark_kafka_source.records import IsolationLevel
from spark_kafka_source.topic_partition import TopicPartition

Timestamps = Mapping[TopicPartition, int]


class LogLookups:
    """Questions to the cluster. Each waits up to its timeout, and can be woken."""

    def __init__(
        self, client: KafkaClient, waiting: Waiting, isolation_level: IsolationLevel
    ) -> None:
        self._client = client
        self._waiting = waiting
        self._isolation_level = isolation_level

    async def describe(self, names: list[str] | None, timeout_ms: int) -> list[Topic]:
        """Return these topics, or all for None."""
        return await self._waiting.ask(
            "Metadata",
            describe_topics(self._client, names, Deadline.after_ms(timeout_ms)),
            timeout_ms,
        )

    async def partitions_of(self, topic: str, timeout_ms: int) -> list[PartitionInfo]:
        """Return the partitions of a topic. Raises `BrokerError` if there is no such topic."""
        for found in await self.describe([topic], timeout_ms):
            if found.error.code:
                raise topic_failure(found.error, topic)
            return found.partition_infos
        raise ProtocolError(f"Metadata of {topic}: the answer leaves it out")

    async def beginnings(
        self, partitions: Collection[TopicPartition], timeout_ms: int
    ) -> dict[TopicPartition, int]:
        """Return the first offsets."""
        return await self._at(dict.fromkeys(partitions, EARLIEST_TIMESTAMP), timeout_ms)

    async def ends(
        self, partitions: Collection[TopicPartition], timeout_ms: int
    ) -> dict[TopicPartition, int]:
        """Return the offsets after the last records that the isolation level shows."""
        return await self._at(dict.fromkeys(partitions, LATEST_TIMESTAMP), timeout_ms)

    async def for_times(
        self, timestamps_ms: Timestamps, timeout_ms: int
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first offsets at or after these times. Raises `LocalError` for one below 0."""
        wrong = [each for each, at_ms in timestamps_ms.items() if at_ms < 0]
        if wrong:
            raise LocalError(f"{wrong[0]}: a time is given in milliseconds since the epoch")
        found = await self._list(timestamps_ms, timeout_ms)
        return {each: None if at.offset == NO_OFFSET else at for each, at in found.items()}

    async def _at(self, timestamps: Timestamps, timeout_ms: int) -> dict[TopicPartition, int]:
        found = await self._list(timestamps, timeout_ms)
        return {each: at.offset for each, at in found.items()}

    async def _list(
        self, timestamps: Timestamps, timeout_ms: int
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        level = self._isolation_level
        return await self._waiting.ask(
            "ListOffsets",
            offsets_for_times(self._client, timestamps, level, timeout_ms=timeout_ms),
            timeout_ms,
        )
