"""Positions that the user moves, or asks for."""

from collections.abc import Mapping, Sequence

from spark_kafka_source.consumer.arguments import (
    Offsets,
    OneOrMany,
    checked_offsets,
    checked_partition,
    checked_partitions,
    is_one,
)
from spark_kafka_source.consumer.start_offsets import StartOffsets
from spark_kafka_source.consumer.waiting import Waiting
from spark_kafka_source.errors import LocalError
from spark_kafka_source.fetch.offset_reset import ResetPolicy
from spark_kafka_source.fetch.offsets import NO_OFFSET, OffsetAndEpoch
from spark_kafka_source.fetch.positions import Position, Positions
from spark_kafka_source.groups import OffsetAndMetadata
from spark_kafka_source.topic_partition import TopicPartition

_SEEK = "seek to"


class Seeking:
    """The positions of a consumer, as its user moves them and asks for them."""

    def __init__(self, positions: Positions, start_offsets: StartOffsets, waiting: Waiting) -> None:
        self._positions = positions
        self._start_offsets = start_offsets
        self._waiting = waiting

    def seek(
        self,
        where: TopicPartition | Offsets,
        offset: int | OffsetAndMetadata | None,
        leader_epoch: int,
    ) -> None:
        """Move the positions of one or of several partitions. After an error none has moved."""
        given = _given_offsets(where, offset, leader_epoch)
        for position, at in [(self._positions[partition], at) for partition, at in given.items()]:
            position.seek(at.offset, at.leader_epoch)

    def reset(self, given: Sequence[OneOrMany], policy: ResetPolicy) -> None:
        """Let these partitions, or all for none, go on by this policy."""
        partitions = checked_partitions(*given) or self._positions.partitions
        for position in [self._positions[partition] for partition in partitions]:
            position.reset(policy)

    def pause(self, given: Sequence[OneOrMany], *, paused: bool) -> None:
        """Return no records of these partitions, or return them again."""
        for position in [self._positions[partition] for partition in checked_partitions(*given)]:
            position.paused = paused

    async def position(
        self, given: OneOrMany, timeout_ms: int | None
    ) -> int | dict[TopicPartition, int]:
        """Return the position of one or of several partitions. Look up unknown positions.

        Raises `KafkaTimeoutError`, `NoOffsetError`.
        """
        positions = [self._positions[partition] for partition in checked_partitions(given)]
        unknown = [position for position in positions if position.next is None]
        if unknown:
            await self._find(unknown, timeout_ms)
        offsets = {
            position.topic_partition: NO_OFFSET if position.next is None else position.next.offset
            for position in positions
        }
        return offsets[positions[0].topic_partition] if is_one(given) else offsets

    async def _find(self, positions: Sequence[Position], timeout_ms: int | None) -> None:
        policies = {position.topic_partition: position.reset_to for position in positions}
        offsets: dict[TopicPartition, OffsetAndEpoch] = {}
        names = ", ".join(map(str, policies))
        await self._waiting.ask(
            f"position of {names}",
            lambda time_ms: self._start_offsets.find(policies, offsets, time_ms),
            timeout_ms,
        )
        for position in positions:
            if position.topic_partition in offsets:
                position.seek(*offsets[position.topic_partition])


def _given_offsets(
    where: TopicPartition | Offsets, offset: int | OffsetAndMetadata | None, leader_epoch: int
) -> Mapping[TopicPartition, OffsetAndMetadata]:
    one = checked_partition(where) if is_one(where) or offset is not None else None
    given = where if one is None else {one: offset}
    for partition, at in given.items() if isinstance(given, Mapping) else ():
        if at is None:  # As `committed` returns it, where nothing is committed.
            raise LocalError(
                f"Cannot seek in {partition} without an offset: give one, or say where to go on "
                "by `seek_to_beginning` or `seek_to_end`"
            )
    offsets = checked_offsets(given, _SEEK)
    if one is not None and leader_epoch >= 0:
        offsets[one] = OffsetAndMetadata(offsets[one].offset, leader_epoch)
    return offsets
