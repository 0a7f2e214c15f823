"""What Fetch requests have in common: topics by id or by name, and where to begin in each."""

from collections.abc import Iterable, Mapping
from uuid import UUID

from spark_kafka_source.fetch.leaders import ByTopic
from spark_kafka_source.protocol.messages.fetch import FetchPartition, FetchTopic

# Topics go by name up to v12, by id from v13 on; topics made before ids were have none (KIP-516).
FETCH_BY_NAME = 12


def fetch_topics(
    positions: ByTopic[int], topic_ids: Mapping[str, UUID], partition_max_bytes: int
) -> list[FetchTopic]:
    """What a request asks for: of each partition what comes at its position, up to so much."""
    return [
        FetchTopic(
            topic=name,
            topic_id=topic_ids[name],
            partitions=[
                FetchPartition(
                    partition=partition,
                    current_leader_epoch=leader_epoch,
                    fetch_offset=position,
                    partition_max_bytes=partition_max_bytes,
                )
                for partition, leader_epoch, position in partitions
            ],
        )
        for name, partitions in positions.items()
    ]


def highest_version(topic_ids: Iterable[UUID]) -> int | None:
    """The newest version of Fetch that can ask for these topics; None where each can."""
    return None if all(topic_id.int for topic_id in topic_ids) else FETCH_BY_NAME
