"""Changes to bytes: general ones that break any format, and ones that know records.

An edit is four numbers. So both hypothesis and a random number generator can draw it.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product
from random import Random
from typing import NamedTuple

from spark_kafka_source.errors import ProtocolError
from spark_kafka_source.records.varints import encode_varint, varint

# Limits at which signs, lengths of varints, and widths of numbers change.
INTERESTING = (
    0, 1, 2, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000,
    0xFFFFFFFE, 0xFFFFFFFF, (1 << 62), (1 << 63) - 1, 1 << 63, (1 << 64) - 2, (1 << 64) - 1,
)  # fmt: skip
_WIDTHS = (1, 2, 4, 8)


class Edit(NamedTuple):
    """An edit: its kind, place (in 1/65536 of the length), size, and value."""

    kind: int
    place: int
    size: int
    value: int


def edits_of(data: bytes) -> list[Edit]:
    """Return the edits that bytes encode, with eight bytes each."""
    return [
        Edit(
            data[at],
            int.from_bytes(data[at + 1 : at + 3]),
            data[at + 3],
            int.from_bytes(data[at + 4 : at + 8]),
        )
        for at in range(0, len(data) - 7, 8)
    ]


def random_edits(random: Random) -> list[Edit]:
    """Return one to four random edits."""
    return edits_of(random.randbytes(8 * random.choice((1, 1, 2, 4))))


def edited(data: bytes, edits: Iterable[Edit]) -> bytes:
    """Return `data` after all edits."""
    out = bytearray(data)
    for kind, place, size, value in edits:
        at = place * (len(out) + 1) >> 16
        number = INTERESTING[value % len(INTERESTING)]
        match kind % 8:
            case 0:
                out[at : at + 1] = [value & 0xFF]
            case 1:
                out[at : at + 1] = bytes(each ^ 1 << value % 8 for each in out[at : at + 1])
            case 2:
                width = _WIDTHS[size % 4]
                out[at : at + width] = (number & (1 << 8 * width) - 1).to_bytes(width)
            case 3:
                del out[at : at + 1 + size % 16]
            case 4:
                out[at:at] = value.to_bytes(4)[: 1 + size % 4]
            case 5:  # a varint, zigzag or not
                out[at : at + size % 3] = encode_varint(number if number < 1 << 63 else value - 9)
            case 6:
                out[at:at] = out[at : at + 1 + size]
            case _:
                del out[at:]
                out += out[: size % 32] if value % 4 == 0 else b""
    return bytes(out)


def swept(data: bytes) -> Iterator[bytes]:
    """Yield `data` with each byte, and each four bytes, replaced by telling values in turn."""
    for at in range(len(data)):
        for value in (0x00, 0x01, 0x7E, 0x7F, 0x80, 0xFF):
            yield _with(data, at, bytes([value]))
        for number in (0x7FFFFFFF, 0x80000000, 0xFFFFFFFC):
            yield _with(data, at, number.to_bytes(4))


def pairs_of_bytes(data: bytes) -> Iterator[bytes]:
    """Yield `data` with any two bytes changed."""
    for first, second in combinations(range(len(data)), 2):
        for one, other in product((0x00, 0x0E, 0x7E, 0xFF), repeat=2):
            yield _with(_with(data, first, bytes([one])), second, bytes([other]))


def pairs_of_numbers(data: bytes) -> Iterator[bytes]:
    """Yield `data` with any two groups of four bytes set to their largest number."""
    large = (0x7FFFFFFF).to_bytes(4)
    for first, second in combinations(range(len(data)), 2):
        if second - first >= len(large):
            yield _with(_with(data, first, large), second, large)


def _with(data: bytes, at: int, part: bytes) -> bytes:
    return (data[:at] + part + data[at + len(part) :])[: len(data)]


def records_edited(data: bytes, edits: Sequence[Edit]) -> bytes:
    """Edit one of several length-prefixed records, and correct its length.

    The bytes from the first invalid record on do not change.
    """
    bodies, rest = _bodies(data)
    if not bodies or not edits:
        return edited(data, edits)
    chosen = edits[0].size % len(bodies)
    match edits[0].kind % 16:
        case 0:
            bodies.insert(chosen, bodies[chosen])
        case 1:
            del bodies[chosen]
        case _:
            bodies[chosen] = edited(bodies[chosen], edits)
    return b"".join(encode_varint(len(body)) + body for body in bodies) + rest


def _bodies(data: bytes) -> tuple[list[bytes], bytes]:
    bodies, at = [], 0
    try:
        while at < len(data):
            length, start = varint(data, at)
            if not 0 <= length <= len(data) - start:
                break
            bodies.append(data[start : start + length])
            at = start + length
    except ProtocolError:
        pass
    return bodies, data[at:]
