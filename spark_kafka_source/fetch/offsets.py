"""Look-ups of offsets: the ends of a log, offsets by time, and the ends of leader epochs.

https://kafka.apache.org/protocol#The_Messages_ListOffsets, and KIP-320 for leader epochs.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from spark_kafka_source.client import LEADER, Broker, KafkaClient, Told, ask_each
from spark_kafka_source.protocol import Request, Response
from spark_kafka_source.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from spark_kafka_source.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from spark_kafka_source.records import IsolationLevel
from spark_kafka_source.topic_partition import TopicPartition, each_partition

Q = TypeVar("Q")
P = TypeVar("P")
A = TypeVar("A")
R = TypeVar("R", bound=Response)

ByTopic = Mapping[str, list[P]]
"""The partitions of a request by topic, as the request has them."""


async def ask_leaders(
    client: KafkaClient,
    what: str,
    questions: Mapping[TopicPartition, Q],
    *,
    partition: Callable[[int, int, Q], P],
    request: Callable[[ByTopic[P]], Request[R]],
    answers: Callable[[R, Broker], Iterable[Told[TopicPartition, A]]],
    timeout_ms: int | None = None,
    on_answer: Callable[[Mapping[TopicPartition, A]], None] = lambda _: None,
) -> dict[TopicPartition, A]:
    """Send one request to each leader, and return the answer for each partition; see `ask_each`.

    `partition` makes the part of a request about one partition, of its number, its known leader
    epoch and the question. `request` makes the request to one leader. Each error of a partition is
    raised.
    """

    def of_leader(asked: Sequence[TopicPartition]) -> Request[R]:
        by_topic: dict[str, list[P]] = defaultdict(list)
        for where in asked:
            _, leader_epoch = client.cluster.leader(where)
            asks = partition(where.partition, leader_epoch, questions[where])
            by_topic[where.topic].append(asks)
        return request(by_topic)

    return await ask_each(
        client,
        what,
        LEADER,
        questions,
        request=of_leader,
        answers=answers,
        timeout_ms=timeout_ms,
        on_answer=on_answer,
    )


# With any other number the broker takes the client for a follower, and shows uncommitted records.
_CONSUMER = -1

LATEST_TIMESTAMP = -1
"""The timestamp that means the high watermark, or with `read_committed` the last stable offset."""
EARLIEST_TIMESTAMP = -2
"""The timestamp that means the start of the log."""
NO_OFFSET = -1
"""The answer if no record is that late."""


class OffsetAndEpoch(NamedTuple):
    """An offset, and the leader epoch of the record there, or -1 if it is unknown."""

    offset: int
    leader_epoch: int = -1


class OffsetAndTimestamp(NamedTuple):
    """A record's offset, leader epoch (-1 if unknown), and timestamp in ms since 1970."""

    offset: int
    leader_epoch: int
    timestamp_ms: int


async def earliest_offsets(
    client: KafkaClient, topic_partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return the first offset that each partition still has."""
    starts = await list_offsets(client, dict.fromkeys(topic_partitions, EARLIEST_TIMESTAMP))
    return {partition: start.offset for partition, start in starts.items()}


async def latest_offsets(
    client: KafkaClient,
    topic_partitions: Iterable[TopicPartition],
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[TopicPartition, OffsetAndEpoch]:
    """Return the offset after the last record that each partition shows at this isolation level."""
    return await list_offsets(
        client, dict.fromkeys(topic_partitions, LATEST_TIMESTAMP), isolation_level
    )


async def list_offsets(
    client: KafkaClient,
    timestamps: Mapping[TopicPartition, int],
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[TopicPartition, OffsetAndEpoch]:
    """Return the offset of the first record at or after each timestamp, in ms since 1970.

    `LATEST_TIMESTAMP` and `EARLIEST_TIMESTAMP` mean the ends of the log. The offset is `NO_OFFSET`
    if no record is that late. Raises the errors of `ask_leaders`.
    """
    offsets = await offsets_for_times(client, timestamps, isolation_level)
    return {
        partition: OffsetAndEpoch(at.offset, at.leader_epoch) for partition, at in offsets.items()
    }


async def offsets_for_times(
    client: KafkaClient,
    timestamps: Mapping[TopicPartition, int],
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    *,
    timeout_ms: int | None = None,
    on_answer: Callable[[Mapping[TopicPartition, OffsetAndTimestamp]], None] = lambda _: None,
) -> dict[TopicPartition, OffsetAndTimestamp]:
    """Return the same as `list_offsets`, with timestamps. See `ask_leaders` for the rest."""

    def request(by_topic: ByTopic[ListOffsetsPartition]) -> ListOffsetsRequest:
        topics = [ListOffsetsTopic(*topic) for topic in by_topic.items()]
        longest_ms = client.config.connection.request_timeout_ms
        return ListOffsetsRequest(_CONSUMER, isolation_level, topics, longest_ms)

    return await ask_leaders(
        client,
        "ListOffsets",
        timestamps,
        partition=ListOffsetsPartition,
        request=request,
        answers=_listed,
        timeout_ms=timeout_ms,
        on_answer=on_answer,
    )


async def epoch_end_offsets(
    client: KafkaClient,
    leader_epochs: Mapping[TopicPartition, int],
    *,
    timeout_ms: int | None = None,
    on_answer: Callable[[Mapping[TopicPartition, int]], None] = lambda _: None,
) -> dict[TopicPartition, int]:
    """Return the offset after the last record of a leader epoch, for each partition (KIP-320).

    The offset is -1 if the leader does not know the epoch. See `ask_leaders` for the rest.
    """
    return await ask_leaders(
        client,
        "OffsetForLeaderEpoch",
        leader_epochs,
        partition=OffsetForLeaderPartition,
        request=_epoch_request,
        answers=_epoch_ends,
        timeout_ms=timeout_ms,
        on_answer=on_answer,
    )


def _listed(
    answer: ListOffsetsResponse, _: Broker
) -> Iterator[Told[TopicPartition, OffsetAndTimestamp]]:
    for where, row in each_partition(answer.topics):
        offset = OffsetAndTimestamp(row.offset, row.leader_epoch, row.timestamp)
        yield Told(where, offset, row.error_code)


def _epoch_request(by_topic: ByTopic[OffsetForLeaderPartition]) -> OffsetForLeaderEpochRequest:
    topics = [OffsetForLeaderTopic(*topic) for topic in by_topic.items()]
    return OffsetForLeaderEpochRequest(_CONSUMER, topics)


def _epoch_ends(
    answer: OffsetForLeaderEpochResponse, _: Broker
) -> Iterator[Told[TopicPartition, int]]:
    for topic in answer.topics:
        for partition in topic.partitions:
            where = TopicPartition(topic.topic, partition.partition)
            yield Told(where, partition.end_offset, partition.error_code)
