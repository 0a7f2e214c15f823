"""Arrow to Avro: fastavro and our decoder read the written values."""

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.records import UnencodableRowError
from spark_kafka_source.records.plain_types import as_plain
from spark_kafka_source.values import SchemaText, SchemaType
from spark_kafka_source.values.avro import AvroWriter, ReaderSchema, encode, fit, parse_schema
from spark_kafka_source.values.fitting import UnfitColumnError
from tests.values.avro_oracle import decoded, expected, plain, read, written
from tests.values.avro_schemas import logical, schemas, values
from tests.values.test_avro_cases import array, fixed, of, record
from tests.values.test_avro_oracle import drawn


def encoded(schema: Any, rows: pa.Array, prefix: bytes = b"") -> list[bytes]:
    parsed = parse_schema(json.dumps(schema))
    found = encode(fit(parsed, rows.type), as_plain(rows), prefix)
    found.validate(full=True)
    return list(found.to_pylist())


@drawn
@given(st.data())
def test_what_is_encoded_is_decoded(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    rows = decoded(schema, schema, written(schema, data.draw(st.lists(values(schema), max_size=6))))
    again = encoded(schema, rows.array)
    assert [expected(read(schema, schema, each), schema) for each in again] == plain(rows.array)
    some = rows.array.slice(1, 3)
    assert encoded(schema, some) == again[1:4]


def test_what_lies_under_a_null_is_not_written() -> None:
    """Arrow allows anything there: values, nulls, and lists with items."""
    inner = record(
        ("x", "int"), ("s", "string"), ("l", array("string")),
        ("m", {"type": "map", "values": "double"}),
        ("u", ["null", "int", "string"]), ("d", logical("bytes", "decimal", precision=4, scale=2)),
        ("f", fixed(2)), ("e", {"type": "enum", "name": "E", "symbols": ["A"]}), ("b", "boolean"),
        name="N",
    )  # fmt: skip
    schema = of(["null", inner])
    kind = ReaderSchema.of(parse_schema(json.dumps(schema))).arrow_type.field("v").type
    one = {
        "x": 1, "s": "é", "l": ["a", ""], "m": [("k", 1.5)], "u": {"member0": None, "member1": "u"},
        "d": Decimal("-1.28"), "f": b"ff", "e": "A", "b": True,
    }  # fmt: skip
    other = {**one, "x": None, "s": None, "l": [None], "u": None, "f": b"f", "e": "B", "b": None}
    values = pa.array([one, other, one, other, one], kind)
    shown = [values.field(place) for place in range(kind.num_fields)]
    mask = pa.array([False, True, False, True, True])
    rows = pa.StructArray.from_arrays(shown, fields=list(kind), mask=mask)
    found = encoded(schema, pa.StructArray.from_arrays([rows], ["v"]))
    assert found[1] == found[3] == found[4] == b"\0"
    wanted = decoded(schema, schema, found)
    assert not wanted.status.any()
    assert wanted.array.to_pylist()[::2] == [{"v": one}, {"v": one}, {"v": None}]


@pytest.mark.parametrize(
    ("number", "data"),
    [
        (0, b"\x00"),
        (1, b"\x01"),
        (-1, b"\xff"),
        (127, b"\x7f"),
        (128, b"\x00\x80"),
        (-128, b"\x80"),
        (-129, b"\xff\x7f"),
        ((1 << 63) - 1, ((1 << 63) - 1).to_bytes(8, signed=True)),
        (-(1 << 63), (-(1 << 63)).to_bytes(8, signed=True)),
        (1 << 63, (1 << 63).to_bytes(9, signed=True)),
        (10**37, (10**37).to_bytes(16, signed=True)),
    ],
)
def test_decimals_take_the_fewest_bytes(number: int, data: bytes) -> None:
    kind = logical("bytes", "decimal", precision=38, scale=0)
    rows = pa.array([Decimal(number)], pa.decimal128(38, 0))
    assert encoded(kind, rows) == [bytes([2 * len(data)]) + data]


@pytest.mark.parametrize("size", [1, 3, 16, 20])
def test_decimals_of_a_fixed_take_all_of_it(size: int) -> None:
    kind = fixed(size, logicalType="decimal", precision=2)
    rows = pa.array([Decimal(-5), Decimal(99)], pa.decimal128(2, 0))
    assert encoded(kind, rows) == [each.to_bytes(size, signed=True) for each in (-5, 99)]


def test_a_prefix_is_before_each() -> None:
    assert encoded("int", pa.array([1, 2], pa.int32()), b"\0id") == [b"\0id\x02", b"\0id\x04"]


def test_a_type_that_widens_is_written_and_no_other() -> None:
    assert encoded("long", pa.array([1], pa.int16())) == [b"\x02"]
    with pytest.raises(UnfitColumnError, match="'v' does not fit the schema: it is of the type st"):
        encoded(of("int"), pa.array([{"v": "x"}]))


UUID = "123e4567-e89b-12d3-a456-42661417400f"
REFUSED: list[tuple[Any, list[Any], list[int], str]] = [
    ("int", [1, None, None], [1, 2], "null, where the schema has int"),
    (
        ["null", logical("string", "uuid")],
        [None, UUID, UUID.upper(), UUID[1:], UUID + "\n", UUID.replace("-", ""), "{" + UUID + "}"],
        [3, 4, 6],
        "v: '23e4567-e89b-.* is no UUID, such as '123e",
    ),
    (["int", "string"], [{"member0": 1, "member1": None}, None], [1], "null, where the schema"),
    (["int", "string"], [{"member0": 1, "member1": "x"}], [0], "several members, where"),
    (array("int"), [[1], [], [2, None]], [2], r"^Row 2: v\[\]: null"),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, ["A", "B"], [1], "'B' is none of the"),
    (fixed(2), [b"ab", b"a"], [1], "not of the 2 bytes that F has"),
    (record(("x", "int"), name="N"), [{"x": None}], [0], r"^Row 0: v\.x: null"),
]


@pytest.mark.parametrize(("kind", "found", "rows", "message"), REFUSED)
def test_rows_without_a_place_are_refused(
    kind: Any, found: list[Any], rows: list[int], message: str
) -> None:
    schema = of(kind)
    kind = ReaderSchema.of(parse_schema(json.dumps(schema))).arrow_type
    with pytest.raises(UnencodableRowError, match=message) as caught:
        encoded(schema, pa.array([{"v": each} for each in found], kind))
    assert list(caught.value.rows) == rows
    one = AvroWriter(SchemaText(SchemaType.AVRO, json.dumps(schema))).one
    for row, value in enumerate(found):
        if row in rows:
            with pytest.raises(UnencodableRowError):
                one({"v": value})
        else:
            assert one({"v": value})
