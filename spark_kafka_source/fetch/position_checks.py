"""Checks whether positions are still in the log that was read (KIP-320), and look-ups of losses."""

import time
from collections.abc import Mapping
from typing import NamedTuple

from spark_kafka_source.client import LOOKUP_MS, UNKNOWN_TOPIC, KafkaClient, Log
from spark_kafka_source.errors import BrokerError, error_named
from spark_kafka_source.fetch.error_handler import ErrorHandler
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
from spark_kafka_source.net import Conversations
from spark_kafka_source.topic_partition import TopicPartition

_FENCED_LEADER_EPOCH = error_named("FENCED_LEADER_EPOCH")


class _Reach(NamedTuple):
    """The question to a leader of `leader_epoch`: where `reached_epoch` ends in its log."""

    reached_epoch: int
    leader_epoch: int


class PositionChecks:
    """Checks of positions against the logs of new leaders. The error handler gets the losses."""

    def __init__(
        self,
        client: KafkaClient,
        positions: Positions,
        error_handler: ErrorHandler,
        conversations: Conversations,
    ) -> None:
        self._client = client
        self._positions = positions
        self._error_handler = error_handler
        self._lookup_ms = min(LOOKUP_MS, client.config.default_api_timeout_ms)
        self._ends = PartitionLookups[_Reach, int](
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
            on_answer=lambda position, _, error: error_handler.lost(position, error),
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
        moved: dict[TopicPartition, _Reach] = {}
        for where, (_, topic_id, leader_epoch) in self._unchecked().items():
            position = self._positions[where]
            if position.is_elsewhere(topic_id):
                self._made_anew(position)
            elif leader_epoch < position.checked_epoch:
                # The metadata is old: a later leader epoch is known.
                self._client.cluster.forget_leaders()
                position.next_try.failed()
                error = BrokerError(_FENCED_LEADER_EPOCH, f"Fetch of {where}")
                self._error_handler.failed(error, position)
            elif position.known is not None and position.known.leader_epoch >= 0:
                moved[where] = _Reach(position.known.leader_epoch, leader_epoch)
            else:
                position.checked_epoch = leader_epoch
        self._ends.ask(moved)

    def is_in_doubt(self, position: Position) -> bool:
        """Return whether records fetched ahead may come from a log that was truncated since."""
        if position.known is None or position.known.leader_epoch < 0:
            return False
        log = self._client.cluster.log(position.topic_partition)
        if log is None:
            return False
        _, topic_id, leader_epoch = log
        return leader_epoch > position.checked_epoch and not position.is_elsewhere(topic_id)

    def out_of_range(self, position: Position) -> None:
        """Let the error handler move the position, or look up which offsets the log has."""
        if position.fetched:
            return  # The fetched records come first. The next fetch has the same error.
        if not self._error_handler.out_of_range(position):
            self._losses.ask({position.topic_partition: position.fetch_offset})
            position.next_try.failed()

    def _unchecked(self) -> dict[TopicPartition, Log]:
        """Return the logs of positions that were not checked against their current leader."""
        now_seconds = time.monotonic()
        return {
            position.topic_partition: log
            for position in self._positions
            if position.next is not None
            and position.next_try.at_seconds <= now_seconds
            and (log := self._client.cluster.log(position.topic_partition)) is not None
            and not position.is_checked(log)
        }

    async def _find_ends(
        self, questions: Mapping[TopicPartition, _Reach], answers: dict[TopicPartition, int]
    ) -> None:
        epochs = {where: reach.reached_epoch for where, reach in questions.items()}
        await epoch_end_offsets(
            self._client, epochs, timeout_ms=self._lookup_ms, on_answer=answers.update
        )

    async def _find_losses(
        self,
        offsets: Mapping[TopicPartition, int],
        answers: dict[TopicPartition, RecordsLostError],
    ) -> None:
        for where, offset in offsets.items():
            answers[where] = await _out_of_range(self._client, where, offset)

    def _is_current(self, position: Position, reach: _Reach) -> bool:
        """Return whether position and leader are still in the leader epochs of the question."""
        if position.known is None or position.known.leader_epoch != reach.reached_epoch:
            return False
        log = self._client.cluster.log(position.topic_partition)
        return log is not None and log[2] == reach.leader_epoch

    def _compare(self, position: Position, reach: _Reach, end: int) -> None:
        """Compare the position with `end`, where its leader epoch ends in the leader's log."""
        if position.next is None or position.known is None:
            return
        if 0 <= end < position.known.offset:
            first_lost = max(position.next.offset, end)
            error = LogTruncatedError(position.topic_partition, first_lost, end)
            self._error_handler.lost(position, error)
        elif 0 <= end < position.fetch_offset:
            position.refetch()  # Records fetched ahead may come from the truncated part.
        position.checked_epoch = reach.leader_epoch

    def _made_anew(self, position: Position) -> None:
        """Tell the error handler that the topic was made anew: its offsets are other records."""
        position.next_try.failed()
        if position.next is not None and not position.fetched:  # Fetched records come first.
            error = TopicGoneError(position.topic_partition, position.next.offset)
            self._error_handler.made_anew(position, error)


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
    lost = OffsetOutOfRangeError(where, offset, earliest, latest)
    lost.__cause__ = BrokerError(OFFSET_OUT_OF_RANGE, f"Fetch of {where} at offset {offset}")
    return lost
