"""Positions that the user moves, or asks for."""

from collections.abc import Mapping, Sequence

from spark_kafka_source.consumer.partition_arguments import (
    Offsets,
    OneOrMany,
    checked_offset,
    checked_offsets,
    checked_partition,
    checked_partitions,
    is_one,
)
from spark_kafka_source.consumer.starts import Starts
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

    def __init__(self, positions: Positions, starts: Starts, waiting: Waiting) -> None:
        self._positions = positions
        self._starts = starts
        self._waiting = waiting

    def seek(
        self,
        where: TopicPartition | Offsets,
        offset: int | OffsetAndMetadata | None,
        leader_epoch: int,
    ) -> None:
        """Move the positions of one or of several partitions. After an error none has moved."""
        wanted = _wanted(where, offset, leader_epoch)
        for position, at in [(self._positions[each], at) for each, at in wanted.items()]:
            position.seek(at.offset, at.leader_epoch)

    def reset(self, given: Sequence[OneOrMany], policy: ResetPolicy) -> None:
        """Let these partitions, or all for none, go on by this policy."""
        partitions = checked_partitions(*given) or self._positions.partitions
        for each in [self._positions[each] for each in partitions]:
            each.reset(policy)

    def pause(self, given: Sequence[OneOrMany], *, paused: bool) -> None:
        """Return no records of these partitions, or return them again."""
        for each in [self._positions[each] for each in checked_partitions(*given)]:
            each.paused = paused

    async def position(
        self, given: OneOrMany, timeout_ms: int | None
    ) -> int | dict[TopicPartition, int]:
        """Return one position, or those of several partitions. Look up the unknown ones.

        Raises `KafkaTimeoutError`, `NoOffsetError`.
        """
        positions = [self._positions[each] for each in checked_partitions(given)]
        unknown = [each for each in positions if each.next is None]
        if unknown:
            await self._find(unknown, timeout_ms)
        found = {
            each.topic_partition: each.next.offset if each.next is not None else NO_OFFSET
            for each in positions
        }
        return found[positions[0].topic_partition] if is_one(given) else found

    async def _find(self, positions: Sequence[Position], timeout_ms: int | None) -> None:
        wanted = {each.topic_partition: each.reset_to for each in positions}
        found: dict[TopicPartition, OffsetAndEpoch] = {}
        names = ", ".join(map(str, wanted))
        await self._waiting.ask(
            f"position of {names}",
            lambda time_ms: self._starts.find(wanted, found, time_ms),
            timeout_ms,
        )
        for each in positions:
            if each.topic_partition in found:
                each.seek(*found[each.topic_partition])


def _wanted(
    where: TopicPartition | Offsets, offset: int | OffsetAndMetadata | None, leader_epoch: int
) -> Mapping[TopicPartition, OffsetAndMetadata]:
    if not is_one(where) and offset is None:
        return checked_offsets(where, _SEEK)
    partition = checked_partition(where)
    if offset is None:
        raise LocalError(f"Cannot seek in {partition} without an offset: give the offset, too")
    at = checked_offset(offset, partition, _SEEK)
    if leader_epoch >= 0:
        at = OffsetAndMetadata(at.offset, leader_epoch)
    return {partition: at}
