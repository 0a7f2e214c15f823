"""Batches that a reader does not see: control batches, and those of aborted transactions (KIP-98).

The algorithm is in https://kafka.apache.org/documentation/#impl_read_committed and KIP-98: a
producer's batches are hidden from an aborted transaction's first offset on until its ABORT marker.
"""

from collections.abc import Iterable
from struct import Struct

from spark_kafka_source.errors import ProtocolError
from spark_kafka_source.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, BatchHeader
from spark_kafka_source.records.compression import decompress
from spark_kafka_source.records.types import AbortedTransaction, Bytes, IsolationLevel
from spark_kafka_source.records.varints import VARLONG_BYTES, varint

CONTROL_KEY = Struct(">hh")
"""The key of a control record: its version, then the type of the marker."""

ABORT, COMMIT = 0, 1

UNUSUAL = TRANSACTIONAL_BIT | CONTROL_BIT
"""Attribute bits. A batch without either of them is always visible."""

MARKERS_MAX_BYTES = 1 << 20


class Visibility:
    """Visibility of the batches of one Fetch response. Ask for the batches in their order."""

    def __init__(
        self, isolation_level: IsolationLevel, aborted: Iterable[AbortedTransaction]
    ) -> None:
        committed_only = isolation_level is IsolationLevel.READ_COMMITTED
        # Sorted, since a response need not be. The next transaction to begin is the last element.
        self._to_come = sorted(
            ((first, producer) for producer, first in aborted if committed_only), reverse=True
        )
        self._aborted: set[int] = set()

    def sees(self, header: BatchHeader, payload: memoryview) -> bool:
        """Whether the batch's records are visible. Raises `ProtocolError` for a bad marker."""
        if not header.attributes & UNUSUAL:
            return True
        while self._to_come and self._to_come[-1][0] <= header.last_offset:
            self._aborted.add(self._to_come.pop()[1])
        if header.is_control:
            if header.producer_id in self._aborted and is_abort(header, payload):
                self._aborted.discard(header.producer_id)
            return False
        return not (header.is_transactional and header.producer_id in self._aborted)


def is_abort(header: BatchHeader, payload: memoryview) -> bool:
    """Whether the batch of a marker says ABORT. Raises `ProtocolError`."""
    if header.record_count == 0:  # compacted
        return False
    key = first_key(decompress(header.codec, payload, MARKERS_MAX_BYTES))
    if len(key) < CONTROL_KEY.size:
        raise ProtocolError(f"a control record with a key of {len(key)} bytes")
    return int(CONTROL_KEY.unpack_from(key)[1]) == ABORT


def first_key(data: Bytes) -> Bytes:
    """Return the key of the first record, empty if it is null."""
    _, at = offset_delta(data, 0)
    length, at = varint(data, at)
    if length > len(data) - at:
        raise ProtocolError(f"a key of {length} bytes in {len(data) - at}")
    return data[at : at + max(length, 0)]


def offset_delta(data: Bytes, position: int) -> tuple[int, int]:
    """Return the offset delta of the record at `position`, and the position after that field."""
    _, at = varint(data, position)
    _, at = varint(data, at + 1, VARLONG_BYTES)
    return varint(data, at)
