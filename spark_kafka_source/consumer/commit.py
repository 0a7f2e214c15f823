"""One commit of a consumer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from spark_kafka_source.groups import MemberOf, OffsetAndMetadata
from spark_kafka_source.net import Deadline
from spark_kafka_source.topic_partition import TopicPartition

CommitCallback = Callable[[Mapping[TopicPartition, OffsetAndMetadata], Exception | None], None]
"""A function of the offsets, and the error of their commit or None."""


@dataclass(slots=True)
class Commit:
    """Offsets on their way to the group. Once `is_done`, `error` is their error, or None."""

    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    member_of: MemberOf | None
    deadline: Deadline
    callback: CommitCallback | None
    is_done: bool = False
    error: Exception | None = None
    took_ms: float = 0.0
