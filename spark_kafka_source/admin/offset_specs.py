"""Offsets of partitions by what they mean: an end of a log, a time, a place in tiered storage.

Kafka's `OffsetSpec`: KIP-396, KIP-734, and KIP-405, KIP-1005 and KIP-1023 for tiered storage.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spark_kafka_source.admin.topics import partitions_named
from spark_kafka_source.client import KafkaClient
from spark_kafka_source.consumer.arguments import checked_partitions
from spark_kafka_source.errors import ConfigurationError, in_short
from spark_kafka_source.fetch.offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    NO_OFFSET,
    OffsetAndTimestamp,
    offsets_for_times,
)
from spark_kafka_source.protocol.messages.list_offsets import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    MAX_TIMESTAMP,
)
from spark_kafka_source.records import IsolationLevel
from spark_kafka_source.timestamps import parse_timestamp
from spark_kafka_source.topic_partition import TopicPartition

_LEVELS = {str(each): each for each in IsolationLevel}


@dataclass(frozen=True, slots=True)
class OffsetSpec:
    """The meaning of an offset to look up, in the terms of Kafka's `OffsetSpec`.

        admin.list_offsets({TopicPartition("events", 0): OffsetSpec.earliest_local()})

    Tiered storage keeps the older segments of a log in remote storage (`remote.storage.enable` of
    the topic). Brokers delete their own copies after `local.retention.ms`.
    """

    timestamp: int
    """Milliseconds since 1970, or Kafka's number for one of the others, which is below 0."""

    @classmethod
    def latest(cls) -> "OffsetSpec":
        """Return the offset after the last record that the isolation level shows."""
        return cls(LATEST_TIMESTAMP)

    @classmethod
    def earliest(cls) -> "OffsetSpec":
        """Return the first offset that can be read, from remote storage, too."""
        return cls(EARLIEST_TIMESTAMP)

    @classmethod
    def for_timestamp(cls, timestamp_ms: int | str) -> "OffsetSpec":
        """Return the first record at or after a time: milliseconds since 1970, or ISO 8601 text.

        Raises `ConfigurationError` for a number below 0, and for a text without a zone.
        """
        return cls(parse_timestamp("timestamp_ms", timestamp_ms))

    @classmethod
    def max_timestamp(cls) -> "OffsetSpec":
        """Return the record with the greatest timestamp (KIP-734). From Kafka 3.0 on."""
        return cls(MAX_TIMESTAMP)

    @classmethod
    def earliest_local(cls) -> "OffsetSpec":
        """Return the first offset on the leader's own disk (KIP-405). From Kafka 3.5 on.

        It is the first offset of the log if the topic has no tiered storage.
        """
        return cls(EARLIEST_LOCAL_TIMESTAMP)

    @classmethod
    def latest_tiered(cls) -> "OffsetSpec":
        """Return the last offset in remote storage (KIP-1005). From Kafka 3.9 on."""
        return cls(LATEST_TIERED_TIMESTAMP)

    @classmethod
    def earliest_pending_upload(cls) -> "OffsetSpec":
        """Return the first offset that remote storage lacks (KIP-1023). From Kafka 4.2 on."""
        return cls(EARLIEST_PENDING_UPLOAD_TIMESTAMP)


async def list_offsets(
    client: KafkaClient, specs: Any, isolation_level: IsolationLevel
) -> dict[TopicPartition, OffsetAndTimestamp | None]:
    """Return the offset of each partition. See `KafkaAdmin.list_offsets`."""
    if not isinstance(specs, Mapping):
        expected = "Give a dict, as {TopicPartition('events', 0): OffsetSpec.latest()}"
        raise ConfigurationError("specs", "found {}", expected, in_short(specs))
    timestamps = {
        where: _timestamp(where, spec)
        for where, spec in zip(checked_partitions(specs), specs.values(), strict=True)
    }
    await partitions_named(client, timestamps)
    offsets = await offsets_for_times(client, timestamps, isolation_level)
    return {where: None if at.offset == NO_OFFSET else at for where, at in offsets.items()}


def parsed_level(given: str) -> IsolationLevel:
    """Return an isolation level by its name. Raises `ConfigurationError`."""
    level = _LEVELS.get(given) if isinstance(given, str) else None
    if level is None:
        expected = f"Give one of {', '.join(_LEVELS)}"
        raise ConfigurationError("isolation_level", "found {}", expected, in_short(given))
    return level


def _timestamp(where: TopicPartition, given: Any) -> int:
    if isinstance(given, OffsetSpec):
        return given.timestamp
    problem = f"found {{}} for {where}"
    raise ConfigurationError("specs", problem, "Give an OffsetSpec", in_short(given))
