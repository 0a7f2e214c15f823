"""Record batches that are small in a log, and huge after decompression.

Each is compressed as a stream, which takes no more memory than the compressed batch.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Protocol

import lz4.frame
import numpy as np
import pyarrow as pa
import zstandard

from spark_kafka_source.records import Codec
from spark_kafka_source.records.batch import HEADER, HEADER_BYTES, LENGTH_FOLLOWS_BYTES, MAGIC
from spark_kafka_source.records.compression import (
    GZIP_WINDOW_BITS,
    XERIAL_BLOCK_BYTES,
    XERIAL_HEADER,
    XERIAL_LENGTH,
)
from spark_kafka_source.records.encode import with_crc
from spark_kafka_source.records.varints import encode_varint

MIB = 1 << 20
_ZEROS = bytes(MIB)
_RECORDS_AT_ONCE = 1_000_000


class Stream(Protocol):
    """A compression of successive pieces."""

    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


class _Plain:
    def compress(self, data: bytes) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


class _Lz4:
    """LZ4 in the framing of Kafka's own clients, or with other blocks."""

    def __init__(
        self, block_size: int = lz4.frame.BLOCKSIZE_MAX64KB, *, block_linked: bool = False
    ) -> None:
        self._frame = lz4.frame.LZ4FrameCompressor(block_size=block_size, block_linked=block_linked)
        self._begun = False

    def compress(self, data: bytes) -> bytes:
        begin = b"" if self._begun else self._frame.begin()
        self._begun = True
        return bytes(begin + self._frame.compress(data))

    def flush(self) -> bytes:
        return bytes(self._frame.flush())


class _Xerial:
    """Snappy in the blocks of snappy-java."""

    def __init__(self, block_bytes: int = XERIAL_BLOCK_BYTES) -> None:
        self._codec, self._block_bytes = pa.Codec("snappy"), block_bytes
        self._rest, self._out = b"", XERIAL_HEADER

    def compress(self, data: bytes) -> bytes:
        data = self._rest + data
        whole = len(data) // self._block_bytes * self._block_bytes
        self._rest = data[whole:]
        return self._taken(
            data[at : at + self._block_bytes] for at in range(0, whole, self._block_bytes)
        )

    def flush(self) -> bytes:
        return self._taken([self._rest] if self._rest else [])

    def _taken(self, blocks: Iterable[bytes]) -> bytes:
        out, self._out = [self._out], b""
        for block in blocks:
            compressed = self._codec.compress(block, asbytes=True)
            out += (XERIAL_LENGTH.pack(len(compressed)), compressed)
        return b"".join(out)


class _RawSnappy:
    """One bare Snappy block, as in librdkafka: a literal of the first bytes, then copies of 0.

    All bytes after the first piece must be zeros.
    """

    def __init__(self, total_bytes: int) -> None:
        size = bytearray()
        while total_bytes > 127:
            size.append(total_bytes & 127 | 128)
            total_bytes >>= 7
        self._size = bytes([*size, total_bytes])

    def compress(self, data: bytes) -> bytes:
        size, self._size = self._size, b""
        if size or len(data) < 64:
            assert len(data) <= 60
            return size + bytes([len(data) - 1 << 2]) + data
        copies, rest = divmod(len(data), 64)
        last = bytes([rest - 1 << 2 | 2]) + b"\x01\x00" if rest else b""
        return b"\xfe\x01\x00" * copies + last

    def flush(self) -> bytes:
        return b""


MakeStream = Callable[[int], Stream]
"""Takes the total number of bytes. Returns a stream."""

STREAMS: dict[Codec, Callable[[], Stream]] = {
    Codec.NONE: _Plain,
    Codec.GZIP: lambda: zlib.compressobj(9, wbits=GZIP_WINDOW_BITS),
    Codec.SNAPPY: _Xerial,
    Codec.LZ4: _Lz4,
    Codec.ZSTD: lambda: zstandard.ZstdCompressor(level=19).compressobj(),
}
"""The framings of Kafka's own clients."""

OTHER_STREAMS: dict[str, tuple[Codec, MakeStream]] = {
    "snappy, one bare block": (Codec.SNAPPY, _RawSnappy),
    "snappy, blocks of 16 MiB": (Codec.SNAPPY, lambda _: _Xerial(16 * MIB)),
    "lz4, linked blocks of 4 MiB": (
        Codec.LZ4,
        lambda _: _Lz4(lz4.frame.BLOCKSIZE_MAX4MB, block_linked=True),
    ),
    "zstd, a window of 128 MiB": (
        Codec.ZSTD,
        lambda _: zstandard.ZstdCompressor(
            compression_params=zstandard.ZstdCompressionParameters(
                window_log=27, hash_log=6, chain_log=6, strategy=1
            )
        ).compressobj(),
    ),
}
"""Other framings: the codec, and a function that returns a stream."""


def usual(codec: Codec) -> MakeStream:
    """Return the stream of Kafka's own clients."""
    return lambda _: STREAMS[codec]()


def batch(
    codec: Codec,
    pieces: Iterable[bytes],
    *,
    record_count: int,
    base_offset: int = 0,
    stream: Stream | None = None,
) -> bytes:
    """Return a batch of these record bytes, with a matching header."""
    stream = stream or STREAMS[codec]()
    payload = b"".join([*map(stream.compress, pieces), stream.flush()])
    length = HEADER_BYTES + len(payload) - LENGTH_FOLLOWS_BYTES
    header = (base_offset, length, 0, MAGIC, 0, codec, record_count - 1, 0, 0, -1, -1, -1)
    return with_crc(HEADER.pack(*header, record_count) + payload)


def record(offset_delta: int, value_bytes: int, headers: int = 0) -> Iterator[bytes]:
    """Yield a record with a value of zeros and headers of minimum size."""
    head = b"\0\0" + encode_varint(offset_delta) + b"\1" + encode_varint(value_bytes)
    count = encode_varint(headers)
    length = len(head) + value_bytes + len(count) + 2 * headers
    yield encode_varint(length) + head
    yield from zeros(value_bytes)
    yield count
    yield from zeros(2 * headers)  # each has an empty key and an empty value


def record_of_size(offset_delta: int, size: int) -> Iterator[bytes]:
    """Yield a record of exactly `size` bytes, including its length."""
    value_bytes = size
    while (found := sum(map(len, record(offset_delta, value_bytes)))) > size:
        value_bytes -= found - size
    assert found == size
    return record(offset_delta, value_bytes)


def records(count: int, value_bytes: int) -> Iterator[bytes]:
    """Yield successive records of equal size."""
    return chain.from_iterable(record(delta, value_bytes) for delta in range(count))


def empty_records(count: int) -> Iterator[bytes]:
    """Yield records without a key, a value and headers."""
    for first in range(0, count, _RECORDS_AT_ONCE):
        last = min(first + _RECORDS_AT_ONCE, count)
        for least, septets in ((0, 1), (1 << 6, 2), (1 << 13, 3), (1 << 20, 4), (1 << 27, 5)):
            deltas = np.arange(
                max(first, least), min(last, 64 << 7 * (septets - 1)), dtype=np.int64
            )
            if len(deltas):
                yield _empty(deltas, septets)


def _empty(deltas: "np.typing.NDArray[np.int64]", septets: int) -> bytes:
    rows = np.zeros((len(deltas), 6 + septets), np.uint8)
    rows[:, 0] = 2 * (5 + septets)
    for index in range(septets):
        rows[:, 3 + index] = (2 * deltas >> 7 * index) & 127 | 128 * (index < septets - 1)
    rows[:, 3 + septets : 5 + septets] = 1
    return rows.tobytes()


def zeros(count: int) -> Iterator[bytes]:
    """Yield `count` zeros, in pieces."""
    for at in range(0, count, MIB):
        yield _ZEROS[: count - at]
