"""Odd cases of Avro."""

from typing import Any

from spark_kafka_source.records.varints import encode_varint as n
from tests.values.avro_schemas import logical
from tests.values.test_avro_cases import DECIMAL, MAP, array, enum, fixed, of, record, text
from tools.value_parity.case import Avro, Case, Shown

_LOST = "better: nulls that were written can be told from what is broken"
_SILENT = "better: no text is changed in silence"
_RESOLVED = "better: the record is bad and says why, Spark's is a row of nulls"
_MILLIS = logical("long", "timestamp-millis")
_NUMBER_OR_TIME = ["int", _MILLIS]
_DATE_OR_TIME = ["null", logical("int", "date"), logical("long", "timestamp-micros")]
_TOLD = "better: a number and a time can be told apart, Spark's is a number of either"
_UNTYPED = "better: from_avro knows one schema, and no framing"
_STREAMS = "tests/spark/test_typed_streams.py"


def case(  # noqa: PLR0917 - a row of the table
    number: int,
    what: str,
    kind: Any,
    data: bytes | None,
    verdict: str = "same",
    read_as: Any = None,
) -> Case:
    """Return the case of a value of the type `kind`."""
    reader = None if read_as is None else of(read_as)
    return Case(number, what, Avro(of(kind), data, reader), verdict)


def of_records(  # noqa: PLR0917 - a row of the table
    number: int, what: str, writer: Any, reader: Any, data: bytes, verdict: str = "same"
) -> Case:
    """Return the case of two whole schemas."""
    return Case(number, what, Avro(writer, data, reader), verdict)


_A = record(("a", "int"))
_INNER = record(("x", "int"), ("y", "string"), name="I")
_REORDERED = record(("y", "string"), ("x", "int"), name="I")
_TWO = record(
    ("p", {**record(("v", "int"), name="N"), "namespace": "a"}),
    ("q", {**record(("v", "string"), name="N"), "namespace": "b"}),
)

AVRO = [
    case(1, "bytes behind the record", "int", b"\x02\x00", "better: another schema's record does "
         "not pass for this one's"),
    case(2, "a string that is cut", "string", b"\x06ab", _LOST),
    case(2, "no bytes", "int", b"", _LOST),
    case(2, "a negative length", "bytes", b"\x01", _LOST),
    case(2, "a length of 2^31", "bytes", n(1 << 31), _LOST),
    case(2, "null, a tombstone", "int", None),
    case(3, "a string that is not UTF-8", "string", b"\x04\xff\xfe", _SILENT),
    case(4, "an int of 33 bits", "int", n(1 << 31), "better: 0 was never written"),
    case(4, "a varint of 11 bytes", "long", b"\x80" * 10 + b"\x01", _LOST),
    case(4, "a boolean of 2", "boolean", b"\x02", "better: it is no boolean"),
    case(4, "an enum's third symbol of two", enum("A", "B"), n(2), _LOST),
    case(4, "a union's third branch of two", ["null", "int"], n(2), _LOST),
    case(5, "decimal(4, 2), one byte below zero", DECIMAL, text(b"\xff")),
    case(5, "decimal(4, 2) with a byte for the sign", DECIMAL, text(b"\x00\x80")),
    case(5, "decimal(4, 2) without bytes", DECIMAL, text(b""), _LOST),
    case(5, "decimal(4, 2) of five digits", DECIMAL, text(b"\x27\x10"), _LOST),
    case(6, "decimal(4, 1) in a fixed", fixed(2, logicalType="decimal", precision=4, scale=1),
         b"\xff\xfe"),
    case(6, "decimal(50, 0)", logical("bytes", "decimal", precision=50, scale=0), text(b"\1"),
         "same"),
    case(7, "timestamp-millis of -1", _MILLIS, n(-1)),
    case(7, "timestamp-millis beyond the microseconds of 64 bits", _MILLIS, n(1 << 62), _LOST),
    case(7, "an int in a union of it and timestamp-millis", _NUMBER_OR_TIME, n(0) + n(5), _TOLD),
    case(7, "a timestamp in it", _NUMBER_OR_TIME, n(1) + n(5), _TOLD),
    case(7, "both in an array", array(_NUMBER_OR_TIME),
         n(2) + n(0) + n(5) + n(1) + n(5) + n(0), _TOLD),
    case(7, "both in a map", {"type": "map", "values": _NUMBER_OR_TIME},
         n(2) + text("a") + n(0) + n(5) + text("b") + n(1) + n(5) + n(0), _TOLD),
    case(7, "a date in a union of it and timestamp-micros", _DATE_OR_TIME, n(1) + n(5), _TOLD),
    case(7, "a timestamp in that", _DATE_OR_TIME, n(2) + n(5), _TOLD),
    case(7, "a string in a union of it and timestamp-micros",
         ["string", logical("long", "timestamp-micros")], n(0) + text("x")),
    case(8, "a duration", fixed(12, logicalType="duration"), bytes(range(12))),
    case(8, "a fixed", fixed(2), b"ab"),
    case(9, "a map's block with its size", MAP,
         n(-2) + n(6) + text("a") + n(1) + text("b") + n(2) + n(0)),
    case(9, "a map in two blocks", MAP,
         n(1) + text("a") + n(1) + n(1) + text("b") + n(2) + n(0)),
    case(9, "a map's key twice", MAP, n(2) + text("a") + n(1) + text("a") + n(3) + n(0)),
    case(10, "a block with a wrong size in bytes", array("int"), n(-2) + n(1) + n(5) + n(6) + n(0)),
    case(10, "a block whose size leads out of the record", array("int"),
         n(-1) + n(99) + n(5) + n(0), "better: it may be another schema's record"),
    case(11, "100,000 items that take no bytes", array(fixed(0)), n(100_000) + n(0),
         "different: 64 items without bytes at most, since six bytes may claim millions"),
    case(12, "int as long", "int", n(-5), read_as="long"),
    case(12, "int as float", "int", n(16_777_217), read_as="float"),
    case(12, "int as double", "int", n(16_777_217), read_as="double"),
    case(12, "long as float", "long", n(1 << 40), read_as="float"),
    case(12, "long as double", "long", n(5), read_as="double"),
    case(12, "float as double", "float", b"\0\0\xc0\x3f", read_as="double"),
    case(12, "string as bytes", "string", text("né"), read_as="bytes"),
    case(12, "bytes as string", "bytes", text("né"), read_as="string"),
    case(12, "bytes as string that are no UTF-8", "bytes", text(b"\xff"), _SILENT, "string"),
    case(13, "long as int", "long", n(5), _RESOLVED, "int"),
    case(13, "int as string", "int", n(5), _RESOLVED, "string"),
    of_records(14, "a new int with a default", _A, record(("v", "int", 5), ("a", "int")), n(1)),
    of_records(14, "a new field that is null by default", _A,
               record(("v", ["null", "int"], None), ("a", "int")), n(1)),
    of_records(14, "new bytes with a default", _A, record(("v", "bytes", "\u00ff")), n(1)),
    of_records(14, "a new enum with a default", _A, record(("v", enum("A", "B"), "B")), n(1)),
    of_records(14, "a new record with a default", _A, record(("v", _INNER, {"x": 3, "y": "z"})),
               n(1)),
    of_records(14, "a new field without a default", _A, record(("v", "int"), ("a", "int")), n(1),
               _RESOLVED),
    of_records(15, "a field's alias", record(("old", "int")),
               {"type": "record", "name": "R",
                "fields": [{"name": "v", "type": "int", "aliases": ["old"]}]}, n(5)),
    of_records(15, "a record of another name, without an alias", record(("v", "int")),
               record(("v", "int"), name="Other"), n(5)),
    case(16, "an enum's symbol that the reader has not, with a default", enum("A", "B"), n(1),
         read_as=enum("A", default="A")),
    case(16, "the same without a default", enum("A", "B"), n(1), _RESOLVED, enum("A")),
    case(17, "null, and the reader has none", ["null", "int"], n(0), _RESOLVED, "int"),
    case(17, "a value, and the reader has none but values", ["null", "int"], n(1) + n(5),
         read_as="int"),
    case(17, "int as null or long", "int", n(5), read_as=["null", "long"]),
    case(18, "a type that holds itself", ["null", "R"], n(0),
         "better: the path is named, and other fields can be read"),
    Case(19, "references two levels deep, in a circle, in other namespaces",
         Shown("followed; refused; followed",
               "tests/registry/test_client.py::test_a_circle_of_references_is_refused"), _UNTYPED),
    Case(20, "records of two schemas that take turns",
         Shown("each by its own, in the order of offsets",
               f"{_STREAMS}::test_a_schema_evolves_while_a_stream_runs"), _UNTYPED),
    Case(21, "a value that begins with `{`, or is cut within the id",
         Shown("bad: no schema id, found 7b",
               "tests/spark/test_typed_values.py::"
               "test_bad_records_are_dead_letters_or_left_out_or_an_error"), _UNTYPED),
    Case(21, "a header with the schema's GUID, and an old prefix",
         Shown("the header counts, and nothing is taken off",
               f"{_STREAMS}::test_a_schema_named_in_a_header"), _UNTYPED),
    Case(22, "an id that the registry has not",
         Shown("bad, and asked for once",
               f"{_STREAMS}::test_ids_of_garbage_are_no_flood_of_questions"), _UNTYPED),
    Case(22, "a registry that refuses, is silent, or answers 401 or 500",
         Shown("the task fails, whatever becomes of bad records",
               f"{_STREAMS}::test_no_row_is_lost_while_a_registry_fails"), _UNTYPED),
    Case(23, "a new schema while a stream runs",
         Shown("read as the stream's columns, which stay",
               f"{_STREAMS}::test_a_schema_evolves_while_a_stream_runs"), _UNTYPED),
    of_records(24, "a nested record's fields in another order", record(("v", _INNER)),
               record(("v", _REORDERED)), n(3) + text("z")),
    of_records(24, "two records of one name in two namespaces", _TWO, _TWO, n(3) + text("z")),
]  # fmt: skip
"""All cases, by their numbers."""
