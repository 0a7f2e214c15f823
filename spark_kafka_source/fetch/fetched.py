"""The records of one fetch for one partition, as chunks."""

from collections.abc import Iterator
from dataclasses import dataclass

from spark_kafka_source.fetch.config import FetchConfig
from spark_kafka_source.protocol.messages.fetch import PartitionData
from spark_kafka_source.records import AbortedTransaction, Chunk, RecordLimit, chunks
from spark_kafka_source.records.batch import MAX_OFFSET
from spark_kafka_source.topic_partition import TopicPartition


@dataclass(slots=True, eq=False, weakref_slot=True)
class Fetched:
    """The records of one answer for one partition, from `offset` on.

    `leader_epoch` is the leader epoch of the request, and `asked_bytes` its limit for the
    partition. `chunks` is iterated once. Only the iteration checks and decompresses records.
    """

    offset: int
    leader_epoch: int
    chunks: Iterator[Chunk]
    size_bytes: int
    asked_bytes: int
    node_id: int


def chunks_of(
    data: PartitionData,
    topic_partition: TopicPartition,
    offset: int,
    config: FetchConfig,
    *,
    limit: RecordLimit,
    end: int = MAX_OFFSET,
) -> Iterator[Chunk]:
    """Return the records of an answer with offsets in `[offset, end)`; see `records.chunks`."""
    return chunks(
        memoryview(data.records or b""),
        topic_partition=topic_partition,
        position=offset,
        end=end,
        check_crcs=config.check_crcs,
        isolation_level=config.isolation_level,
        limit=limit,
        aborted=[
            AbortedTransaction(aborted.producer_id, aborted.first_offset)
            for aborted in data.aborted_transactions or ()
        ],
    )
