"""Protobuf's wire format, written and parsed by hand."""

from typing import Any


def varint(value: int, longer: int = 0) -> bytes:
    """Encode a varint of 64 bits, with `longer` extra bytes."""
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    more = min(longer, 9 - len(found))
    return bytes([*found, *((value | 128,) if more else (value,)), *([128] * (more - 1))]) + (
        b"\0" if more else b""
    )


def tag(number: int, wire: int) -> bytes:
    return varint(number << 3 | wire)


def sized(number: int, content: bytes | str) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    return tag(number, 2) + varint(len(data)) + data


def number(number: int, value: int) -> bytes:
    """Encode a field with a varint."""
    return tag(number, 0) + varint(value)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def parts(data: bytes) -> list[tuple[int, int, Any]]:
    """Parse valid bytes into fields: number, wire type and value. A group's value is its bytes."""
    found, at = [], 0
    while at < len(data):
        number, wire, content, at = _part(data, at)
        found.append((number, wire, content))
    return found


def _part(data: bytes, at: int) -> tuple[int, int, Any, int]:
    head, at = read_varint(data, at)
    number, wire = head >> 3, head & 7
    content: Any
    if wire == 0:
        content, at = read_varint(data, at)
    elif wire == 3:
        start, inner, before = at, -1, at
        while inner != 4:
            before = at
            _, inner, _, at = _part(data, at)
        content = data[start:before]
    elif wire == 4:
        content = b""
    else:
        if wire == 2:
            size, at = read_varint(data, at)
        else:
            size = 8 if wire == 1 else 4
        content, at = data[at : at + size], at + size
    return number, wire, content, at
