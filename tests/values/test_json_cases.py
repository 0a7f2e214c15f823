"""Edge cases of JSON, each with its result: a value, or a fault with its place.

`S:` gives the result of Spark's `from_json` (4.2, PERMISSIVE, in UTC) where it differs. Spark sets
a wrong field to null and keeps the others. Here the whole row is malformed, and the fault names
the field.
"""

import datetime
import pickle
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_kafka_source.values import Encoded, Fault, SchemaError, SchemaText, SchemaType
from spark_kafka_source.values.ddl import from_ddl
from spark_kafka_source.values.json import JsonReader
from spark_kafka_source.values.json.compiled import Kernels
from spark_kafka_source.values.json.meaning import MAX_DEPTH
from tests.values.avro_oracle import laid, plain
from tests.values.test_json_oracle import AS_WRITTEN, ONE_BY_ONE, decoded, machine_code

WAYS = pytest.mark.parametrize(
    ("few", "load"),
    [
        pytest.param(1, lambda: None, id="pyarrow"),
        pytest.param(1, lambda: AS_WRITTEN, id="tokens"),
        pytest.param(1, machine_code, id="compiled", marks=pytest.mark.slow),
        pytest.param(ONE_BY_ONE, lambda: None, id="one by one"),
    ],
)
Load = Callable[[], Kernels | None]
UTC = datetime.UTC
JAN = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
INF, NAN = float("inf"), float("nan")
DEEP = "[" * MAX_DEPTH + "]" * MAX_DEPTH

FIELDS: list[tuple[str, str, Any]] = [
    # 26
    ("DOUBLE", "NaN", NAN),
    ("DOUBLE", '"NaN"', NAN),
    ("DOUBLE", '"Infinity"', INF),
    ("DOUBLE", '"+INF"', INF),
    ("DOUBLE", '"-INF"', -INF),
    ("DOUBLE", '"INF"', Fault.KIND),
    ("DOUBLE", "-Infinity", -INF),
    ("DOUBLE", "Inf", INF),  # S: null
    ("DOUBLE", "-NaN", NAN),  # S: null
    ("DOUBLE", "+Infinity", Fault.SYNTAX),  # S: inf
    ("DOUBLE", "1e400", INF),
    ("DOUBLE", '"1.5"', Fault.KIND),
    ("FLOAT", "1e39", INF),
    # 27; S: null for each malformed one
    ("BIGINT", "9223372036854775807", (1 << 63) - 1),
    ("BIGINT", "9223372036854775808", Fault.INTEGER),
    ("BIGINT", "-9223372036854775808", -(1 << 63)),
    ("BIGINT", "9999999999999999999", Fault.INTEGER),
    ("BIGINT", "-9223372036854775809", Fault.INTEGER),
    ("BIGINT", "1.0", Fault.INTEGER),
    ("BIGINT", "1e3", Fault.INTEGER),
    ("BIGINT", "NaN", Fault.INTEGER),
    ("BIGINT", "9" * 5000, Fault.INTEGER),
    ("BIGINT", '"1"', Fault.KIND),
    ("BIGINT", "true", Fault.KIND),
    ("INT", "2147483648", Fault.INTEGER),
    ("SMALLINT", "-32768", -32768),
    ("TINYINT", "128", Fault.INTEGER),
    ("BIGINT", "-0", 0),
    # 28
    ("STRING", "1.50", "1.50"),  # S: 1.5
    ("STRING", "1e3", "1e3"),  # S: 1000.0
    ("STRING", "true", "true"),
    ("STRING", '{"b" : [1, 2]}', '{"b" : [1, 2]}'),  # S: {"b":[1,2]}
    ("STRING", '[ "\\ud800" ]', '[ "\\ud800" ]'),
    ("ARRAY<STRING>", '[{"a" :1} , "x", null, 2 ]', ['{"a" :1}', "x", None, "2"]),
    ("MAP<STRING, STRING>", '{"k" : [ ], "l":{}}', {"k": "[ ]", "l": "{}"}),
    ("STRUCT<x: STRING, y: INT>", '{"x":{ "x":1},"z":[],"y":2}', {"x": '{ "x":1}', "y": 2}),
    ("STRUCT<x: STRING, y: INT>", '{"x":{},"y":"2"}', Fault.KIND),
    # 29
    ("STRING", '"\\ud800"', Fault.TEXT),  # S: ?
    ("STRING", '"\\ud83d\\ude00"', "😀"),
    ("STRING", '"\\ud83d\\u0041"', Fault.TEXT),
    ("STRING", '"\\ud83d\\ud83d"', Fault.TEXT),
    ("STRING", '"\\ud83dx"', Fault.TEXT),
    ("STRING", '"\\b\\f\\n\\r\\t\\/\\\\\\u00E9\\u20ac"', "\b\f\n\r\t/\\é€"),
    ("STRING", '"\\u0000"', "\0"),
    ("STRING", '"\t"', Fault.SYNTAX),
    ("STRING", '"\\x"', Fault.SYNTAX),
    ("MAP<STRING, INT>", '{"\\ud800":1}', Fault.TEXT),
    # 31
    ("STRUCT<x: INT>", "null", None),
    ("STRUCT<x: INT>", "{}", {"x": None}),
    ("ARRAY<INT>", '[1,"x",3]', Fault.KIND),  # S: null
    ("ARRAY<INT>", "[1,null]", [1, None]),
    ("ARRAY<INT>", "{}", Fault.KIND),
    ("STRUCT<x: INT>", "[]", Fault.KIND),
    ("STRUCT<>", '{"x":1}', {}),
    # 25, of a map
    ("MAP<STRING, INT>", '{"k":1,"l":3,"k":2}', {"k": 2, "l": 3}),
    # 32
    ("DECIMAL(10, 2)", "12.345", Decimal("12.35")),
    ("DECIMAL(10, 2)", "-12.345", Decimal("-12.35")),
    ("DECIMAL(10, 2)", "12.3449999999999999999", Decimal("12.34")),
    ("DECIMAL(10, 2)", '"12.345"', Decimal("12.35")),
    ("DECIMAL(10, 2)", "1e2", Decimal(100)),
    ("DECIMAL(10, 2)", "99999999.99", Decimal("99999999.99")),
    ("DECIMAL(10, 2)", "99999999.995", Fault.DECIMAL),
    ("DECIMAL(10, 2)", "123456789", Fault.DECIMAL),
    ("DECIMAL(10, 2)", "1e99999999999999999999", Fault.DECIMAL),
    ("DECIMAL(10, 2)", "1e-99999999999999999999", Decimal(0)),
    ("DECIMAL(10, 2)", "0e99999999999999999999", Decimal(0)),
    ("DECIMAL(38, 20)", "12345678901234567890123456789012345678", Fault.DECIMAL),
    ("DECIMAL(38, 20)", f"{'9' * 18}.{'9' * 20}", Decimal(f"{'9' * 18}.{'9' * 20}")),
    ("DECIMAL(38, 20)", f"-{'9' * 18}.{'9' * 20}", Decimal(f"-{'9' * 18}.{'9' * 20}")),
    ("DECIMAL(38, 20)", f"{'9' * 18}.{'9' * 20}9", Fault.DECIMAL),
    (
        "DECIMAL(38, 0)",
        "12345678901234567890123456789012345678",
        12345678901234567890123456789012345678,
    ),
    ("DECIMAL(10, 2)", "NaN", Fault.DECIMAL),
    ("DECIMAL(10, 2)", '""', Fault.DECIMAL),
    ("DECIMAL(10, 2)", "true", Fault.KIND),
    ("TIMESTAMP", '"2026-01-02T03:04:05Z"', JAN),
    ("TIMESTAMP", '"2026-01-02T05:04:05+02:00"', JAN),
    ("TIMESTAMP", '"2026-01-02 03:04:05"', JAN),
    ("TIMESTAMP", '"2026-01-02T03:04:05.123456789Z"', JAN.replace(microsecond=123456)),
    ("TIMESTAMP", str(int(JAN.timestamp())), JAN),
    ("TIMESTAMP", "1.5", Fault.INTEGER),
    ("TIMESTAMP", "9223372036854", datetime.datetime.max),
    ("TIMESTAMP", "9223372036855", Fault.TIMESTAMP),
    ("TIMESTAMP", '"2026-1-2"', Fault.TIME),  # S: 2026-01-02 00:00
    ("TIMESTAMP", '"2026-02-29T00:00:00Z"', Fault.TIME),
    ("TIMESTAMP", "{}", Fault.KIND),
    ("TIMESTAMP_NTZ", '"2026-01-02T03:04:05"', JAN.replace(tzinfo=None)),
    ("TIMESTAMP_NTZ", '"2026-01-02T03:04:05Z"', Fault.TIME),
    ("TIMESTAMP_NTZ", "5", Fault.KIND),
    ("DATE", '"2026-01-02"', JAN.date()),
    ("DATE", '"2026-01-02T03:04:05Z"', Fault.TIME),  # S: 2026-01-02
    ("DATE", "5", Fault.KIND),
    ("BINARY", '"YWJj"', b"abc"),
    ("BINARY", '"YQ"', Fault.BASE64),
    ("BINARY", "1", Fault.KIND),
    ("BOOLEAN", "false", False),
    ("BOOLEAN", '"true"', Fault.KIND),
    ("BOOLEAN", "1", Fault.KIND),
    # 33
    ("DOUBLE", "0.30000000000000004", 0.30000000000000004),
    ("DOUBLE", "2.2250738585072011e-308", 2.225073858507201e-308),
    ("DOUBLE", "4.9e-324", 5e-324),
    ("DOUBLE", "-0.0", -0.0),
    ("DOUBLE", "-0", -0.0),  # S: 0.0
]


@WAYS
@pytest.mark.parametrize(("ddl", "text", "expected"), FIELDS, ids=lambda each: str(each)[:40])
def test_a_field(few: int, load: Load, ddl: str, text: str, expected: Any) -> None:
    reader = JsonReader(pa.struct([("a", from_ddl(ddl))]))
    found = decoded(reader, [b"{}", f'{{"a":{text}}}'.encode(), b"{}"], few, load())
    assert found.status[[0, 2]].tolist() == [0, 0]
    assert plain(found.array)[0] == {"a": None}
    if isinstance(expected, Fault):
        assert Fault(found.status[1]) is expected
        assert plain(found.array)[1] is None
    else:
        assert not found.status[1], found.reason(1)
        if expected is not datetime.datetime.max:
            wanted = pa.array([{"a": expected}], reader.arrow_type)
            assert plain(found.array)[1:2] == plain(wanted)


ROWS: list[tuple[str, bytes, Any]] = [
    ("25", b'{"a":1,"a":2}', {"a": 2, "b": None}),
    ("25, the first unfit", b'{"a":"x","a":2}', {"a": 2, "b": None}),
    ("27, one field unfit", b'{"a":1,"b":2147483648}', Fault.INTEGER),  # S: {a: 1, b: null}
    ("29, a raw ff", b'{"z":"\xff"}', Fault.TEXT),  # S: U+FFFD
    ("30, null", b"null", None),  # S: {null, null}
    ("30, null with spaces", b" \n null\t", None),
    ("30, an array", b'[{"a":1}]', Fault.KIND),  # S: {null, null}
    ("30, a number", b"1", Fault.KIND),  # S: {null, null}
    ("30, empty", b"", Fault.SYNTAX),  # S: null
    ("30, nothing but spaces", b"  \n", Fault.SYNTAX),
    ("30, a byte order mark", b'\xef\xbb\xbf{"a":1}', Fault.SYNTAX),  # S: {null, null}
    ("30, single quotes", b"{'a':1}", Fault.SYNTAX),  # S: {1, null}
    ("30, a leading zero", b'{"a":007}', Fault.SYNTAX),  # S: {null, null}
    ("30, text behind", b'{"a":1} xyz', Fault.SYNTAX),  # S: {1, null}
    ("30, two objects", b'{"a":1}{"a":2}', Fault.SYNTAX),  # S: {1, null}
    ("30, a field behind", b'{"a":1},"w":2', Fault.SYNTAX),  # S: {1, null}
    ("30, a field and an object behind", b'{"a":1},"w":{}', Fault.SYNTAX),
    ("30, the begin of an object", b'{"a":1', Fault.SYNTAX),
    ("30, the end of an object", b',"b":2}', Fault.SYNTAX),
    ("31, over lines", b'\r\n{\n  "a": 1,\n\t"b": 2\n}\n', {"a": 1, "b": 2}),
    ("a comma too many", b'{"a":1,}', Fault.SYNTAX),
    ("an escaped name", b'{"\\u0061":1}', {"a": 1, "b": None}),
    ("another case", b'{"A":1}', {"a": None, "b": None}),
    ("not read", b'{"z":[NaN,-Inf,"\\udc00",{"":1,"":2},1e9]}', {"a": None, "b": None}),
    ("not read, and deep", b'{"z":' + DEEP[1:-1].encode() + b"}", {"a": None, "b": None}),
    ("too deep", b'{"z":' + DEEP.encode() + b"}", Fault.NESTING),  # S: beyond 1000
    ("deep only in a text", b'{"z":"' + DEEP.encode() * 2 + b'","a":1}', {"a": 1, "b": None}),
    ("a million levels", b'{"z":' + b"[" * 1_000_000, Fault.NESTING),
    ("many escapes", b'{"z":"' + b'\\"' * 50_000 + b"Inf", Fault.SYNTAX),
]  # fmt: skip


@WAYS
@pytest.mark.parametrize(
    ("text", "expected"), [each[1:] for each in ROWS], ids=[r[0] for r in ROWS]
)
def test_a_row(few: int, load: Load, text: bytes, expected: Any) -> None:
    reader = JsonReader(from_ddl("a INT, b INT"))
    before, behind = b'{"a":7}', b'{"a":8}'
    found = decoded(reader, [before, text, behind], few, load())
    rows = found.array.to_pylist()
    assert [rows[0], rows[2]] == [{"a": 7, "b": None}, {"a": 8, "b": None}]
    if isinstance(expected, Fault):
        assert Fault(found.status[1]) is expected
        assert rows[1] is None
    else:
        assert not found.status[1], found.reason(1)
        assert rows[1] == expected


MARKED = {"utf-8-sig": "UTF-8", "utf-16": "UTF-16", "utf-32": "UTF-32"}
KINDS = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(4, 2)", "BINARY",
    "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "ARRAY<INT>", "MAP<STRING, INT>", "STRUCT<x: INT>",
)  # fmt: skip


def test_a_bad_row_says_where() -> None:
    reader = JsonReader(from_ddl("a ARRAY<STRUCT<b: MAP<STRING, INT>>>, c INT, d DECIMAL(5, 2)"))
    texts = [
        b'{"a":[{},{"b":{"k":1.5}}]}', b'{"c":"x"}', b'{"c":"' + b"x" * 101 + b'"}', b"{", b"[]",
        b'{"a":{}}', b'{"c":"\\ud800"}', b'{"d":"x"}', *('{"c":1}'.encode(each) for each in MARKED),
    ]  # fmt: skip
    found = decoded(reader, texts, ONE_BY_ONE)
    kind, mark = (
        "a JSON value of another kind than the column",
        "it begins with the byte order mark",
    )
    assert [found.reason(row) for row in range(len(texts))] == [
        "a[].b{}: not a whole number, or beyond the range of the column: 1.5 is no INT",
        f'c: {kind}: "x" is no INT',
        f'c: {kind}: "{"x" * 100}"... is no INT',
        "not JSON, or more than one JSON value",
        f"{kind}: an array is no STRUCT",
        f"a: {kind}: an object is no ARRAY",
        f'c: {kind}: "\\ud800" is no INT',
        'd: no decimal, or one beyond its precision: "x" is no DECIMAL(5, 2)',
        *(f"{mark} (BOM) of {each}. JSON is UTF-8 without one" for each in MARKED.values()),
    ]


@pytest.mark.parametrize("name", KINDS)
def test_a_bad_value_is_shown_with_its_type(name: str) -> None:
    """A type has a name, and the value stands beside it, whatever the fault."""
    text = b'{"a":{}}' if "MAP" not in name and "STRUCT" not in name else b'{"a":"x"}'
    reason = decoded(JsonReader(from_ddl(f"a {name}")), [text], ONE_BY_ONE).reason(0)
    shown = "an object" if b"{}" in text else '"x"'
    assert reason.endswith(f": {shown} is no {name.partition('<')[0]}")


def test_the_top_may_be_any_type() -> None:
    texts = [b"[1]", b"null", b'{"k":2}', b"5"]
    lists = decoded(JsonReader(from_ddl("ARRAY<INT>")), texts, 1)
    assert lists.array.to_pylist() == [[1], None, None, None]
    assert lists.status.astype(bool).tolist() == [False, False, True, True]
    maps = decoded(JsonReader(from_ddl("MAP<STRING, INT>")), texts, 1)
    assert maps.array.to_pylist() == [None, None, [("k", 2)], None]
    assert decoded(JsonReader(pa.string()), texts, 1).array.to_pylist() == [
        "[1]", None, '{"k":2}', "5",
    ]  # fmt: skip


def test_nulls_and_rows_without_a_program() -> None:
    reader = JsonReader(from_ddl("a INT"))
    texts = [b'{"a":1}', b"not looked at", b'{"a":2}', b"{"] * 20
    null = np.array([False, True, False, False] * 20)
    program_of = np.array([0, -1, -1, 0] * 20)
    found = reader.decode([None], Encoded(*laid(texts), null=null, program_of=program_of))
    assert found.array.to_pylist() == [{"a": 1}, None, None, None] * 20
    assert found.status.tolist() == [0, 0, Fault.NO_PROGRAM, Fault.SYNTAX] * 20
    assert found.reason(2) == Fault.NO_PROGRAM.reason
    reader.program(SchemaText(SchemaType.JSON, "is not looked at"))


def test_no_rows() -> None:
    reader = JsonReader(from_ddl("a INT"))
    found = reader.decode([], Encoded(b"", np.zeros(0, np.int64), np.zeros(0, np.int64)))
    assert found.array.to_pylist() == []
    assert found.array.type == reader.arrow_type


def test_a_reader_is_pickled() -> None:
    reader = JsonReader(from_ddl("a INT, b STRUCT<c: INT, d: INT>"), ["b.d"])
    copy = pickle.loads(pickle.dumps(reader))
    assert copy.arrow_type == reader.arrow_type == from_ddl("b STRUCT<d: INT>")
    assert decoded(copy, [b'{"a":"x","b":{"d":1}}'], 1).array.to_pylist() == [{"b": {"d": 1}}]


def test_fields_are_found_in_lists_and_maps() -> None:
    kind = from_ddl("a ARRAY<STRUCT<b: INT, c: INT>>, m MAP<STRING, STRUCT<b: INT, c: INT>>, z INT")
    wanted = from_ddl("a ARRAY<STRUCT<c: INT>>, m MAP<STRING, STRUCT<b: INT, c: INT>>")
    assert JsonReader(kind, ["a.c", "m", "m.b"]).arrow_type == wanted
    with pytest.raises(SchemaError, match=r"at a\[\]: there is no field 'd'. It has b, c"):
        JsonReader(kind, ["a.d"])
    with pytest.raises(SchemaError, match="at z: int32 has no field 'x'"):
        JsonReader(kind, ["z.x"])


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        (pa.struct([("a", pa.list_(pa.uint8()))]), r"at a\[\]: JSON cannot be read into uint8"),
        (pa.struct([("a", pa.map_(pa.int32(), pa.int32()))]), "at a: JSON cannot be read into map"),
        (pa.timestamp("ms"), "at the top: JSON cannot be read into timestamp"),
        (pa.struct([("a", pa.int32()), ("a", pa.int32())]), "a name twice"),
    ],
)
def test_types_that_json_is_not_read_into(kind: pa.DataType, where: str) -> None:
    with pytest.raises(SchemaError, match=where):
        JsonReader(kind)


@pytest.mark.parametrize("kernels", [None, AS_WRITTEN], ids=["pyarrow", "tokens"])
def test_many_rows_with_a_few_bad_ones_of_every_sort(kernels: Kernels | None) -> None:
    """There are enough rows that the decoder reads valid rows together, around malformed ones."""
    reader = JsonReader(from_ddl("a INT, t TIMESTAMP, d DECIMAL(10, 2)"))
    texts = [b'{"a":%d,"t":"2026-01-02","d":"1.25"}' % n for n in range(1500)]
    bad = {
        7: b'{"a":1.0}', 500: b'{"a":1,}', 501: b"", 777: b'{"t":"2026-13-01"}', 1100: b'{"d":"x"}',
        1200: b'{"a":99999999999}', 1498: b'{"a":1}{"a":2}', 1499: b'{"z":"\xff"}',
    }  # fmt: skip
    for row, text in bad.items():
        texts[row] = text
    texts[900] = b'{"a":900,"t":1767312000,"d":1.25}'
    found = decoded(reader, texts, 24, kernels)
    assert np.flatnonzero(found.status).tolist() == sorted(bad)
    good = [row for row in range(1500) if row not in bad]
    midnight = datetime.datetime(2026, 1, 2, tzinfo=UTC)
    assert found.array.take(pa.array(good)).to_pylist() == [
        {"a": row, "t": midnight, "d": Decimal("1.25")} for row in good
    ]
