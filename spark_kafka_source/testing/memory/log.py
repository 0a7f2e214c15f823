"""The log of one partition in memory: encoded batches, and the leader's state of the partition."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source.records import (
    Record,
    chunks,
    encode_batch,
    encode_control_batch,
    to_arrow,
)
from spark_kafka_source.records.batch import HEADER, MAGIC_AT, BatchHeader
from spark_kafka_source.testing.memory.producers import ProducerEntry
from spark_kafka_source.topic_partition import TopicPartition

_NO_TOPIC = TopicPartition("", 0)
_NO_RECORD = (-1, -1)


class Batch(NamedTuple):
    """One encoded batch, and its offsets."""

    base_offset: int
    last_offset: int
    data: bytes


class Aborted(NamedTuple):
    """An aborted transaction, from its first record to its marker."""

    producer_id: int
    first_offset: int
    last_offset: int


@dataclass
class PartitionLog:
    """A leader's log. Its high watermark and last stable offset follow appends by default."""

    leader_id: int
    leader_epoch: int = 0
    log_start_offset: int = 0
    batches: list[Batch] = field(default_factory=list)
    aborted: list[Aborted] = field(default_factory=list)
    times: list[tuple[int, int]] = field(default_factory=list)
    fixed_high_watermark: int | None = None
    fixed_last_stable_offset: int | None = None
    replicas_by_rack: dict[str, int] = field(default_factory=dict)
    """Nodes by the rack of consumers that may read from them instead of the leader (KIP-392)."""
    producers: dict[int, ProducerEntry] = field(default_factory=dict)
    """Producers that wrote with `produce`, by producer id."""

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        last = self.batches[-1].last_offset + 1 if self.batches else 0
        return max(last, self.log_start_offset)

    @property
    def high_watermark(self) -> int:
        """The end of what consumers may read."""
        return self.end_offset if self.fixed_high_watermark is None else self.fixed_high_watermark

    @property
    def last_stable_offset(self) -> int:
        """The end of what READ_COMMITTED may read: the first open transaction."""
        fixed = self.fixed_last_stable_offset
        if fixed is not None:
            return min(fixed, self.high_watermark)
        open_from = (each.transaction_start for each in self.producers.values())
        return min([self.high_watermark, *(each for each in open_from if each is not None)])

    @property
    def epoch_starts(self) -> dict[int, int]:
        """Return the start offset of each leader epoch, including the present one."""
        starts: dict[int, int] = {}
        for batch in self.batches:
            header = BatchHeader._make(HEADER.unpack_from(batch.data))
            starts.setdefault(header.partition_leader_epoch, batch.base_offset)
        starts.setdefault(self.leader_epoch, self.end_offset)
        return starts

    def epoch_end(self, leader_epoch: int) -> tuple[int, int]:
        """Return the last epoch up to `leader_epoch` and its end offset; -1 for a later epoch."""
        starts = self.epoch_starts
        if leader_epoch == self.leader_epoch:
            return leader_epoch, self.end_offset
        later = [start for epoch, start in starts.items() if epoch > leader_epoch]
        known = [epoch for epoch in starts if epoch <= leader_epoch]
        return (max(known, default=leader_epoch), min(later)) if later else (-1, -1)

    def epoch_of(self, offset: int) -> int:
        """Return the epoch of the record at `offset`, or the present epoch; -1 for offset -1."""
        if offset < 0:
            return -1
        for batch in self.batches:
            if batch.base_offset <= offset <= batch.last_offset:
                return BatchHeader._make(HEADER.unpack_from(batch.data)).partition_leader_epoch
        return self.leader_epoch

    def truncate(self, offset: int) -> None:
        """Lose all records from `offset` on, as after the election of a replica that lacks them."""
        self.batches = [batch for batch in self.batches if batch.last_offset < offset]
        self.times = [each for each in self.times if each[1] < offset]

    def append(self, *records: Record | bytes, **how: Any) -> int:
        """Append one batch of records (bytes: a value only). `how` goes to `encode_batch`."""
        base_offset: int = how.pop("base_offset", self.end_offset)
        whole = [Record(value=each) if isinstance(each, bytes) else each for each in records]
        self.append_batch(
            encode_batch(whole, base_offset=base_offset, leader_epoch=self.leader_epoch, **how)
        )
        self.times += [
            (record.timestamp_ms, base_offset + (record.offset_delta or position))
            for position, record in enumerate(whole)
        ]
        return base_offset

    def produce(self, data: bytes) -> int:
        """Append a producer's batch. Return the offset of its first record."""
        base_offset = self.end_offset
        numbered = base_offset.to_bytes(8) + data[8:12] + self.leader_epoch.to_bytes(4)
        self.append_batch(numbered + data[MAGIC_AT:])
        header = BatchHeader._make(HEADER.unpack_from(self.batches[-1].data))
        if header.producer_id >= 0:
            self.producers.setdefault(header.producer_id, ProducerEntry()).append(header)
        for chunk in chunks(self.batches[-1].data, topic_partition=_NO_TOPIC):
            columns = to_arrow(chunk)
            times_ms = pc.divide(columns["timestamp"].view(pa.int64()), 1000).to_pylist()
            self.times += zip(times_ms, columns["offset"].to_pylist(), strict=True)
        return base_offset

    def end_transaction(self, producer_id: int, epoch: int, *, commit: bool, now_ms: int) -> None:
        """Write the transaction marker of a producer that writes with `produce`."""
        entry = self.producers.setdefault(producer_id, ProducerEntry())
        began = entry.end(epoch)
        offset = self.end_offset
        marker = encode_control_batch(
            commit=commit,
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=epoch,
            timestamp_ms=now_ms,
            leader_epoch=self.leader_epoch,
        )
        self.append_batch(marker)
        self.times.append((now_ms, offset))  # Kafka's index of times has markers, too.
        if began is not None and not commit:
            self.aborted.append(Aborted(producer_id, began, offset))

    def append_marker(self, producer_id: int, *, commit: bool, first_offset: int = 0) -> None:
        """End a producer's transaction. An aborted transaction began at `first_offset`."""
        offset = self.end_offset
        self.append_batch(
            encode_control_batch(commit=commit, base_offset=offset, producer_id=producer_id)
        )
        if not commit:
            self.aborted.append(Aborted(producer_id, first_offset, offset))

    def append_batch(self, data: bytes) -> None:
        """Append bytes that begin with a batch header. The rest may be anything."""
        header = BatchHeader._make(HEADER.unpack_from(data))
        self.batches.append(Batch(header.base_offset, header.last_offset, data))

    def visible_end(self, isolation_level: int) -> int:
        """Return the end of what a consumer of this isolation level may read."""
        return self.last_stable_offset if isolation_level else self.high_watermark

    def read(self, offset: int, end: int, max_bytes: int) -> bytes:
        """Read from the batch with `offset`. The first is whole (KIP-74), the last cut to fit."""
        found = [
            batch.data
            for batch in self.batches
            if batch.last_offset >= offset and batch.base_offset < end
        ]
        if not found:
            return b""
        return b"".join(found)[: max(max_bytes, len(found[0]))]

    def preferred_replica(self, node_id: int, rack_id: str) -> int:
        """Return the replica to which the leader sends a consumer, or -1."""
        nearest = self.replicas_by_rack.get(rack_id, -1) if node_id == self.leader_id else -1
        return nearest if nearest != node_id else -1

    def aborted_since(self, offset: int) -> Iterable[Aborted]:
        """Yield the aborted transactions that end at `offset` or later."""
        return (each for each in self.aborted if each.last_offset >= offset)

    def offset_at(self, timestamp: int) -> tuple[int, int]:
        """Return time and offset of the first record at or after a time in ms, or -1 for both."""
        left = (each for each in self.times if each[1] >= self.log_start_offset)
        return next((each for each in left if each[0] >= timestamp), _NO_RECORD)

    def greatest_time(self) -> tuple[int, int]:
        """Return the greatest time and its offset, even of a deleted record, or -1 for both."""
        return max(self.times, key=lambda each: each[0], default=_NO_RECORD)
