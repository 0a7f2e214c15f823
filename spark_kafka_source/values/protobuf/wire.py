"""Reader of Protobuf fields one at a time, for small data: descriptors and message indexes.

https://protobuf.dev/programming-guides/encoding/
"""

from collections.abc import Iterator

from spark_kafka_source.values.protobuf.schema import Wire

MAX_VARINT_BYTES = 10
_SIZES = {Wire.FIXED32: 4, Wire.FIXED64: 8}


class WireError(ValueError):
    """Bytes that are not Protobuf."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the unsigned 64-bit varint, and the position after it."""
    value = 0
    for count, byte in enumerate(data[at : at + MAX_VARINT_BYTES]):
        value |= (byte & 127) << 7 * count
        if byte < 128:
            return value & ((1 << 64) - 1), at + count + 1
    raise WireError(f"no varint at byte {at}")


def wire_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the number and the value of each field. Groups are refused: descriptors have none."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        number, wire = tag >> 3, tag & 7
        if not number:
            raise WireError(f"a field of number 0 before byte {at}")
        if wire == Wire.VARINT:
            value, at = varint(data, at)
            yield number, value
            continue
        if wire == Wire.SIZED:
            size, at = varint(data, at)
        elif wire in (Wire.FIXED32, Wire.FIXED64):
            size = _SIZES[Wire(wire)]
        else:
            raise WireError(f"the wire type {wire} before byte {at}")
        if size > len(data) - at:
            raise WireError(f"no field at byte {at}")
        yield number, data[at : at + size]
        at += size
