"""Decompression: all framings of Kafka's clients, bounded memory, and errors for garbage."""

import gzip
import random
from collections.abc import Iterator

import lz4.frame
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.errors import ConfigurationError, ProtocolError
from spark_kafka_source.records import Codec, Compression, compression
from spark_kafka_source.records.compression import (
    DEFAULT_LEVELS,
    LEVELS,
    Decompressor,
    TooLargeError,
    compress,
    decompress,
)
from tests.records.strategies import untimed

COMPRESSED = [codec for codec in Codec if codec is not Codec.NONE]
TEXT = b"".join(b"line %d of a text that compresses\n" % n for n in range(20_000))


@pytest.fixture(scope="module", autouse=True, params=["zlib", "isal.isal_zlib"])
def gunzip(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run all tests without and with the extra `fast`."""
    library = pytest.importorskip(request.param, reason="the extra `fast` is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compression, "_gunzip", library)
        yield


def snappy_block(data: bytes) -> bytes:
    block: bytes = pa.Codec("snappy").compress(data, asbytes=True)
    return block


@untimed
@given(st.sampled_from(Codec), st.integers(0, 10**6), st.integers(0, 300), st.integers(0, 1 << 32))
def test_what_is_compressed_comes_out_again(
    codec: Codec, size: int, period: int, seed: int
) -> None:
    """This holds for all sizes and compression ratios, whole and in pieces."""
    chance = random.Random(seed)
    repeated = chance.randbytes(period * 100) if period else chance.randbytes(size)
    data = (repeated * (size // max(len(repeated), 1) + 1))[:size]
    compressed = compress(codec, data)
    assert decompress(codec, compressed, size) == data
    pieces = Decompressor(chance.randrange(1000, 200_000), size).pieces(
        codec, memoryview(compressed)
    )
    assert b"".join(pieces) == data


@pytest.mark.parametrize(
    ("codec", "payload"),
    [
        (Codec.GZIP, gzip.compress(TEXT)),
        (Codec.GZIP, gzip.compress(TEXT[:9]) + gzip.compress(b"") + gzip.compress(TEXT[9:])),
        (
            Codec.GZIP,
            b"".join(gzip.compress(TEXT[at : at + 999]) for at in range(0, len(TEXT), 999)),
        ),
        (Codec.GZIP, gzip.compress(TEXT[:-9]) + gzip.compress(TEXT[-9:])),
        (Codec.GZIP, gzip.compress(TEXT[:9]) + bytes(1) + gzip.compress(TEXT[9:]) + bytes(512)),
        (Codec.SNAPPY, snappy_block(TEXT)),
        (Codec.LZ4, lz4.frame.compress(TEXT, store_size=True)),
        (Codec.LZ4, lz4.frame.compress(TEXT, block_linked=True, content_checksum=True)),
        (Codec.LZ4, lz4.frame.compress(TEXT[:9]) + lz4.frame.compress(TEXT[9:])),
        (Codec.ZSTD, zstandard.ZstdCompressor(write_content_size=False).compress(TEXT)),
        (Codec.ZSTD, zstandard.compress(TEXT[:9]) + zstandard.compress(TEXT[9:])),
    ],
)
def test_other_framings_are_read(codec: Codec, payload: bytes) -> None:
    assert decompress(codec, payload, len(TEXT)) == TEXT
    pieces = list(Decompressor(100_000, 1 << 20).pieces(codec, memoryview(payload)))
    assert b"".join(pieces) == TEXT
    if payload != snappy_block(TEXT):
        assert max(map(len, pieces)) <= 100_000
        assert len(pieces) < 20


@pytest.mark.parametrize("codec", Codec)
def test_more_than_the_limit_is_refused(codec: Codec) -> None:
    with pytest.raises(TooLargeError):
        decompress(codec, compress(codec, TEXT), len(TEXT) - 1)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_bomb_is_refused_without_being_blown_up(codec: Codec) -> None:
    bomb = compress(codec, bytes(200 << 20))
    before = pa.total_allocated_bytes()
    with pytest.raises(TooLargeError):
        decompress(codec, bomb, 1 << 20)
    assert pa.total_allocated_bytes() == before


@pytest.mark.parametrize("declared", [3, 5, (1 << 31) - 1])
def test_a_zstd_frame_that_lies_about_its_size_is_not_believed(declared: int) -> None:
    # Magic, a frame header with a content size of 4 bytes, and one raw block of 4 bytes.
    frame = b"\x28\xb5\x2f\xfd\xa0" + declared.to_bytes(4, "little") + b"\x21\x00\x00data"
    with pytest.raises(ProtocolError, match="ZSTD"):
        decompress(Codec.ZSTD, frame, 1 << 20)


@pytest.mark.parametrize(
    ("size", "refusal"),
    [
        (0, ProtocolError),
        (100, ProtocolError),
        ((1 << 20) + 1, TooLargeError),
        ((1 << 31) - 1, TooLargeError),
    ],
)
def test_a_snappy_block_that_lies_about_its_size_is_refused(
    size: int, refusal: type[ProtocolError]
) -> None:
    """The error comes before an allocation of that size."""
    block = snappy_block(b"four")[1:]
    lie = bytearray()
    while size > 127:
        lie.append(size & 127 | 128)
        size >>= 7
    lie.append(size)
    with pytest.raises(refusal):
        decompress(Codec.SNAPPY, bytes(lie) + block, 1 << 20)


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("payload", [b"", b"\0", b"rubbish" * 9, b"\xff" * 40])
def test_rubbish_is_refused_or_comes_to_nothing(codec: Codec, payload: bytes) -> None:
    try:
        assert decompress(codec, payload, 1 << 20) == b""
    except ProtocolError as error:
        assert codec.name in str(error)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_cut_and_mutated_payloads_raise_only_the_typed_error(codec: Codec) -> None:
    whole = compress(codec, TEXT[:3000])
    for at in range(len(whole)):
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :]):
            try:
                decompress(codec, damaged, 1 << 20)
            except ProtocolError as error:
                assert str(error)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.SNAPPY])
def test_a_cut_payload_is_refused(codec: Codec) -> None:
    with pytest.raises(ProtocolError):
        decompress(codec, compress(codec, TEXT)[:-4], 1 << 20)


def test_one_decompressor_serves_one_payload_after_the_other() -> None:
    decompressor = Decompressor(1000, 1 << 20)
    for codec in [*Codec, *Codec]:
        next(decompressor.pieces(codec, memoryview(compress(codec, TEXT))))
        pieces = decompressor.pieces(codec, memoryview(compress(codec, TEXT)))
        assert b"".join(pieces) == TEXT
        with pytest.raises(ProtocolError):
            list(decompressor.pieces(codec or Codec.ZSTD, memoryview(b"rubbish" * 20)))


def test_the_reason_says_which_codec_and_what_its_library_said() -> None:
    with pytest.raises(ProtocolError, match=r"decompressed as GZIP: Error -[34]"):
        decompress(Codec.GZIP, b"rubbish" * 20, 100)


@pytest.mark.parametrize(
    ("codec", "level"),
    [
        (codec, level)
        for codec, levels in LEVELS.items()
        for level in (DEFAULT_LEVELS[codec], levels.start, 1, levels.stop // 2, levels.stop - 1)
    ],
)
def test_every_level_reads_back(codec: Codec, level: int) -> None:
    assert decompress(codec, Compression(codec, level).compress(TEXT), len(TEXT)) == TEXT


@pytest.mark.parametrize(("codec", "high"), [(Codec.GZIP, 9), (Codec.LZ4, 12), (Codec.ZSTD, 6)])
def test_a_high_level_compresses_more(codec: Codec, high: int) -> None:
    default = Compression(codec).compress(TEXT)
    assert len(Compression(codec, high).compress(TEXT)) < len(default)
    assert Compression(codec, DEFAULT_LEVELS[codec]).compress(TEXT) == default


@pytest.mark.parametrize(
    ("codec", "level", "expected"),
    [
        (Codec.GZIP, 0, "It must be 1 to 9"),
        (Codec.GZIP, 10, "It must be 1 to 9"),
        (Codec.LZ4, 18, "It must be 1 to 17"),
        (Codec.LZ4, -1, "It must be 1 to 17"),
        (Codec.ZSTD, 23, "It must be -131072 to 22"),
        (Codec.SNAPPY, 1, "It has no levels"),
        (Codec.NONE, 1, "It has no levels"),
    ],
)
def test_a_level_that_kafka_does_not_have_is_refused(
    codec: Codec, level: int, expected: str
) -> None:
    name = f"kafka.compression.{codec.name.lower()}.level"
    with pytest.raises(ConfigurationError, match=f"'{name}': it is {level}. {expected}"):
        Compression(codec, level)


def test_lz4_frames_are_of_blocks_that_stand_alone() -> None:
    """Kafka's own reader accepts no other frames."""
    for level in (None, 1, 17):
        assert not lz4.frame.get_frame_info(Compression(Codec.LZ4, level).compress(TEXT))[
            "block_linked"
        ]
