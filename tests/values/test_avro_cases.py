"""Edge cases of Avro, each with its result: a value or a fault."""

import datetime
import json
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_kafka_source.records.varints import encode_varint
from spark_kafka_source.values import (
    Encoded,
    Fault,
    RecursiveTypeError,
    SchemaError,
    UnresolvableError,
)
from spark_kafka_source.values.avro import TIME, ReaderSchema, decode, parse_schema, resolve
from tests.traced import traced
from tests.values.avro_oracle import decoded, laid, program
from tests.values.avro_schemas import logical

MILLION = 1_000_000
UTC = datetime.UTC


def record(*fields: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    """Return a record. A field is a name, a type, and perhaps a default."""
    found = [dict(zip(("name", "type", "default"), each, strict=False)) for each in fields]
    return {"type": "record", "name": name, "fields": found, **more}


def of(kind: Any) -> dict[str, Any]:
    return record(("v", kind))


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return encode_varint(len(data)) + data


def enum(*symbols: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": symbols, **more}


def fixed(size: int, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": "F", "size": size, **more}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


MILLIS = logical("long", "timestamp-millis")
DECIMAL = logical("bytes", "decimal", precision=4, scale=2)
MAP = {"type": "map", "values": "int"}
n = encode_varint

BYTES: list[tuple[str, Any, bytes, Any]] = [
    ("bytes after the record", "int", b"\x02\x00", Fault.TRAILING),
    ("cut", "string", b"\x06ab", Fault.LENGTH),
    ("cut within a double", "double", bytes(7), Fault.TRUNCATED),
    ("cut within a float", "float", bytes(3), Fault.TRUNCATED),
    ("cut within a fixed", fixed(2), b"\x01", Fault.LENGTH),
    ("empty", "int", b"", Fault.TRUNCATED),
    ("a negative length", "bytes", b"\x01", Fault.LENGTH),
    ("a length of 2^31", "bytes", n(1 << 31), Fault.LENGTH),
    ("a length of 2^63 - 1", "bytes", n((1 << 63) - 1), Fault.LENGTH),
    ("a string that is not UTF-8", "string", b"\x04\xff\xfe", Fault.TEXT),
    ("a string of two characters", "string", text("né"), "né"),
    ("the largest int", "int", n((1 << 31) - 1), (1 << 31) - 1),
    ("an int of 33 bits", "int", n(1 << 31), Fault.INT_RANGE),
    ("an int of 33 bits, negative", "int", n(-(1 << 31) - 1), Fault.INT_RANGE),
    ("the largest long", "long", n((1 << 63) - 1), (1 << 63) - 1),
    ("the smallest long", "long", n(-(1 << 63)), -(1 << 63)),
    ("a long of 56 bits", "long", n(-(1 << 55)), -(1 << 55)),
    ("a long of 63 bits", "long", n(1 << 61), 1 << 61),
    ("a long longer than it must be", "long", b"\x82\x80\x00", 1),
    ("a varint of 11 bytes", "long", b"\x80" * 10 + b"\x01", Fault.VARINT),
    ("a varint of 65 bits", "long", b"\xff" * 9 + b"\x02", Fault.VARINT),
    ("a boolean of 2", "boolean", b"\x02", Fault.BOOLEAN),
    ("an enum beyond its symbols", enum("A", "B"), n(2), Fault.SYMBOL),
    ("an enum before them", enum("A", "B"), n(-1), Fault.SYMBOL),
    ("a branch beyond the union", ["null", "int"], n(2), Fault.BRANCH),
    ("a branch before it", ["null", "int"], n(-1), Fault.BRANCH),
    ("a decimal below zero", DECIMAL, text(b"\xff"), Decimal("-0.01")),
    ("a decimal with a byte for its sign", DECIMAL, text(b"\x00\x80"), Decimal("1.28")),
    ("a decimal longer than it must be", DECIMAL, text(bytes(20) + b"\x80"), Decimal("1.28")),
    ("a decimal of 20 bytes", DECIMAL, text(b"\x01" + bytes(19)), Fault.DECIMAL),
    ("a decimal without bytes", DECIMAL, text(b""), Fault.DECIMAL),
    ("a decimal of all its digits", DECIMAL, text(b"\x27\x0f"), Decimal("99.99")),
    ("a decimal beyond them", DECIMAL, text(b"\x27\x10"), Fault.DECIMAL),
    ("a decimal far below them", DECIMAL, text(b"\xd8\xf0"), Fault.DECIMAL),
    (
        "a decimal in a fixed",
        fixed(2, logicalType="decimal", precision=4, scale=1),
        b"\xff\xfe",
        Decimal("-0.2"),
    ),
    (
        "a moment before 1970",
        logical("long", "timestamp-millis"),
        n(-1),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999000, UTC),
    ),
    ("milliseconds beyond 64 bits", MILLIS, n(1 << 62), Fault.TIMESTAMP),
    ("the same below 0", MILLIS, n(-(1 << 63)), Fault.TIMESTAMP),
    ("a day", logical("int", "date"), n(-1), datetime.date(1969, 12, 31)),
    ("a duration", fixed(12, logicalType="duration"), bytes(range(12)), bytes(range(12))),
    ("a fixed", fixed(2), b"ab", b"ab"),
    ("a fixed of nothing", fixed(0), b"", b""),
    ("a logical type nobody knows", logical("int", "weight"), n(7), 7),
    ("a block with its size", MAP, n(-2) + n(6) + text("a") + n(1) + text("b") + n(2) + n(0),
     [("a", 1), ("b", 2)]),
    ("several blocks", MAP, n(1) + text("a") + n(1) + n(1) + text("b") + n(2) + n(0),
     [("a", 1), ("b", 2)]),
    ("a key twice", MAP, n(3) + text("a") + n(1) + text("b") + n(2) + text("a") + n(3) + n(0),
     [("b", 2), ("a", 3)]),
    ("a block with another size", array("int"), n(-2) + n(1) + n(5) + n(6) + n(0), [5, 6]),
    ("a size beyond the end", array("int"), n(-1) + n(99) + n(5) + n(0), Fault.COUNT),
    ("a negative size", array("int"), n(-1) + n(-1) + n(5) + n(0), Fault.COUNT),
    ("134 million nulls", array("null"), n(134 * MILLION) + n(0), Fault.COUNT),
    ("134 million longs", array("long"), n(134 * MILLION) + n(0), Fault.COUNT),
    ("2^63 longs, and their size", array("long"), n(-(1 << 63)) + n(0) + n(0), Fault.COUNT),
    ("134 million empty records", array(record(name="N")), n(134 * MILLION) + n(0), Fault.COUNT),
    ("ten nulls", array("null"), n(10) + n(0), [None] * 10),
    ("blocks of nulls", array("null"), n(40) + n(40) + n(0), Fault.COUNT),
    ("an array that does not end", array("int"), n(1) + n(5), Fault.TRUNCATED),
    ("int or long", ["int", "long"], n(0) + n(5), 5),
    ("float or double", ["null", "float", "double"], n(1) + b"\0\0\xc0\x3f", 1.5),
    ("a union of several", ["null", "int", "string"], n(2) + text("x"),
     {"member0": None, "member1": "x"}),
    ("null of several", ["null", "int", "string"], n(0), None),
    ("null", "null", b"", None),
]  # fmt: skip


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("kind", "data", "found"), [case[1:] for case in BYTES], ids=[c[0] for c in BYTES]
)
def test_bytes(kind: Any, data: bytes, found: Any) -> None:
    """The value is in a record in a union, as usual. The row is between two valid rows."""
    schema = array(of(kind))
    good = n(0)
    rows = decoded(schema, schema, [good, n(1) + data + n(0), good])
    if isinstance(found, Fault):
        assert rows.status[1] != Fault.OK
        assert rows.array[1].as_py() is None
        alone = decoded(of(kind), of(kind), [data])
        assert alone.status[0] == found
        assert alone.reason(0).endswith(found.reason)
    else:
        assert rows.array[1].as_py() == [{"v": found}]
    assert rows.array[0].as_py() == rows.array[2].as_py() == []
    assert rows.status[0] == rows.status[2] == Fault.OK


RESOLVED: list[tuple[str, Any, Any, bytes, Any]] = [
    ("int as long", "int", "long", n(-5), -5),
    ("int as float", "int", "float", n(16_777_217), 16_777_216.0),
    ("int as double", "int", "double", n(16_777_217), 16_777_217.0),
    ("long as float", "long", "float", n(1 << 40), float(1 << 40)),
    ("long as double", "long", "double", n(5), 5.0),
    ("float as double", "float", "double", b"\0\0\xc0\x3f", 1.5),
    ("string as bytes", "string", "bytes", text("né"), "né".encode()),
    ("bytes as string", "bytes", "string", text("né"), "né"),
    ("bytes as string that are none", "bytes", "string", text(b"\xff"), Fault.TEXT),
    ("a symbol unknown, with a default", enum("A", "B"), enum("A", default="A"), n(1), "A"),
    ("a symbol unknown, without", enum("A", "B"), enum("A"), n(1), Fault.UNRESOLVED),
    ("symbols in another order", enum("A", "B"), enum("B", "A"), n(1), "B"),
    ("null where there is none", ["null", "int"], "int", n(0), Fault.UNRESOLVED),
    ("no null where there may be", ["null", "int"], "int", n(1) + n(5), 5),
    ("into a union", "int", ["null", "long"], n(5), 5),
    ("into the very type of several", "int", ["string", "double", "int"], n(5),
     {"member0": None, "member1": None, "member2": 5}),
    ("into the first it is promoted to", "int", ["string", "float", "double", "boolean"], n(5),
     {"member0": None, "member1": 5.0, "member2": None, "member3": None}),
    ("milliseconds as microseconds", logical("long", "timestamp-millis"),
     logical("long", "timestamp-micros"), n(1), datetime.datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)),
    ("microseconds as milliseconds", logical("long", "timestamp-micros"),
     logical("long", "timestamp-millis"), n(1), datetime.datetime(1970, 1, 1, 0, 0, 0, 1, UTC)),
    ("a long as milliseconds", "long", logical("long", "timestamp-millis"), n(1),
     datetime.datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)),
    ("a namespace of its own", enum("A", namespace="x"), enum("A", namespace="y"), n(0), "A"),
    ("an alias of a type", fixed(1), {**fixed(1), "name": "G", "aliases": ["F"]}, b"a", b"a"),
]  # fmt: skip


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("writer", "reader", "data", "found"), [c[1:] for c in RESOLVED], ids=[c[0] for c in RESOLVED]
)
def test_resolution(  # a table, and how it is run
    writer: Any, reader: Any, data: bytes, found: Any
) -> None:
    items = decoded(array(writer), array(reader), [n(1) + data + n(0)])
    rows = decoded(of(writer), of(reader), [data])
    if isinstance(found, Fault):
        assert rows.status[0] == items.status[0] == found
        detail = "null was written. It cannot be read as int" if data == n(0) else found.reason
        assert rows.reason(0) == f"v: {detail}"
    else:
        assert rows.array.to_pylist() == [{"v": found}]
        assert items.array.to_pylist() == [[found]]


UNRESOLVABLE: list[tuple[Any, Any, str]] = [
    (of("long"), of("int"), "at v: long was written. It cannot be read as int"),
    (of("int"), of("string"), "at v: int was written. It cannot be read as string"),
    (of(["null", "int"]), of(["null", "string"]), "^$"),
    (record(), of("int"), "at v: the writer has no field 'v'. The reader's field has no default"),
    (of(fixed(1)), of(fixed(2)), "at v: fixed F of 1 bytes was written"),
    (of(enum("A")), of({**enum("A"), "name": "G"}), "at v: enum E was written"),
    (of(DECIMAL), of({**DECIMAL, "scale": 1}), "at v: bytes .decimal.4,2.. was written"),
    (of("string"), of(DECIMAL), "at v: string was written. It cannot be read as bytes .decimal"),
    (of(DECIMAL), of("string"), "at v: bytes .decimal.4,2.. was written"),
    (
        of("null"),
        of(["int", "string"]),
        "at v: null was written. It cannot be read as .int, string",
    ),
    (of("string"), of("null"), "at v: string was written. It cannot be read as null"),
]


@pytest.mark.parametrize(("writer", "reader", "message"), UNRESOLVABLE)
def test_what_can_never_be_read(writer: Any, reader: Any, message: str) -> None:
    if message == "^$":  # only null is possible
        assert decoded(writer, reader, [n(0)]).array.to_pylist() == [{"v": None}]
        assert decoded(writer, reader, [n(1) + n(1)]).status[0] == Fault.UNRESOLVED
        return
    with pytest.raises(UnresolvableError, match=message):
        program(writer, reader)


def fixed_kinds(size: int, other: str) -> list[Any]:
    decimals = [fixed(size, logicalType="decimal", precision=20, scale=scale) for scale in range(2)]
    return [fixed(size), fixed(size, logicalType=other), *decimals]


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        *product(fixed_kinds(12, "duration"), repeat=2),
        *product(fixed_kinds(16, "uuid"), repeat=2),
        *product(
            ["bytes", DECIMAL, {**DECIMAL, "scale": 1}, "string", logical("string", "uuid")],
            repeat=2,
        ),
    ],
)
def test_bytes_of_one_logical_type_are_not_read_as_another(writer: Any, reader: Any) -> None:
    both = [each if isinstance(each, dict) else {"type": each} for each in (writer, reader)]
    kinds = [each["logicalType"] for each in both if "logicalType" in each]
    scales = {each["scale"] for each in both if "scale" in each}
    is_text_of_decimal = "decimal" in kinds and any(each["type"] == "string" for each in both)
    if len({*kinds}) <= 1 and len(scales) <= 1 and not is_text_of_decimal:
        assert program(of(writer), of(reader))
        return
    given = parse_schema(json.dumps(writer))
    with pytest.raises(UnresolvableError) as error:
        program(of(writer), of(reader))
    assert error.value.found == f"{given.definition(given.type)} was written"
    assert all(each in f"{error.value.found} {error.value.expected}" for each in kinds)


DEFAULTS: list[tuple[Any, Any, Any]] = [
    ("int", 5, 5),
    ("string", "né", "né"),
    ("bytes", "\u00ff", b"\xff"),
    ("boolean", True, True),
    ("float", 1.5, 1.5),
    ("double", 2, 2.0),
    (["null", "int"], None, None),
    (["int", "null"], 5, 5),
    (["null", "int"], 5, 5),
    (enum("A", "B"), "B", "B"),
    (fixed(2), "ab", b"ab"),
    (array("string"), ["a", "b"], ["a", "b"]),
    (MAP, {"a": 1}, [("a", 1)]),
    (record(("x", "int"), ("y", "int", 7), name="N"), {"x": 3}, {"x": 3, "y": 7}),
    (["string", "int"], "x", {"member0": "x", "member1": None}),
]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(("kind", "default", "found"), DEFAULTS)
def test_defaults(kind: Any, default: Any, found: Any) -> None:
    writer, reader = record(("a", "int")), record(("v", kind, default), ("a", "int"))
    rows = decoded(writer, reader, [n(1), n(2)])
    assert rows.array.to_pylist() == [{"v": found, "a": 1}, {"v": found, "a": 2}]


@pytest.mark.parametrize(
    ("kind", "default"),
    [("int", "x"), ("int", 1 << 31), ("int", True), ("string", 5), ("bytes", "\u0100"),
     (enum("A"), "B"), (fixed(2), "a"), ("float", 1e39), (["null", "int"], "x"),
     (record(("x", "int"), name="N"), {})],
)  # fmt: skip
def test_a_default_that_is_none_is_refused_with_its_path(kind: Any, default: Any) -> None:
    with pytest.raises(SchemaError, match="at v"):
        program(record(), record(("v", kind, default)))


TYPES: list[tuple[Any, pa.DataType]] = [
    (enum("A"), pa.string()),
    (logical("string", "uuid"), pa.string()),
    (fixed(3), pa.binary()),
    (logical("bytes", "decimal", precision=38, scale=2), pa.decimal128(38, 2)),
    (logical("bytes", "decimal", precision=2, scale=4), pa.binary()),
    (fixed(1, logicalType="decimal", precision=3), pa.binary()),
    (logical("long", "timestamp-micros"), pa.timestamp("us", "UTC")),
    (logical("long", "local-timestamp-millis"), pa.timestamp("us")),
    (logical("long", "timestamp-nanos"), pa.int64()),
    (logical("int", "time-millis"), pa.int32()),
    (logical("long", "time-micros"), pa.int64()),
    (["int", "null", "long"], pa.int64()),
    (["int", "string"], pa.struct([("member0", pa.int32()), ("member1", pa.string())])),
    (["int"], pa.int32()),
    (["null"], pa.null()),
    (MAP, pa.map_(pa.string(), pa.int32())),
    (array("int"), pa.list_(pa.field("element", pa.int32()))),
]


@pytest.mark.parametrize(("kind", "arrow"), TYPES)
def test_types_are_those_of_from_avro(kind: Any, arrow: pa.DataType) -> None:
    assert ReaderSchema.of(parse_schema(json.dumps(of(kind)))).arrow_type == pa.struct(
        [("v", arrow)]
    )


def test_times_where_spark_has_them() -> None:
    schema = parse_schema(json.dumps(of(logical("long", "time-micros"))))
    reader = ReaderSchema.of(schema, time_type=TIME)
    found = decode(reader.layout, [resolve(schema, reader)], Encoded(*laid([n(1_000_001)])))
    assert found.array.to_pylist() == [{"v": datetime.time(0, 0, 1, 1)}]


def test_a_tombstone_is_null_without_a_fault() -> None:
    reader, resolved = program(of("int"), of("int"))
    null = np.array([False, True])
    found = decode(reader.layout, [resolved], Encoded(*laid([n(1), b""]), null=null))
    assert found.array.to_pylist() == [{"v": 1}, None]
    assert not found.status.any()


def test_other_names_by_aliases() -> None:
    reader = {"type": "record", "name": "Other", "fields": [
        {"name": "new", "type": "int", "aliases": ["none", "old"]}]}  # fmt: skip
    rows = decoded(record(("old", "int")), reader, [n(5)])
    assert rows.array.to_pylist() == [{"new": 5}]


def test_decimals_that_spark_has_not_are_refused() -> None:
    with pytest.raises(SchemaError, match="Spark has decimals of up to 38 digits"):
        program(of(DECIMAL), of(logical("bytes", "decimal", precision=50, scale=2)))


def test_decimals_that_spark_has_not_are_read_as_the_error_advises() -> None:
    """Oracle's NUMBER comes as decimal(64,0)."""
    oracle, fitting = (logical("bytes", "decimal", precision=each) for each in (64, 38))
    rows = [text(b"\x05"), text((10**38).to_bytes(17))]
    found = decoded(of({**oracle, "scale": 0}), of({**fitting, "scale": 0}), rows)
    assert found.array.to_pylist() == [{"v": Decimal(5)}, None]
    assert decoded(of({**oracle, "scale": 0}), of("bytes"), rows[:1]).array[0].as_py() == {
        "v": b"\5"
    }


@pytest.mark.usefixtures("engine")
def test_references_two_levels_deep_and_in_other_namespaces() -> None:
    one = enum("A", "B", namespace="x")
    two = record(("one", "x.E"), ("again", array("E")), name="Two", namespace="x")
    texts = [json.dumps(each) for each in (one, two)]
    schema = parse_schema(json.dumps(record(("two", "x.Two"), name="y.R")), texts)
    reader = ReaderSchema.of(schema)
    row = n(1) + n(1) + n(0) + n(0)
    found = decode(reader.layout, [resolve(schema, reader)], Encoded(*laid([row])))
    assert found.array.to_pylist() == [{"two": {"one": "B", "again": ["A"]}}]
    with pytest.raises(SchemaError, match=r"there is no type 'x\.Two'"):
        parse_schema('"x.A"', [json.dumps(record(("b", "x.Two"), name="x.A")), texts[1]])


OLDER = record(("id", "long"), ("name", "string"))
NEWER = record(("more", "double"), ("name", "string"), ("id", "int"))
READER = record(("name", "string"), ("id", "long"), ("more", "double", -1.0))


@pytest.mark.usefixtures("engine")
def test_writers_that_take_turns_are_each_read_as_they_wrote() -> None:
    """The order of rows is kept, with a malformed row and a row of an unknown writer."""
    (reader, older), (_, newer) = program(OLDER, READER), program(NEWER, READER)
    rows = [
        n(1) + text("a"), bytes(8) + text("b") + n(2), n(3) + text(b"\xff"), b"", n(5) + text("e"),
        bytes(7), bytes(8) + text("g") + n(7),
    ]  # fmt: skip
    numbers = np.array([0, 1, 0, -1, 0, 1, 1])
    found = decode(reader.layout, [older, newer], Encoded(*laid(rows), program_of=numbers))
    assert found.array.to_pylist() == [
        {"name": "a", "id": 1, "more": -1.0},
        {"name": "b", "id": 2, "more": 0.0},
        None,
        None,
        {"name": "e", "id": 5, "more": -1.0},
        None,
        {"name": "g", "id": 7, "more": 0.0},
    ]
    faults = {2: (Fault.TEXT, "name"), 3: (Fault.NO_PROGRAM, ""), 5: (Fault.TRUNCATED, "more")}
    for row, (fault, path) in faults.items():
        assert found.status[row] == fault
        assert found.paths.get(row, "") == path
    assert np.count_nonzero(found.status) == len(faults)


@pytest.mark.usefixtures("engine")
def test_fields_in_another_order_and_names_of_two_namespaces() -> None:
    one = {"type": "record", "name": "a.N", "fields": [
        {"name": "x", "type": "int"}, {"name": "y", "type": "string"}]}  # fmt: skip
    other = {**one, "name": "b.N", "fields": [{"name": "y", "type": "string"}]}
    writer = record(("p", one), ("q", array(other)), ("u", ["a.N", "b.N"]))
    turned = {**one, "fields": one["fields"][::-1]}
    reader = record(("u", [other, turned]), ("q", array("b.N")), ("p", "a.N"))
    row = n(1) + text("p") + n(1) + text("q") + n(0) + n(0) + n(2) + text("u")
    found = decoded(writer, reader, [row])
    assert found.array.to_pylist() == [
        {
            "u": {"member0": None, "member1": {"y": "u", "x": 2}},
            "q": [{"y": "q"}],
            "p": {"y": "p", "x": 1},
        }
    ]


NODE = record(("v", "int"), ("next", ["null", "Node"]), name="Node")


def test_a_type_that_holds_itself_is_refused_with_its_path() -> None:
    with pytest.raises(
        RecursiveTypeError, match=r"at a\.next\[\]\.next\[\]: record Node holds itself"
    ):
        inner = record(("next", array("Node")), name="Node")
        ReaderSchema.of(
            parse_schema(json.dumps(record(("a", record(("next", array(inner)), name="X")))))
        )


@pytest.mark.usefixtures("engine")
def test_a_type_that_holds_itself_is_passed_over() -> None:
    schema = parse_schema(json.dumps(record(("node", NODE), ("v", "int"))))
    reader = ReaderSchema.of(schema, ["v"])
    resolved = resolve(schema, reader)

    def nested(depth: int) -> bytes:
        return (n(1) + n(1)) * depth + n(1) + n(0) + n(7)

    found = decode(reader.layout, [resolved], Encoded(*laid([nested(0), nested(20), nested(9999)])))
    assert found.array.to_pylist() == [{"v": 7}, {"v": 7}, None]
    assert found.status.tolist() == [Fault.OK, Fault.OK, Fault.NESTING]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("leaf", [[], [("x", "null")], [("x", fixed(0))], [("x", "int")]])
def test_types_that_use_each_other_take_no_longer_than_their_bytes(leaf: Any) -> None:
    """The last type contains 2^40 of the first one."""
    last = record(*leaf, name="T0")
    for number in range(1, 40):
        last = record(("a", last), ("b", f"T{number - 1}"), name=f"T{number}")
    nothing = leaf != [("x", "int")]
    reader, resolved = program(record(("skipped", last), ("v", "int")), of("int"))
    found = decode(reader.layout, [resolved], Encoded(*laid([n(5), n(5) * 9] * 20)))
    if nothing:
        assert found.array.to_pylist() == [{"v": 5}, None] * 20
    assert (
        found.status.tolist()
        == [0 if nothing else Fault.TRUNCATED, Fault.TRAILING if nothing else Fault.TRUNCATED] * 20
    )


def test_only_what_is_wanted() -> None:
    address = record(("street", "string"), ("city", "string"), name="A")
    schema = parse_schema(
        json.dumps(record(("id", "int"), ("to", ["null", address]), ("n", "int")))
    )
    reader = ReaderSchema.of(schema, ["to.city", "n"])
    row = n(1) + n(1) + text("s") + text("c") + n(9)
    found = decode(reader.layout, [resolve(schema, reader)], Encoded(*laid([row])))
    assert found.array.to_pylist() == [{"to": {"city": "c"}, "n": 9}]
    with pytest.raises(SchemaError, match="record A has no field 'zip'"):
        ReaderSchema.of(schema, ["to.zip"])


def test_claimed_lengths_allocate_nothing() -> None:
    reader, resolved = program(of(array("long")), of(array("long")))
    rows = [n(134 * MILLION)] * 100
    with traced() as memory:
        found = decode(reader.layout, [resolved], Encoded(*laid(rows)))
    assert memory.peak_bytes < MILLION
    assert found.status.all()


@pytest.mark.usefixtures("engine")
def test_bytes_may_be_fewer_than_a_word() -> None:
    reader, resolved = program("double", "double")
    ends = np.array([0, 3, 3])
    found = decode(reader.layout, [resolved], Encoded(b"abc", np.array([0, 0, 3]), ends))
    assert found.status.tolist() == [Fault.TRUNCATED] * 3
    assert not len(decode(reader.layout, [resolved], Encoded(b"", ends[:0], ends[:0])).array)


@pytest.mark.usefixtures("engine")
def test_defaults_of_two_programs_lie_in_no_order() -> None:
    """One of them is an empty text, which may have any position."""
    reader = record(("v", "string", "né"))
    (layout, first), (_, second) = program(reader, reader), program(record(), reader)
    third = program(record(), reader)[1]
    numbers = np.array([1, 2, 0, 2, 1, 0, 1])
    rows = [text("x") if number == 0 else b"" for number in numbers]
    rows[2] = text("")
    found = decode(layout.layout, [first, second, third], Encoded(*laid(rows), program_of=numbers))
    assert [each["v"] for each in found.array.to_pylist()] == [
        "né",
        "né",
        "",
        "né",
        "né",
        "x",
        "né",
    ]
