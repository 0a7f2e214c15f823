"""How far logs reach, and which logs these are: what a driver plans from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class LogEnds:
    """How far partitions reach, as far as the isolation level shows it, or are to be read.

    `leader_epochs` are those of the leaders that said so, `topic_ids` the topics'; either lacks
    what an old broker does not tell.
    """

    offsets: Offsets
    leader_epochs: Mapping[TopicPartition, int] = field(default_factory=dict)
    topic_ids: Mapping[str, UUID] = field(default_factory=dict)
