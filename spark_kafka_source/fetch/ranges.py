"""Ranges of offsets, planned by the driver and read by tasks."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from uuid import UUID

from spark_kafka_source.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The records of a partition from `start` to the one before `end`.

    `topic_id` is the id of the planned topic, and `leader_epoch` is the leader epoch in which its
    log reached `end`, if they are known. Then a topic that was made anew is not read in its place,
    nor records that a later leader wrote in place of lost ones.
    """

    topic_partition: TopicPartition
    start: int
    end: int
    topic_id: UUID | None = None
    leader_epoch: int = -1

    @property
    def size(self) -> int:
        """The number of offsets. There may be fewer records."""
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.topic_partition} [{self.start}, {self.end})"


def read_together(ranges: Iterable[OffsetRange]) -> list[dict[TopicPartition, OffsetRange]]:
    """Return groups of ranges to read together, with one range of each partition.

    Ranges that follow each other become one. Empty ones are left out.
    """
    rounds: list[dict[TopicPartition, OffsetRange]] = []
    for planned in ranges:
        if planned.start < planned.end:
            _add(planned, rounds)
    return rounds


def _add(planned: OffsetRange, rounds: list[dict[TopicPartition, OffsetRange]]) -> None:
    where = planned.topic_partition
    for together in rounds:
        known = together.get(where)
        if known is None:
            together[where] = planned
            return
        if replace(planned, start=known.start) == replace(known, end=planned.end) and (
            known.end == planned.start
        ):
            together[where] = replace(known, end=planned.end)
            return
    rounds.append({where: planned})
