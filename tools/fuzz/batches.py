"""Record batches on the whole way from a fetch to Arrow: raw, and with a repaired frame.

A repaired batch has the right length, magic byte and CRC for its other bytes. The kernels of
`records.kernels` and numpy read the same bytes, and must give the same result.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from typing import Any, TypeVar

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
from tools.fuzz.judge import replaced

WHERE = TopicPartition("events", 3)

OPTIONS_BYTES = 4
"""Bytes of options at the start of an input: see `Reading.of`."""

FACTS_BYTES = 8 + HEADER_BYTES - 21
"""Bytes of a header that are not repaired: the base offset, and all from the attributes on."""

MAX_RECORD_BYTES = 1 << 20
SMALL_CHUNK_BYTES = 100
GOOD = encode_batch([Record(b"k", b"v")], base_offset=(1 << 62))
"""Batch that follows the input's batch, if the input's flags say so."""

_trusting_gather = columns.gather

KERNELS_OPTION = "FUZZ_KERNELS"
"""Environment variable for the kernels to compare with numpy: written or compiled."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Options for reading the bytes."""

    check_crcs: bool
    isolation_level: IsolationLevel
    chunk_bytes: int
    followed: bool
    position: int
    end: int
    aborted: tuple[AbortedTransaction, ...]

    @classmethod
    def of(cls, data: bytes) -> "Reading":
        """Parse flags, position, length to read, and first offset of producer 1's aborted one."""
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
    """Read `OPTIONS_BYTES` of options, then the bytes of a fetch."""
    _read(Reading.of(data), data[OPTIONS_BYTES:])


def rewritten(data: bytes) -> None:
    """Do as `recompressed`, but compress the records first, with the codec in the header."""
    _rebuild(data, compress)


def recompressed(data: bytes) -> None:
    """Repair and read a batch: options, `FACTS_BYTES` of a header, and compressed records."""
    _rebuild(data, lambda _, payload: payload)


def _rebuild(data: bytes, payload_of: Callable[[Codec, bytes], bytes]) -> None:
    facts = data[OPTIONS_BYTES : OPTIONS_BYTES + FACTS_BYTES].ljust(FACTS_BYTES, b"\0")
    reading, body = Reading.of(data), data[OPTIONS_BYTES + FACTS_BYTES :]
    codec = facts[9] & CODEC_BITS
    payload = payload_of(Codec(codec), body) if codec in set(Codec) else body
    batch = build(facts, payload)
    _read(reading, batch + GOOD if reading.followed else batch)


def build(facts: bytes, payload: bytes) -> bytes:
    """Build a batch from the facts, with the right length, magic byte and CRC."""
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
    """Return all rows, or the error."""
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
    """Check that all bounds are in the data, since Arrow trusts them."""
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
    """Check that a batch inside the range has all the records that its header claims."""
    if reading.position == reading.end:
        return  # Nothing is read.
    offsets = [offset for rows in found for offset in rows["offset"].to_pylist()]
    for header, _ in headers_of(memoryview(records), WHERE, check_crcs=False):
        first, last = header.base_offset, header.last_offset
        if reading.position <= first and last < reading.end and not header.is_control:
            held = sum(first <= offset <= last for offset in offsets)
            assert held == header.record_count, "records are missing, unsaid"
        if last >= reading.end - 1:
            return  # The reader did not read further.


T = TypeVar("T")


@cache
def _kernels() -> Kernels:
    if os.environ.get(KERNELS_OPTION, "written") == "compiled":
        loaded = compiled.load()
        assert loaded is not None, "numba compiles nothing with NUMBA_DISABLE_JIT"
        return loaded
    return Kernels(
        partial(_checked, written.locate_records),
        partial(_checked, written.locate_headers),
        partial(_checked, written.copy_records),
    )


def _checked(kernel: Callable[..., T], *arrays: Any) -> T:
    return kernel(*(_Strict(each) if getattr(each, "ndim", 0) == 1 else each for each in arrays))


class _Strict:
    """An array that refuses negative indexes. In numpy they count from the end."""

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
