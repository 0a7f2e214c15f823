"""What a partition's leader remembers of each producer that writes there (KIP-98, KIP-360)."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from spark_kafka_source.errors import error_named
from spark_kafka_source.records import BatchHeader

REMEMBERED = 5
"""So many batches of a producer are known again."""

_NONE = -1
_COUNT = 1 << 31


class Written(NamedTuple):
    """A batch: its first and last sequence, the offset that it begins at, its greatest time."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    timestamp_ms: int


@dataclass
class ProducerEntry:
    """One producer; `transaction_start` is where its open transaction begins in this log.

    `awaited` are an epoch and the least sequence by which a transaction was to begin here: none
    that is greater may come before it.
    """

    epoch: int = _NONE
    batches: deque[Written] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    transaction_start: int | None = None
    awaited: tuple[int, int] | None = None

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else _NONE

    def duplicate(self, header: BatchHeader) -> Written | None:
        """The same batch, where it is one of the last of this epoch."""
        for each in self.batches if header.producer_epoch == self.epoch else ():
            if each[:2] == (header.base_sequence, _last_sequence(header)):
                return each
        return None

    def has_transaction(self, epoch: int) -> bool:
        return self.transaction_start is not None and self.epoch == epoch

    def await_beginning(self, header: BatchHeader) -> None:
        """The coordinator is asked about a batch, and it is not known yet what it says."""
        epoch, sequence = self.awaited or (header.producer_epoch, header.base_sequence)
        if header.producer_epoch == epoch:
            sequence = min(sequence, header.base_sequence)
        elif header.producer_epoch > epoch:
            epoch, sequence = header.producer_epoch, header.base_sequence
        self.awaited = epoch, sequence

    def refusal(self, header: BatchHeader) -> int:
        """Why a batch that is no duplicate cannot come next, or 0."""
        if header.producer_epoch < self.epoch:
            return error_named("INVALID_PRODUCER_EPOCH").code
        is_early = self.awaited is not None and header.base_sequence > self.awaited[1]
        if is_early or not self._comes_next(header):
            return error_named("OUT_OF_ORDER_SEQUENCE_NUMBER").code
        if self.transaction_start is not None and not header.is_transactional:
            return error_named("INVALID_TXN_STATE").code
        return 0

    def _comes_next(self, header: BatchHeader) -> bool:
        """Of one who never wrote here, or is forgotten, any number is taken."""
        if self.epoch == _NONE:
            return True
        if header.producer_epoch != self.epoch:
            return header.base_sequence == 0
        return header.base_sequence == (self.last_sequence + 1) % _COUNT

    def append(self, header: BatchHeader) -> None:
        """The batch is in the log, with the offsets in its header."""
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
        """A marker ends the transaction; where it began, None if nothing of it is here."""
        self._begin(epoch)
        self.awaited = None
        began, self.transaction_start = self.transaction_start, None
        return began

    def reload(self) -> None:
        """What is left after the broker's restart: the last batch alone."""
        while len(self.batches) > 1:
            self.batches.popleft()
        self.awaited = None

    def _begin(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.batches.clear()
        self.epoch = epoch


def _last_sequence(header: BatchHeader) -> int:
    return (header.base_sequence + header.last_offset_delta) % _COUNT
