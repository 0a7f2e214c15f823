"""Primitive types: their bytes, and errors."""

import struct
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.protocol.wire import (
    BOOLEAN,
    BYTES,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    NEVER_COMPACT_STRING,
    RECORDS,
    STRING,
    UINT16,
    UINT32,
    UUID,
    Primitive,
    Reader,
    Writer,
    write_unsigned_varint,
)

ID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")


def read(
    kind: Primitive, data: bytes | bytearray, *, flexible: bool = False, nullable: bool = False
) -> Any:
    reader = Reader(memoryview(data))
    value = kind.reader(flexible=flexible, nullable=nullable)(reader)
    assert reader.remaining == 0
    return value


def written(kind: Primitive, value: Any, *, flexible: bool, nullable: bool) -> bytes:
    out = Writer()
    kind.writer(flexible=flexible, nullable=nullable)(out, value)
    return b"".join(out.pieces())


@pytest.mark.parametrize(
    ("kind", "flexible", "value", "data"),
    [
        (BOOLEAN, False, True, "01"),
        (INT8, False, -2, "fe"),
        (INT16, False, -2, "fffe"),
        (UINT16, False, 0xFFFE, "fffe"),
        (INT32, False, -2, "fffffffe"),
        (UINT32, False, 0xFFFFFFFE, "fffffffe"),
        (INT64, False, -2, "fffffffffffffffe"),
        (FLOAT64, False, -2.5, "c004000000000000"),
        (UUID, False, ID, "00112233445566778899aabbccddeeff"),
        (STRING, False, "aé", "000361c3a9"),
        (STRING, True, "aé", "0461c3a9"),
        (STRING, False, None, "ffff"),
        (STRING, True, None, "00"),
        (STRING, True, "x" * 127, "8001" + "78" * 127),
        (NEVER_COMPACT_STRING, True, "aé", "000361c3a9"),
        (BYTES, False, b"ab", "000000026162"),
        (BYTES, True, b"ab", "036162"),
        (BYTES, False, None, "ffffffff"),
        (RECORDS, False, b"ab", "000000026162"),
        (RECORDS, True, b"", "01"),
        (RECORDS, True, None, "00"),
    ],
)
def test_layout(kind: Primitive, flexible: bool, value: Any, data: str) -> None:
    found = written(kind, value, flexible=flexible, nullable=value is None)
    assert found.hex() == data
    assert read(kind, found, flexible=flexible, nullable=value is None) == value


@pytest.mark.parametrize(
    ("value", "data"),
    [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**32 - 1, "ffffffff0f")],
)
def test_unsigned_varint(value: int, data: str) -> None:
    out = bytearray()
    write_unsigned_varint(out, value)
    assert out.hex() == data
    assert Reader(memoryview(out)).unsigned_varint() == value


@given(st.integers(0, 2**32 - 1))
def test_unsigned_varint_comes_back(value: int) -> None:
    out = bytearray()
    write_unsigned_varint(out, value)
    reader = Reader(memoryview(out))
    assert (reader.unsigned_varint(), reader.remaining) == (value, 0)


@pytest.mark.parametrize("data", ["ffffffffff01", "ffffffff1f", "808080808000"])
def test_a_varint_beyond_32_bits_or_5_bytes_is_refused(data: str) -> None:
    with pytest.raises(ValueError, match="varint"):
        Reader(memoryview(bytes.fromhex(data))).unsigned_varint()


@pytest.mark.parametrize(
    ("kind", "flexible", "nullable", "data"),
    [
        (STRING, False, False, "ffff"),
        (STRING, False, True, "fffe"),
        (STRING, True, False, "00"),
        (STRING, False, False, "0001c3"),
        (STRING, False, False, "000361"),
        (STRING, True, False, "ffffffff0f61"),
        (BYTES, False, True, "80000000"),
        (BYTES, False, False, "7fffffff61"),
        (RECORDS, False, True, "fffffffe"),
        (UUID, False, False, "0011"),
        (INT32, False, False, "000000"),
    ],
)
def test_wrong_lengths_and_bad_text_are_refused(
    kind: Primitive, flexible: bool, nullable: bool, data: str
) -> None:
    with pytest.raises((ValueError, IndexError, struct.error)):
        read(kind, bytes.fromhex(data), flexible=flexible, nullable=nullable)


def test_what_is_apart_stays_in_its_place() -> None:
    out, first, second = Writer(b"a"), memoryview(b"x" * 5000), memoryview(b"y" * 5000)
    out.append_uncopied(first)
    out.append_uncopied(second)
    out += b"b"
    out.append_uncopied(memoryview(b"z"))
    assert out.pieces() == [b"a", first, second, b"bz"]
    assert Writer().pieces() == []


def test_records_are_a_view_and_no_copy() -> None:
    data = bytearray(written(RECORDS, b"abc", flexible=False, nullable=True))
    view = read(RECORDS, data, nullable=True)
    data[-1:] = b"z"
    assert bytes(view) == b"abz"
