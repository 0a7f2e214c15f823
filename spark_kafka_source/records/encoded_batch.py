"""A record batch whose records are encoded and whose header is still open to its producer's state.

The layout is https://kafka.apache.org/documentation/#recordbatch.
"""

from dataclasses import dataclass

import crc32c

from spark_kafka_source.records.batch import (
    CHECKED_FROM,
    HEADER,
    HEADER_BYTES,
    LENGTH_FOLLOWS_BYTES,
    MAGIC,
    TRANSACTIONAL_BIT,
)
from spark_kafka_source.records.types import Bytes, Codec

NO_PRODUCER = -1
MAX_BATCH_BYTES = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """One batch of a partition, without an offset yet: `pieces` gives it to a Produce request."""

    group: int
    """Which of the groups of rows it is of, the first is 0."""
    start: int
    """Where its records begin in the order that was asked for."""
    record_count: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    codec: Codec
    uncompressed_bytes: int
    """Of its header and its records before their compression."""
    payload: Bytes
    """The records, compressed; where they are not, a part of what was joined with other batches."""

    @property
    def stop(self) -> int:
        """Where its records end in the order that was asked for."""
        return self.start + self.record_count

    @property
    def size(self) -> int:
        """The whole batch in bytes, header included."""
        return HEADER_BYTES + len(self.payload)

    def pieces(
        self,
        *,
        producer_id: int = NO_PRODUCER,
        producer_epoch: int = NO_PRODUCER,
        base_sequence: int = NO_PRODUCER,
        transactional: bool = False,
    ) -> tuple[bytes, Bytes]:
        """The batch with its producer's state, by default without: its header and its `payload`.

        Its base offset is 0. The CRC-32C is computed here, so that a batch can be sent again with
        another state; nothing is copied.
        """
        fields = (
            0,
            self.size - LENGTH_FOLLOWS_BYTES,
            -1,
            MAGIC,
            0,
            self.codec | TRANSACTIONAL_BIT * transactional,
            self.record_count - 1,
            self.base_timestamp_ms,
            self.max_timestamp_ms,
            producer_id,
            producer_epoch,
            base_sequence,
            self.record_count,
        )
        header = HEADER.pack(*fields)
        crc = crc32c.crc32c(self.payload, crc32c.crc32c(header[CHECKED_FROM:]))
        sealed = header[: CHECKED_FROM - 4] + crc.to_bytes(4) + header[CHECKED_FROM:]
        return sealed, self.payload

    def to_bytes(self) -> bytes:
        """The batch of no producer, in one piece."""
        return b"".join(self.pieces())
