"""Record batch with encoded records. Its header is completed later, with its producer's state.

The layout is https://kafka.apache.org/documentation/#recordbatch.
"""

from dataclasses import dataclass

from spark_kafka_source.records.batch import (
    CHECKED_FROM,
    HEADER,
    HEADER_BYTES,
    LENGTH_FOLLOWS_BYTES,
    MAGIC,
    TRANSACTIONAL_BIT,
    crc32c,
)
from spark_kafka_source.records.types import Bytes, Codec

NO_PRODUCER = -1
MAX_BATCH_BYTES = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """Batch of one partition, without an offset yet. `pieces` gives it to a Produce request."""

    group: int
    """The number of its group of rows, from 0 on."""
    start: int
    """The start of its records in the requested order of rows."""
    record_count: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    codec: Codec
    uncompressed_bytes: int
    """The size in bytes of its header and its uncompressed records."""
    payload: Bytes
    """The records, compressed. Uncompressed records share their memory with other batches."""

    @property
    def stop(self) -> int:
        """The end of its records in the requested order of rows."""
        return self.start + self.record_count

    @property
    def size(self) -> int:
        """The size of the whole batch in bytes, header included."""
        return HEADER_BYTES + len(self.payload)

    def pieces(
        self,
        *,
        producer_id: int = NO_PRODUCER,
        producer_epoch: int = NO_PRODUCER,
        base_sequence: int = NO_PRODUCER,
        transactional: bool = False,
    ) -> tuple[bytes, Bytes]:
        """Return the header, with this producer's state or by default none, and the `payload`.

        The base offset is 0. Each call computes the CRC-32C anew, so a batch can be sent again with
        another state. Nothing is copied.
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
        crc = crc32c(self.payload, crc32c(header[CHECKED_FROM:]))
        sealed = header[: CHECKED_FROM - 4] + crc.to_bytes(4) + header[CHECKED_FROM:]
        return sealed, self.payload

    def to_bytes(self) -> bytes:
        """Return the batch without a producer, in one piece."""
        return b"".join(self.pieces())
