"""A partition leader's state of each producer (KIP-98, KIP-360)."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from spark_kafka_source.errors import error_named
from spark_kafka_source.records import BatchHeader

REMEMBERED = 5
"""The number of last batches that the leader remembers of each producer."""

_NONE = -1
_COUNT = 1 << 31


class Written(NamedTuple):
    """A written batch: first and last sequence, base offset, greatest timestamp."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    timestamp_ms: int


@dataclass
class ProducerEntry:
    """One producer. `transaction_start` is the first offset of its open transaction in this log.

    `awaited` is the epoch and the least sequence of a batch that was to begin a transaction here.
    No greater sequence may come first.
    """

    epoch: int = _NONE
    batches: deque[Written] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    transaction_start: int | None = None
    awaited: tuple[int, int] | None = None

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record, or -1."""
        return self.batches[-1].last_sequence if self.batches else _NONE

    def duplicate(self, header: BatchHeader) -> Written | None:
        """Return the same batch, if it is among the last batches of this epoch."""
        for each in self.batches if header.producer_epoch == self.epoch else ():
            if each[:2] == (header.base_sequence, _last_sequence(header)):
                return each
        return None

    def has_transaction(self, epoch: int) -> bool:
        """Return whether a transaction of this epoch is open."""
        return self.transaction_start is not None and self.epoch == epoch

    def await_beginning(self, header: BatchHeader) -> None:
        """Note the first batch of a transaction before the coordinator has verified it."""
        epoch, sequence = self.awaited or (header.producer_epoch, header.base_sequence)
        if header.producer_epoch == epoch:
            sequence = min(sequence, header.base_sequence)
        elif header.producer_epoch > epoch:
            epoch, sequence = header.producer_epoch, header.base_sequence
        self.awaited = epoch, sequence

    def refusal(self, header: BatchHeader) -> int:
        """Return why a batch that is no duplicate cannot come next, or 0."""
        if header.producer_epoch < self.epoch:
            return error_named("INVALID_PRODUCER_EPOCH").code
        is_early = self.awaited is not None and header.base_sequence > self.awaited[1]
        if is_early or not self._comes_next(header):
            return error_named("OUT_OF_ORDER_SEQUENCE_NUMBER").code
        if self.transaction_start is not None and not header.is_transactional:
            return error_named("INVALID_TXN_STATE").code
        return 0

    def _comes_next(self, header: BatchHeader) -> bool:
        """Return whether the sequence fits. A producer new to the log may begin with any number."""
        if self.epoch == _NONE:
            return True
        if header.producer_epoch != self.epoch:
            return header.base_sequence == 0
        return header.base_sequence == (self.last_sequence + 1) % _COUNT

    def append(self, header: BatchHeader) -> None:
        """Remember a batch that is in the log. Its header has the offsets."""
        self._begin(header.producer_epoch)
        self.awaited = None
        self.batches.append(
            Written(
                header.base_sequence,
                _last_sequence(header),
                header.base_offset,
                header.max_timestamp,
            )
        )
        if header.is_transactional and self.transaction_start is None:
            self.transaction_start = header.base_offset

    def end(self, epoch: int) -> int | None:
        """End the transaction by a marker. Return its first offset, or None if it has none here."""
        self._begin(epoch)
        self.awaited = None
        began, self.transaction_start = self.transaction_start, None
        return began

    def reload(self) -> None:
        """Forget all but the last batch, as a broker's restart does."""
        while len(self.batches) > 1:
            self.batches.popleft()
        self.awaited = None

    def _begin(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.batches.clear()
        self.epoch = epoch


def _last_sequence(header: BatchHeader) -> int:
    return (header.base_sequence + header.last_offset_delta) % _COUNT
