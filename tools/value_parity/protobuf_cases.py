"""Odd cases of Protobuf, compared with upb, since Spark's function could not run."""

from tests.values.protobuf_wire import number as n
from tests.values.protobuf_wire import sized, tag, varint
from tools.value_parity.case import Case, Protobuf, Shown

_AS_JAVA = "better: upb takes a tag of 0 for the end of the message, whatever comes behind it"
_UNFRAMED = "better: from_protobuf knows no framing"
_FRAMING = "tests/registry/test_framing.py"


def case(  # noqa: PLR0917 - a row of the table
    number: int,
    what: str,
    data: bytes | None,
    columns: str,
    verdict: str = "same",
    of: str = "Plain",
) -> Case:
    """Return the case of the message `of`. `columns` are separated by commas."""
    return Case(number, what, Protobuf(of, data, tuple(columns.split(","))), verdict)


_STREET, _CITY = sized(1, b"s"), sized(2, b"c")

PROTOBUF = [
    case(34, "int32, -1 in ten bytes", n(1, -1), "i32"),
    case(34, "int32, -1 in five bytes", tag(1, 0) + b"\xff\xff\xff\xff\x0f", "i32"),
    case(34, "int32, 2^32 + 5", n(1, (1 << 32) + 5), "i32"),
    case(35, "a field that nobody knows", n(900, 5) + n(1, 7), "i32"),
    case(35, "a group that nobody knows", tag(900, 3) + n(1, 5) + tag(900, 4) + n(1, 7), "i32"),
    case(35, "a group's end without its start", tag(900, 4), "i32"),
    case(35, "field number 0", b"\x00\x01", "i32"),
    case(35, "a varint of eleven bytes", tag(1, 0) + b"\x80" * 10 + b"\x01", "i32"),
    case(36, "packed and unpacked in one field",
         n(6, 1) + sized(6, varint(2) + varint(3)) + n(6, 4), "many"),
    case(37, "a scalar twice", n(1, 1) + n(1, 2), "i32"),
    case(37, "a message twice", sized(9, _STREET) + sized(9, _CITY), "to"),
    case(37, "two of a oneof", n(10, 5) + sized(11, b"x"), "choice,other"),
    case(38, "`optional`, its default written", n(2, 0), "maybe"),
    case(38, "`optional`, absent", b"", "maybe"),
    case(38, "a plain scalar, absent", b"", "i32"),
    case(38, "a message, absent", b"", "to"),
    case(39, "a field with another wire type", sized(1, b"abc") + n(2, 5), "i32,maybe"),
    case(39, "fields out of order", n(2, 5) + n(1, 7), "i32,maybe"),
    case(39, "an enum's number without a name, proto3", n(5, 99), "kind",
         "different: the number as text; Spark has `UNKNOWN_ENUM_VALUE_Kind_99`"),
    case(40, "no bytes", b"", "i32,text,many"),
    case(40, "null, a tombstone", None, "i32"),
    case(41, "a string that is not UTF-8", sized(3, b"\xff"), "text"),
    case(41, "bytes that are not UTF-8", sized(4, b"\xff"), "data"),
    case(41, "a byte too many", n(1, 5) + b"\x08", "i32"),
    Case(42, "message indexes `00`, `02 00`, `04 02 00`",
         Shown("the first message; the first; the first in the second",
               f"{_FRAMING}::test_every_row_is_what_it_is_by_itself"), _UNFRAMED),
    Case(42, "2^31 indexes", Shown("bad", f"{_FRAMING}::test_reasons"), _UNFRAMED),
    case(43, "a map's entry without a value", sized(8, sized(1, b"k")), "map"),
    case(43, "a map's entry without a key", sized(8, n(2, 5)), "map"),
    case(43, "uint64 of 2^64 - 1", n(16, (1 << 64) - 1), "u64"),
    Case(44, "a schema as the text of a `.proto`",
         Shown("read, with the extra `protobuf`",
               "tests/spark/test_typed_values.py::test_protobuf_both_ways"),
         "better: from_protobuf needs a descriptor set"),
]  # fmt: skip
"""All cases, by their numbers."""
