"""Ends of logs with their leader epochs and topic ids, for the driver's plans."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class LogEnds:
    """Ends of partitions by the isolation level, or planned ends.

    `leader_epochs` has the epochs of the leaders that gave the ends. Old brokers give no epoch or
    no topic id, and some give no `cluster_id`: it is empty then.
    """

    offsets: Offsets
    leader_epochs: Mapping[TopicPartition, int] = field(default_factory=dict)
    topic_ids: Mapping[str, UUID] = field(default_factory=dict)
    cluster_id: str = ""
