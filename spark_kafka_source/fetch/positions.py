"""The positions of a reader in its partitions, and the records fetched ahead of them."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from uuid import UUID

from spark_kafka_source.client import Log, NextTry, Retry
from spark_kafka_source.errors import LocalError
from spark_kafka_source.fetch.offset_reset import ResetPolicy
from spark_kafka_source.fetch.offsets import OffsetAndEpoch
from spark_kafka_source.records import Chunk
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


@dataclass(slots=True)
class Position:
    """One partition of a reader.

    `next` is the next record to hand out, or None until the start is known. `fetch_offset` is the
    start of the next fetch, after all records in `fetched`. `end` is the offset after the last one
    to read, or None. `end_epoch` is the leader epoch in which the log had all records before `end`,
    or -1 if it is unknown.
    """

    topic_partition: TopicPartition
    next: OffsetAndEpoch | None = None
    end: int | None = None
    end_epoch: int = -1
    fetch_offset: int = 0
    fetched: deque[Fetched] = field(default_factory=deque)
    paused: bool = False
    is_held: bool = False
    """Whether the partition may be given up; nothing is handed out until that is decided."""
    reset_to: ResetPolicy | None = None
    checked_epoch: int = -1
    """The leader epoch whose log is known to reach as far as `known`."""
    high_watermark: int | None = None
    last_stable_offset: int | None = None
    topic_id: UUID | None = None
    """The id of its topic. A topic that was made anew has another id, and another log."""
    doubted_at_seconds: float = 0.0
    """When the leader last said that it does not lead; metadata from after that is awaited."""
    replica_id: int | None = None
    """A broker to fetch from that is nearer than the leader (KIP-392)."""
    replica_until_seconds: float = 0.0
    batch_bytes: int = 0
    """The size of a batch that was cut in an answer, or 0."""
    next_try: NextTry = field(
        default_factory=lambda: NextTry(Retry().pause_seconds), compare=False, repr=False
    )
    """The next fetch or look-up after an error."""

    @property
    def known(self) -> OffsetAndEpoch | None:
        """The offset up to which the log is known to be the same, and the leader epoch there."""
        return self.next if self.end is None else OffsetAndEpoch(self.end, self.end_epoch)

    @property
    def is_over(self) -> bool:
        """Whether all records before the end were handed out."""
        return self.end is not None and self.next is not None and self.next.offset >= self.end

    @property
    def is_fetched_to_end(self) -> bool:
        """Whether all records before the end were fetched."""
        return self.end is not None and self.fetch_offset >= self.end

    @property
    def is_stuck(self) -> bool:
        """Whether the last fetch does not tell where the next one begins."""
        return bool(self.fetched) and self.fetch_offset <= self.fetched[-1].offset

    def seek(self, offset: int, leader_epoch: int = -1) -> None:
        """Go on from this offset. Drop records that were fetched for another one."""
        self.next = OffsetAndEpoch(offset, leader_epoch)
        self.checked_epoch = leader_epoch
        self.topic_id = self.reset_to = None
        self.next_try.reset()
        self.refetch()

    def begin(self, start: int, end: int, end_epoch: int, topic_id: UUID | None) -> None:
        """Read from `start` to the record before `end`; the log reached `end` in `end_epoch`."""
        self.next, self.fetch_offset = OffsetAndEpoch(start), start
        self.end, self.end_epoch = end, end_epoch
        self.checked_epoch, self.topic_id = end_epoch, topic_id

    def skip_to(self, offset: int) -> None:
        """Pass over the records before this offset, in the same log."""
        if self.next is not None:
            self.next = OffsetAndEpoch(offset, self.next.leader_epoch)
        self.next_try.reset()
        self.refetch()

    def reset(self, policy: ResetPolicy | None) -> None:
        """Forget the position: go on by the reset policy, or from the committed offset."""
        self.next, self.reset_to = None, policy
        self.next_try.reset()
        self.fetched.clear()

    def refetch(self) -> None:
        """Drop the fetched records, and fetch them again."""
        self.fetched.clear()
        if self.next is not None:
            self.fetch_offset = self.next.offset

    def handed_out(self, offset: int, leader_epoch: int) -> None:
        """Note that all records before this offset were handed out, from a log that was checked."""
        self.next = OffsetAndEpoch(offset, leader_epoch)
        self.checked_epoch = max(self.checked_epoch, leader_epoch)

    def back_to(self, offset: int) -> OffsetAndEpoch | None:
        """Go back to this offset, and return the position. Fetched records are kept.

        The records from here on are handed out again, unless the position moves on before.
        """
        if self.next is not None:
            self.next = OffsetAndEpoch(offset, self.next.leader_epoch)
        return self.next

    def is_elsewhere(self, topic_id: UUID) -> bool:
        """Return whether this id is not that of its topic."""
        return bool(topic_id.int) and self.topic_id not in (None, topic_id)

    def is_checked(self, log: Log) -> bool:
        """Return whether the leader's log is known to be the one that was read so far (KIP-320)."""
        _, topic_id, leader_epoch = log
        if self.is_elsewhere(topic_id):
            return False
        if self.checked_epoch < 0 or leader_epoch < 0:
            return True
        # Without topic ids a lower epoch may belong to a topic that was made anew by this name.
        is_lower = leader_epoch < self.checked_epoch
        return leader_epoch == self.checked_epoch or (is_lower and not topic_id.int)

    def lag(self, end: int | None) -> int | None:
        """Return the distance to that end in offsets, or None if either is unknown."""
        return None if end is None or self.next is None else max(0, end - self.next.offset)


class Positions:
    """The partitions of a reader, in the order in which they were given to it."""

    def __init__(self, pause_seconds: Callable[[int], float]) -> None:
        """Create it. `pause_seconds` gives the pauses after errors of a position."""
        self._pause_seconds = pause_seconds
        self._by_partition: dict[TopicPartition, Position] = {}

    def __iter__(self) -> Iterator[Position]:
        return iter(list(self._by_partition.values()))

    def __contains__(self, topic_partition: object) -> bool:
        return topic_partition in self._by_partition

    def __len__(self) -> int:
        return len(self._by_partition)

    def __getitem__(self, topic_partition: TopicPartition) -> Position:
        position = self._by_partition.get(topic_partition)
        if position is None:
            raise LocalError(
                f"{topic_partition} is not assigned to this consumer; assigned are: "
                f"{', '.join(map(str, sorted(self._by_partition))) or 'none'}"
            )
        return position

    def get(self, topic_partition: TopicPartition) -> Position | None:
        """Return the position of a partition, or None if it is not assigned."""
        return self._by_partition.get(topic_partition)

    def hold(self, topic_partitions: Collection[TopicPartition]) -> None:
        """Let these partitions hand out nothing for now, and all others go on."""
        for position in self:
            position.is_held = position.topic_partition in topic_partitions

    def keep(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Keep exactly these partitions. Those that stay keep their positions; others have none."""
        before = self._by_partition
        self._by_partition = {
            where: before.get(where) or Position(where, next_try=NextTry(self._pause_seconds))
            for where in dict.fromkeys(topic_partitions)
        }

    @property
    def partitions(self) -> list[TopicPartition]:
        """All partitions, in their order."""
        return list(self._by_partition)
