"""Record batches by the whole way from a fetch to Arrow: as they come, and made whole again.

What is made whole has the length, magic byte and CRC that its other bytes ask for. The kernels of
`records.kernels` read the same bytes beside numpy and must come to the same end.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from spark_kafka_source.errors import CorruptRecordError
from spark_kafka_source.records import (
    AbortedTransaction,
    Codec,
    IsolationLevel,
    Record,
    RecordLimit,
    chunks,
    columns,
    compiled,
    encode_batch,
    to_arrow,
)
from spark_kafka_source.records import (
    batches as headers_of,
)
from spark_kafka_source.records import (
    kernels as written,
)
from spark_kafka_source.records.batch import (
    CODEC_BITS,
    HEADER_BYTES,
    LENGTH_FOLLOWS_BYTES,
    MAGIC,
)
from spark_kafka_source.records.compiled import Kernels
from spark_kafka_source.records.compression import compress
from spark_kafka_source.records.encode import with_crc
from spark_kafka_source.records.located import Slices
from spark_kafka_source.records.types import Bytes
from spark_kafka_source.topic_partition import TopicPartition
from tests.fuzz.judge import replaced

WHERE = TopicPartition("events", 3)

OPTIONS_BYTES = 4
"""What an input begins with: see `Reading.of`."""

FACTS_BYTES = 8 + HEADER_BYTES - 21
"""Of a header, what is not put right: the base offset, and all from the attributes on."""

MAX_RECORD_BYTES = 1 << 20
SMALL_CHUNK_BYTES = 100
GOOD = encode_batch([Record(b"k", b"v")], base_offset=(1 << 62))
"""Goes after the batch, where an input says so."""

_trusting_gather = columns.gather

KERNELS_OPTION = "FUZZ_KERNELS"
"""The environment variable that says which kernels read beside numpy: written or compiled."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How the bytes are read."""

    check_crcs: bool
    isolation_level: IsolationLevel
    chunk_bytes: int
    followed: bool
    position: int
    end: int
    aborted: tuple[AbortedTransaction, ...]

    @classmethod
    def of(cls, data: bytes) -> "Reading":
        """Flags, a position, how far to read, and where producer 1's transaction was aborted."""
        flags, position, length, first_offset = data[:OPTIONS_BYTES].ljust(OPTIONS_BYTES, b"\0")
        return cls(
            check_crcs=not flags & 1,
            isolation_level=IsolationLevel(flags >> 1 & 1),
            chunk_bytes=SMALL_CHUNK_BYTES if flags & 4 else 1 << 20,
            followed=bool(flags & 8),
            position=position,
            end=position + length if flags & 16 else (1 << 63) - 1,
            aborted=(AbortedTransaction(1, first_offset),) * bool(flags & 32),
        )


def batches(data: bytes) -> None:
    """`OPTIONS_BYTES`, then what a fetch brought."""
    _read(Reading.of(data), data[OPTIONS_BYTES:])


def rewritten(data: bytes) -> None:
    """As `recompressed`, but the records are not compressed yet; the header says by what."""
    _rebuild(data, compress)


def recompressed(data: bytes) -> None:
    """`OPTIONS_BYTES`, then `FACTS_BYTES` of a header and compressed records, made whole."""
    _rebuild(data, lambda _, payload: payload)


def _rebuild(data: bytes, payload_of: Callable[[Codec, bytes], bytes]) -> None:
    facts = data[OPTIONS_BYTES : OPTIONS_BYTES + FACTS_BYTES].ljust(FACTS_BYTES, b"\0")
    reading, body = Reading.of(data), data[OPTIONS_BYTES + FACTS_BYTES :]
    codec = facts[9] & CODEC_BITS
    payload = payload_of(Codec(codec), body) if codec in set(Codec) else body
    batch = build(facts, payload)
    _read(reading, batch + GOOD if reading.followed else batch)


def build(facts: bytes, payload: bytes) -> bytes:
    """A batch with the facts given, and a length, a magic byte and a CRC that are right."""
    length = HEADER_BYTES - LENGTH_FOLLOWS_BYTES + len(payload)
    head = facts[:8] + length.to_bytes(4) + bytes(4) + bytes([MAGIC]) + bytes(4)
    return with_crc(head + facts[8:] + payload)


def _read(reading: Reading, records: bytes) -> None:
    by_numpy = _outcome(reading, records, None)
    by_kernels = _outcome(reading, records, _kernels())
    assert type(by_numpy) is type(by_kernels), f"{by_numpy!r} by numpy, {by_kernels!r} by kernels"
    if isinstance(by_numpy, str):
        assert by_numpy == by_kernels
        return
    assert all(map(pa.RecordBatch.equals, by_numpy, by_kernels))
    if reading.isolation_level is IsolationLevel.READ_UNCOMMITTED:
        _check_that_none_is_missing(reading, records, by_numpy)


def _outcome(
    reading: Reading, records: bytes, kernels: Kernels | None
) -> "list[pa.RecordBatch] | str":
    """All rows, or the error that there is in place of them."""
    with (
        replaced(compiled, "kernels", lambda record_count=0: kernels),
        replaced(columns, "gather", _gather),
    ):
        try:
            return _rows(reading, records)
        except CorruptRecordError as error:
            assert error.topic_partition == WHERE
            assert str(error).startswith(f"{WHERE} at offset {error.offset}: ")
            assert error.reason
            return str(error)


def _gather(data: Bytes, slices: Slices) -> pa.BinaryArray:
    """Arrow believes the bounds that it is given: none may lead out of the data."""
    bounds = slices.bounds
    assert (bounds[:-1] <= bounds[1:]).all(), "slices overlap"
    assert not len(bounds) or (bounds[0] >= 0 and bounds[-1] <= len(data)), "a slice leads out"
    return _trusting_gather(data, slices)


def _rows(reading: Reading, records: bytes) -> list[pa.RecordBatch]:
    found, offsets, position = [], [reading.position - 1], reading.position
    for chunk in chunks(
        records,
        topic_partition=WHERE,
        position=reading.position,
        end=reading.end,
        check_crcs=reading.check_crcs,
        isolation_level=reading.isolation_level,
        aborted=reading.aborted,
        chunk_bytes=reading.chunk_bytes,
        limit=RecordLimit(MAX_RECORD_BYTES),
    ):
        rows = to_arrow(chunk, include_headers=True)
        rows.validate(full=True)
        assert position <= chunk.next_offset <= reading.end
        position = chunk.next_offset
        offsets += rows["offset"].to_pylist()
        assert offsets[-1] < max(position, reading.position), "read beyond where reading goes on"
        found.append(rows)
    assert all(before < after for before, after in pairwise(offsets))
    return found


def _check_that_none_is_missing(
    reading: Reading, records: bytes, found: list[pa.RecordBatch]
) -> None:
    """A batch that lies in the range as a whole has all the records that it claims."""
    offsets = [offset for rows in found for offset in rows["offset"].to_pylist()]
    for header, _ in headers_of(memoryview(records), WHERE, check_crcs=False):
        first, last = header.base_offset, header.last_offset
        if reading.position <= first and last < reading.end and not header.is_control:
            held = sum(first <= offset <= last for offset in offsets)
            assert held == header.record_count, "records are missing, unsaid"
        if last >= reading.end - 1:
            return  # What comes after it was not looked at.


@cache
def _kernels() -> Kernels:
    if os.environ.get(KERNELS_OPTION, "written") == "compiled":
        loaded = compiled.load()
        assert loaded is not None, "numba compiles nothing with NUMBA_DISABLE_JIT"
        return loaded
    return Kernels(
        partial(_checked, written.locate_records), partial(_checked, written.locate_headers)
    )


def _checked(kernel: Callable[..., bool], *arrays: Any) -> bool:
    return kernel(*(array if array.ndim > 1 else _Strict(array) for array in arrays))


class _Strict:
    """An array that takes no index but its own: numpy's count from the end, where negative."""

    def __init__(self, array: "np.ndarray[Any, Any]") -> None:
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, index: int) -> Any:
        return self._array[self._place(index)]

    def __setitem__(self, index: int, value: Any) -> None:
        self._array[self._place(index)] = value

    def _place(self, index: int) -> int:
        if not 0 <= index < len(self._array):
            raise IndexError(f"{index} of {len(self._array)}, which compiled is not checked")
        return index
