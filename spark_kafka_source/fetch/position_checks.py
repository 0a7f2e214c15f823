"""Checks whether positions are still in the log that was read (KIP-320), and look-ups of losses."""

import time
from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from spark_kafka_source.client import LOOKUP_MS, UNKNOWN_TOPIC, Cluster, KafkaClient
from spark_kafka_source.errors import BrokerError, error_named
from spark_kafka_source.fetch.answers import is_checked
from spark_kafka_source.fetch.losses import (
    OFFSET_OUT_OF_RANGE,
    LogTruncatedError,
    OffsetOutOfRangeError,
    RecordsLostError,
    TopicGoneError,
)
from spark_kafka_source.fetch.offsets import earliest_offsets, epoch_end_offsets, latest_offsets
from spark_kafka_source.fetch.partition_lookups import PartitionLookups
from spark_kafka_source.fetch.positions import Position, Positions
from spark_kafka_source.fetch.reactions import Reactions
from spark_kafka_source.net import Conversations
from spark_kafka_source.topic_partition import TopicPartition

_FENCED_LEADER_EPOCH = error_named("FENCED_LEADER_EPOCH")


class _Log(NamedTuple):
    """The question to a leader of `leader_epoch`: where `reached_epoch` ends in its log."""

    reached_epoch: int
    leader_epoch: int


class PositionChecks:
    """Checks of positions against the logs of new leaders. The reactions get the losses."""

    def __init__(
        self,
        client: KafkaClient,
        positions: Positions,
        reactions: Reactions,
        conversations: Conversations,
    ) -> None:
        self._client = client
        self._positions = positions
        self._reactions = reactions
        self._lookup_ms = min(LOOKUP_MS, client.config.default_api_timeout_ms)
        self._ends = PartitionLookups[_Log, int](
            conversations,
            positions,
            self._find_ends,
            is_current=self._is_current,
            on_answer=self._compare,
        )
        self._losses = PartitionLookups[int, RecordsLostError](
            conversations,
            positions,
            self._find_losses,
            is_current=_is_there,
            on_answer=lambda position, _, error: reactions.lost(position, error),
        )

    def take(self) -> None:
        """Take the answers that have come. Raises subclasses of `RecordsLostError`."""
        self._losses.take()
        self._ends.take()

    @property
    def is_due(self) -> bool:
        """Whether `look` would send a request now."""
        return not all(map(self._ends.is_asked, self._unchecked()))

    def look(self) -> None:
        """Ask each new leader how far its log reaches. Raises the same errors as `take`."""
        moved: dict[TopicPartition, _Log] = {}
        for where, (topic_id, leader_epoch) in self._unchecked().items():
            each = self._positions[where]
            if each.is_elsewhere(topic_id):
                self._made_anew(each)
            elif leader_epoch < each.checked_epoch:
                # The metadata is old: a later leader epoch is known.
                self._client.cluster.forget_leaders()
                each.next_try.failed()
                self._reactions.failed(BrokerError(_FENCED_LEADER_EPOCH, f"Fetch of {where}"), each)
            elif each.known is not None and each.known.leader_epoch >= 0:
                moved[where] = _Log(each.known.leader_epoch, leader_epoch)
            else:
                each.checked_epoch = leader_epoch
        self._ends.ask(moved)

    def is_in_doubt(self, position: Position) -> bool:
        """Return whether records fetched ahead may come from a log that was truncated since."""
        if position.known is None or position.known.leader_epoch < 0:
            return False
        log = log_of(self._client.cluster, position)
        if log is None or position.is_elsewhere(log[0]):
            return False
        return log[1] > position.checked_epoch

    def out_of_range(self, position: Position) -> None:
        """Let the reactions move the position, or look up which offsets the log has."""
        if position.fetched:
            return  # The fetched records come first. The next fetch has the same error.
        if not self._reactions.out_of_range(position):
            self._losses.ask({position.topic_partition: position.fetch_offset})
            position.next_try.failed()

    def _unchecked(self) -> dict[TopicPartition, tuple[UUID, int]]:
        """Return the logs of positions that were not checked against their current leader."""
        now_seconds = time.monotonic()
        return {
            each.topic_partition: log
            for each in self._positions
            if each.next is not None
            and each.next_try.at_seconds <= now_seconds
            and (log := log_of(self._client.cluster, each)) is not None
            and not is_checked(each, *log)
        }

    async def _find_ends(
        self, logs: Mapping[TopicPartition, _Log], found: dict[TopicPartition, int]
    ) -> None:
        epochs = {where: log.reached_epoch for where, log in logs.items()}
        await epoch_end_offsets(
            self._client, epochs, timeout_ms=self._lookup_ms, on_answer=found.update
        )

    async def _find_losses(
        self,
        offsets: Mapping[TopicPartition, int],
        found: dict[TopicPartition, RecordsLostError],
    ) -> None:
        for where, offset in offsets.items():
            found[where] = await _out_of_range(self._client, where, offset)

    def _is_current(self, position: Position, log: _Log) -> bool:
        """Return whether position and leader are still in the leader epochs of the question."""
        if position.known is None or position.known.leader_epoch != log.reached_epoch:
            return False
        found = log_of(self._client.cluster, position)
        return found is not None and found[1] == log.leader_epoch

    def _compare(self, position: Position, log: _Log, end: int) -> None:
        """Compare the position with `end`, where its leader epoch ends in the leader's log."""
        if position.next is None or position.known is None:
            return
        if 0 <= end < position.known.offset:
            first_lost = max(position.next.offset, end)
            error = LogTruncatedError(position.topic_partition, first_lost, end)
            self._reactions.lost(position, error)
        elif 0 <= end < position.fetch_offset:
            position.refetch()  # Records fetched ahead may come from the truncated part.
        position.checked_epoch = log.leader_epoch

    def _made_anew(self, position: Position) -> None:
        """Tell the reactions that the topic was made anew: its offsets are other records."""
        position.next_try.failed()
        if position.next is not None and not position.fetched:  # Fetched records come first.
            error = TopicGoneError(position.topic_partition, position.next.offset)
            self._reactions.made_anew(position, error)


def log_of(cluster: Cluster, position: Position) -> tuple[UUID, int] | None:
    """Return the topic's id and the leader epoch, or None if the leader is unknown.

    The leader is looked up once: another thread may forget it at any time.
    """
    where = position.topic_partition
    try:
        _, leader_epoch = cluster.leader(where)
    except BrokerError:
        return None
    return cluster.topics[where.topic].topic_id, leader_epoch


def _is_there(position: Position, offset: int) -> bool:
    return position.next is not None and position.next.offset == offset


async def _out_of_range(
    client: KafkaClient, where: TopicPartition, offset: int
) -> RecordsLostError:
    """Return the error, with the offsets of the log's start and end if there is a log."""
    try:
        earliest = (await earliest_offsets(client, [where]))[where]
        latest = (await latest_offsets(client, [where]))[where].offset
    except BrokerError as error:
        if error.error in UNKNOWN_TOPIC:
            return TopicGoneError(where, offset)
        raise
    found = OffsetOutOfRangeError(where, offset, earliest, latest)
    found.__cause__ = BrokerError(OFFSET_OUT_OF_RANGE, f"Fetch of {where} at offset {offset}")
    return found
