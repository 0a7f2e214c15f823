"""Kafka's four compressions for the records of a batch, each with bounded output.

All of them release the GIL while they work.
"""

import contextlib
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from struct import Struct, error
from types import MappingProxyType
from typing import Any

import lz4.frame
import pyarrow as pa
import zstandard

from spark_kafka_source.errors import ConfigurationError, ProtocolError
from spark_kafka_source.records.types import Bytes, Codec

FIRST_FED_BYTES, MOST_FED_BYTES = 256 << 10, 1 << 20
"""The first and the largest input for one step of zlib and lz4. A usual batch is fed whole, so that
it comes out in one piece. For a larger batch the steps grow: each step copies the unused input, and
many small steps would copy too much."""

GZIP_WINDOW_BITS = 31

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER = XERIAL_MAGIC + b"\x00\x00\x00\x01" * 2
"""The framing of snappy-java, which Kafka's own clients write. librdkafka writes a bare block."""

XERIAL_BLOCK_BYTES = 32 << 10
XERIAL_LENGTH = Struct(">i")

LZ4_FAST = -1
"""The fast compressor with acceleration 2. With its blocks of 256 KiB, events compress as well as
with Kafka's own (acceleration 1, blocks of 64 KiB), in four fifths of the time."""

_gunzip: Any = zlib
with contextlib.suppress(ImportError):  # isal, from the extra `fast`, takes half the time
    _gunzip = import_module("isal.isal_zlib")

_LIBRARY_ERRORS = (
    zlib.error,
    _gunzip.error,
    zstandard.ZstdError,
    pa.ArrowException,
    OSError,
    RuntimeError,
    MemoryError,
    error,
)


class TooLargeError(ProtocolError):
    """The decompressed size exceeds the limit in bytes."""


class Decompressor:
    """Decompressor of payloads, one after the other, in pieces of at most `piece_bytes`.

    Only a snappy block always comes whole, and only up to `max_bytes`. Not for two threads at once.
    Read each payload to its end, or drop it, before the next.
    """

    def __init__(self, piece_bytes: int, max_bytes: int) -> None:
        self._piece_bytes, self._max_bytes = piece_bytes, max_bytes

    def pieces(self, codec: Codec, payload: memoryview) -> Iterator[Bytes]:
        """Yield the decompressed pieces, none of them empty. One piece if all fits `piece_bytes`.

        Raises `TooLargeError` for a block over the limit, and `ProtocolError` for a payload that is
        not in this compression. A cut zstd frame raises no error: check the number of records that
        it held.
        """
        held: list[Bytes] = []
        held_bytes = 0
        for piece in self._guarded(codec, payload):
            if held and held_bytes + len(piece) > self._piece_bytes:
                yield _take(held)
                held_bytes = 0
            held.append(piece)
            held_bytes += len(piece)
            del piece  # Only the caller keeps it alive: a snappy block may be large.
            if held_bytes >= self._piece_bytes:
                yield _take(held)
                held_bytes = 0
        if held:
            yield _take(held)

    def _guarded(self, codec: Codec, payload: memoryview) -> Iterator[Bytes]:
        stream = self._streams[codec](self, payload)
        while True:
            try:
                piece = next(stream, None)
            except _LIBRARY_ERRORS as failure:
                raise ProtocolError(
                    f"cannot be decompressed as {codec.name}: {failure}"
                ) from failure
            if piece is None:
                return
            if piece:
                yield piece
            del piece

    def _none(self, payload: memoryview) -> Iterator[Bytes]:
        yield payload

    def _gzip(self, payload: memoryview) -> Iterator[Bytes]:
        at = 0
        while at < len(payload):
            member, fed_bytes = _gunzip.decompressobj(GZIP_WINDOW_BITS), FIRST_FED_BYTES
            while not member.eof:
                fed = payload[at : at + fed_bytes]
                fed_bytes = min(4 * fed_bytes, MOST_FED_BYTES)
                piece = member.decompress(fed, self._piece_bytes)
                # zlib counts what is behind a member's end as unconsumed, too.
                left = member.unused_data if member.eof else member.unconsumed_tail
                at += len(fed) - len(left)
                if not fed and not piece and not member.eof:
                    raise ProtocolError("a GZIP member is cut")
                yield piece
            # gzip passes over zeros between members and at the end: some writers fill blocks.
            at += re.match(rb"\0*+", payload[at:]).end()  # type: ignore[union-attr]  # "" matches

    def _lz4(self, payload: memoryview) -> Iterator[Bytes]:
        at = 0
        while at < len(payload):
            frame, fed_bytes = lz4.frame.LZ4FrameDecompressor(), FIRST_FED_BYTES
            while not frame.eof:
                hungry = frame.needs_input
                fed = payload[at : at + fed_bytes] if hungry else b""
                fed_bytes = min(4 * fed_bytes, MOST_FED_BYTES)
                piece = frame.decompress(fed, self._piece_bytes)
                at += len(fed)
                # The frame may complete a block from input it held back, and still have no output.
                if hungry and not fed and not piece and not frame.eof:
                    raise ProtocolError("an LZ4 frame is cut")
                yield piece
            at -= len(frame.unused_data or b"")

    @cached_property
    def _zstd_context(self) -> zstandard.ZstdDecompressor:
        return zstandard.ZstdDecompressor()

    def _zstd(self, payload: memoryview) -> Iterator[Bytes]:
        # The one-shot decompress() ignores the limit if the frame declares its size.
        reader = self._zstd_context.stream_reader(payload, read_across_frames=True)
        while piece := reader.read(self._piece_bytes):
            yield piece

    def _snappy(self, payload: memoryview) -> Iterator[Bytes]:
        if payload[: len(XERIAL_MAGIC)] != XERIAL_MAGIC:
            yield self._snappy_block(payload)
            return
        at = len(XERIAL_HEADER)
        while at < len(payload):
            (length,) = XERIAL_LENGTH.unpack_from(payload, at)
            at += XERIAL_LENGTH.size
            if not 0 <= length <= len(payload) - at:
                raise ProtocolError(f"a SNAPPY block of {length} bytes in {len(payload) - at}")
            yield self._snappy_block(payload[at : at + length])
            at += length

    def _snappy_block(self, block: memoryview) -> bytes:
        size = _snappy_size(block)
        if size > self._max_bytes:
            raise TooLargeError(
                f"a SNAPPY block of {size} bytes; maxRecordBytes is {self._max_bytes}"
            )
        whole: bytes = pa.Codec("snappy").decompress(block, decompressed_size=size, asbytes=True)
        return whole

    _streams: Mapping[Codec, Callable[["Decompressor", memoryview], Iterator[Bytes]]] = (
        MappingProxyType(
            {
                Codec.NONE: _none,
                Codec.GZIP: _gzip,
                Codec.SNAPPY: _snappy,
                Codec.LZ4: _lz4,
                Codec.ZSTD: _zstd,
            }
        )
    )


def _take(pieces: list[Bytes]) -> Bytes:
    """Join all pieces into one, and empty the list."""
    whole = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    pieces.clear()
    return whole


def decompress(codec: Codec, payload: Bytes, max_bytes: int) -> Bytes:
    """Return `payload` decompressed. Raises `TooLargeError` over `max_bytes`, and as `pieces`."""
    pieces = Decompressor(max_bytes, max_bytes).pieces(codec, memoryview(payload))
    whole = next(pieces, b"")
    if len(whole) > max_bytes or next(pieces, b""):
        raise TooLargeError(f"{codec.name} decompresses to over {max_bytes} bytes")
    return whole


def _snappy_size(block: memoryview) -> int:
    """Return the size that a block declares as a varint. pyarrow would trust any size."""
    size = 0
    for index, byte in enumerate(block[:5]):
        size |= (byte & 127) << 7 * index
        if byte < 128:
            return size
    raise ProtocolError("a SNAPPY block that does not say its size")


DEFAULT_LEVELS: Mapping[Codec, int] = MappingProxyType(
    {Codec.GZIP: -1, Codec.LZ4: 9, Codec.ZSTD: 3}
)
LEVELS: Mapping[Codec, range] = MappingProxyType(
    {Codec.GZIP: range(1, 10), Codec.LZ4: range(1, 18), Codec.ZSTD: range(-131_072, 23)}
)
"""The levels of Kafka's `compression.<type>.level` (KIP-390) besides the default. The other two
types have no levels."""


@dataclass(frozen=True, slots=True)
class Compression:
    """Codec and its level. None is Kafka's default level.

    At the default level gzip uses isal if it is installed, which is far quicker and compresses a
    little less. lz4 uses its fast compressor at Kafka's default level, 9, and its high compressor
    at any other level, as Kafka does. Raises `ConfigurationError` for a level that the codec lacks.
    """

    codec: Codec
    level: int | None = None

    def __post_init__(self) -> None:
        known = LEVELS.get(self.codec, range(0))
        if self.level in {None, DEFAULT_LEVELS.get(self.codec)} or self.level in known:
            return
        name = self.codec.name.lower()
        levels = f"It must be {known.start} to {known.stop - 1}" if known else "It has no levels"
        raise ConfigurationError(f"kafka.compression.{name}.level", f"it is {self.level}", levels)

    def compress(self, data: Bytes) -> Bytes:
        """Compress `data` as Kafka's own clients do."""
        level = None if self.level == DEFAULT_LEVELS.get(self.codec) else self.level
        return _COMPRESSORS[self.codec](data, level)


NO_COMPRESSION = Compression(Codec.NONE)


def compress(codec: Codec, data: bytes) -> bytes:
    """Compress `data` as Kafka's own clients do, at the default level."""
    return bytes(Compression(codec).compress(data))


def _none(data: Bytes, _: int | None) -> Bytes:
    return data


def _gzip(data: Bytes, level: int | None) -> Bytes:
    if level is None:
        stream = _gunzip.compressobj(wbits=GZIP_WINDOW_BITS)
    else:
        stream = zlib.compressobj(level, wbits=GZIP_WINDOW_BITS)
    compressed: bytes = stream.compress(data) + stream.flush()
    return compressed


def _snappy(data: Bytes, _: int | None) -> Bytes:
    codec, parts, whole = pa.Codec("snappy"), [XERIAL_HEADER], memoryview(data)
    for at in range(0, len(data), XERIAL_BLOCK_BYTES):
        block = codec.compress(whole[at : at + XERIAL_BLOCK_BYTES], asbytes=True)
        parts += (XERIAL_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _lz4(data: Bytes, level: int | None) -> Bytes:
    high = max(level or 0, lz4.frame.COMPRESSIONLEVEL_MINHC)
    # Kafka's own reader does not support linked blocks.
    frame: bytes = lz4.frame.compress(
        data,
        compression_level=LZ4_FAST if level is None else high,
        block_size=lz4.frame.BLOCKSIZE_MAX256KB,
        block_linked=False,
        store_size=False,
    )
    return frame


def _zstd(data: Bytes, level: int | None) -> Bytes:
    chosen = DEFAULT_LEVELS[Codec.ZSTD] if level is None else level
    return zstandard.ZstdCompressor(level=chosen).compress(data)


_COMPRESSORS: Mapping[Codec, Callable[[Bytes, int | None], Bytes]] = MappingProxyType(
    {
        Codec.NONE: _none,
        Codec.GZIP: _gzip,
        Codec.SNAPPY: _snappy,
        Codec.LZ4: _lz4,
        Codec.ZSTD: _zstd,
    }
)
