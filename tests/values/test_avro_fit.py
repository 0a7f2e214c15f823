"""Pairs of a column's type and an Avro schema: refused by name, or written exactly.

`avro_fit_oracle` says what fits, and what a value is in Avro. fastavro writes it.
"""

import datetime
import json
import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.records import UnencodableRowError
from spark_kafka_source.typed import TypedWriteConfig, plan_writes
from spark_kafka_source.typed.encoding import TypedEncoding
from spark_kafka_source.values import SchemaText, SchemaType, encode_values
from spark_kafka_source.values.avro import AvroWriter
from spark_kafka_source.values.fitting import UnfitColumnError
from tests.values.avro_fit_oracle import NoValueError, Oracle, by_fastavro, read_back, unnamed
from tests.values.avro_pairs import column, mutated, record_of, schema_of, value_of
from tests.values.avro_schemas import logical
from tests.values.test_avro_cases import array, enum, fixed, of, record


def writer(schema: Any, ignored: Sequence[str] = ()) -> AvroWriter:
    return AvroWriter(SchemaText(SchemaType.AVRO, json.dumps(schema)), tuple(ignored))


def reading_type(schema: Any) -> pa.DataType:
    """Return the type of the columns that the source reads. Decimals there have 38 digits."""
    return writer(json.loads(json.dumps(schema).replace(": 40", ": 38"))).arrow_type


# -- pairs -----------------------------------------------------------------------------------------

_ROWS = 4


def judged(random: Random) -> str:
    """Draw a pair and rows, and check them. Return what became of the pair."""
    schema = schema_of(random) if random.randint(0, 3) else record_of(random)
    kind = reading_type(schema)
    for _ in range(random.choice([0, 1, 1, 2])):
        kind = mutated(random, kind)
    ignored = random.choice([(), (), ("extra", "other", "a.extra")])
    oracle, by = Oracle(schema, ignored), writer(schema, ignored)
    misfits = list(oracle.misfits(schema, kind, ""))
    try:
        by.fit(kind)
    except UnfitColumnError as error:
        assert error.column in misfits, error
        return "refused"
    assert not misfits
    # The first row is sliced off: columns do not begin where their buffers do.
    rows = [value_of(random, kind) for _ in range(_ROWS + 1)]
    found = column(kind, rows)
    found.validate(full=True)
    check_rows(oracle, by, schema, found[1:], rows[1:])
    return "fits"


def check_rows(
    oracle: Oracle, by: AvroWriter, schema: Any, given: pa.Array, rows: Sequence[Any]
) -> None:
    """Check that each row is what fastavro writes, or is refused for the oracle's reason."""
    right: dict[int, bytes] = {}
    reasons: dict[int, str] = {}
    for place, row in enumerate(rows):
        try:
            value = oracle.wanted(schema, given.type, row)
        except NoValueError as error:
            reasons[place] = str(error)
        else:
            right[place] = by_fastavro(schema, value)
            assert repr(read_back(schema, right[place])) == repr(unnamed(value))
        check_one(by, given[place], right.get(place))
    if reasons:
        with pytest.raises(UnencodableRowError) as failed:
            by.encode(given, b"")
        assert set(failed.value.rows) <= reasons.keys()
        assert any(each in failed.value.reason for each in _REASONS)
    # Arrow cannot take rows of views.
    good = [given[place : place + 1] for place in right]
    encoded = pa.chunked_array([by.encode(each, b"") for each in good or [given[:0]]])
    if not reasons:
        assert by.encode(given, b"") == encoded.combine_chunks()
    encoded.validate(full=True)
    assert encoded.to_pylist() == list(right.values())


_REASONS = (
    "null",
    "several members",
    "none of the symbols",
    "not of the",
    "is not a whole",
    "no UUID",
)


def check_one(by: AvroWriter, row: pa.Scalar, right: bytes | None) -> None:
    """Check that a Python value is the same bytes as its column, or refused, too."""
    try:
        value = row.as_py()
    except (ValueError, OverflowError):
        return  # Python has no such time.
    if right is None:
        if not _is_cut(row.type):
            with pytest.raises(UnencodableRowError):
                by.one(value)
    else:
        assert by.one(value) == right


def _is_cut(kind: pa.DataType) -> bool:
    """Whether Python's value may be less than the column's.

    A date64 may lie within a day. Beside pandas, pyarrow cuts a time of nanoseconds.
    """
    return any(each in str(kind) for each in ("date64", "time64[ns]"))


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.long)])
def test_a_pair_is_refused_by_name_or_written_as_fastavro_does(count: int) -> None:
    outcomes: Counter[str] = Counter()

    @settings(deadline=None, max_examples=count, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, 1 << 32))
    def judge(seed: int) -> None:
        outcomes[judged(Random(seed))] += 1

    judge()
    assert min(outcomes["refused"], outcomes["fits"]) > 0.2 * outcomes.total(), outcomes


# -- examples --------------------------------------------------------------------------------------

_MILLIS = logical("long", "timestamp-millis")
_MOMENT = 1_704_067_200_000
_NOON = 43_200_000_000
_OPTIONAL = ["null", "int"]

WRITTEN: list[tuple[str, pa.DataType, Any, Any, Any]] = [
    ("a long for time-micros", pa.int64(), logical("long", "time-micros"), _NOON, _NOON),
    ("a TIME for time-micros", pa.time64("ns"), logical("long", "time-micros"),
     datetime.time(12), _NOON),
    ("a long for a moment", pa.int64(), _MILLIS, _MOMENT, _MOMENT),
    ("a long for a local time", pa.int64(), logical("long", "local-timestamp-millis"), _MOMENT,
     _MOMENT),
    ("longs for moments in an array", pa.list_(pa.int64()), array(_MILLIS), [_MOMENT], [_MOMENT]),
    ("longs for moments in a map", pa.map_(pa.string(), pa.int64()),
     {"type": "map", "values": _MILLIS}, [("k", _MOMENT)], {"k": _MOMENT}),
    ("a long for a moment in a union", pa.struct([("member1", pa.int64())]),
     ["string", "null", _MILLIS], {"member1": _MOMENT}, _MOMENT),
    ("a moment", pa.timestamp("us", "UTC"), _MILLIS,
     datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), _MOMENT),
    ("an int for a long", pa.int32(), "long", 12, 12),
    ("a float for a double", pa.float32(), "double", 1.5, 1.5),
    ("a field that is left out, and may be", pa.struct([("x", pa.int32())]),
     record(("x", "int"), ("y", _OPTIONAL), name="N"), {"x": 1}, {"x": 1, "y": None}),
    ("a field of the null type", pa.struct([("x", pa.int32()), ("y", pa.null())]),
     record(("x", "int"), ("y", _OPTIONAL), name="N"), {"x": 1, "y": None}, {"x": 1, "y": None}),
]  # fmt: skip
UNFIT: list[tuple[str, pa.DataType, Any, Any, str]] = [
    ("a double for a float", pa.float64(), "float", 1e300, "v"),
    ("an int for a boolean", pa.int32(), "boolean", 5, "v"),
    ("a text for a long", pa.string(), "long", "12", "v"),
    ("an int for a text", pa.int32(), "string", 12, "v"),
    ("a moment for a date", pa.timestamp("us", "UTC"), logical("int", "date"),
     datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), "v"),
    ("texts for ints", pa.list_(pa.string()), array("int"), ["1"], "v[]"),
    ("a text for bytes", pa.string(), "bytes", "x", "v"),
    ("bytes for a text", pa.binary(), "string", b"x", "v"),
    ("a local time for a moment", pa.timestamp("us"), _MILLIS, datetime.datetime(2024, 1, 1), "v"),
    ("a moment for a local time", pa.timestamp("us", "UTC"),
     logical("long", "local-timestamp-micros"),
     datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), "v"),
    ("a field that the schema lacks", pa.struct([("x", pa.int32()), ("z", pa.int32())]),
     record(("x", "int"), name="N"), {"x": 1, "z": 2}, "v.z"),
    ("a struct of which no field fits", pa.struct([("z", pa.int32())]),
     record(("y", _OPTIONAL), name="N"), {"z": 2}, "v.z"),
    ("a name in another case", pa.struct([("Amount", pa.int32())]),
     record(("amount", _OPTIONAL), name="N"), {"Amount": 2}, "v.Amount"),
    ("a required field that is not there", pa.struct([("x", pa.int32())]),
     record(("x", "int"), ("y", "int"), name="N"), {"x": 1}, "v.y"),
    ("a number for a union of several types", pa.int64(), ["string", _MILLIS], 5, "v"),
]  # fmt: skip


def planned(schema: Any, kind: pa.DataType | None, **options: str) -> Any:
    options = {"value.format": "avro", "value.schema": json.dumps(schema), **options}
    config = TypedWriteConfig.from_settings(Settings(options))
    return plan_writes(config, {"value": kind}, "events")["value"], TypedEncoding(config)


def ids(rows: Sequence[tuple[Any, ...]]) -> list[str]:
    return [row[0] for row in rows]


@pytest.mark.parametrize(("_", "kind", "schema", "value", "wanted"), WRITTEN, ids=ids(WRITTEN))
def test_what_fits_is_written_exactly_in_each_way(
    _: str, kind: pa.DataType, schema: Any, value: Any, wanted: Any
) -> None:
    given = pa.array([{"v": value}], pa.struct([("v", kind)]))
    write, encoding = planned(of(schema), given.type)
    (data,) = write.encode(given).to_pylist()
    assert read_back(of(schema), data) == {"v": wanted}
    assert write.one({"v": value}) == data
    assert encoding.one("value", "events", {"v": value}) == data
    table = pa.table({"value": given, "note": ["n"]})
    assert encoding.table("events", table).to_pylist() == [{"value": data, "note": "n"}]


@pytest.mark.parametrize(("_", "kind", "schema", "value", "path"), UNFIT, ids=ids(UNFIT))
def test_what_does_not_fit_is_refused_before_a_row_in_each_way(
    _: str, kind: pa.DataType, schema: Any, value: Any, path: str
) -> None:
    given = pa.array([{"v": value}], pa.struct([("v", kind)]))
    with pytest.raises(UnfitColumnError, match=re.escape(f"'{path}'")):
        writer(of(schema)).fit(given.type)
    with pytest.raises(UnfitColumnError, match=re.escape(f"'value.{path}'")):
        planned(of(schema), given.type)
    write, encoding = planned(of(schema), None)
    for rows in (given, given[:0]):
        with pytest.raises(UnfitColumnError, match=re.escape(f"'value.{path}'")):
            encoding.table("events", pa.table({"value": rows}))
    with pytest.raises(UnencodableRowError, match=f"^Row 0: {re.escape(path)}"):
        write.one({"v": value})
    with pytest.raises(UnencodableRowError, match=f"^Row 0: {re.escape(path)}"):
        encoding.one("value", "events", {"v": value})


def test_a_field_is_left_out_only_by_its_path() -> None:
    schema = record(("a", record(("x", "int"), name="N")), ("u", ["null", "int", "string"]))
    kind = pa.struct(
        [
            ("a", pa.struct([("x", pa.int32()), ("z", pa.int32())])),
            ("u", pa.struct([("member0", pa.int32()), ("z", pa.int32())])),
        ]
    )
    value = {"a": {"x": 1, "z": 2}, "u": {"member0": 3, "z": 4}}
    write, encoding = planned(schema, kind, **{"value.ignore.fields": "a.z, u.z"})
    assert write.encode(pa.array([value], kind)).to_pylist() == [b"\x02\x02\x06"]
    assert encoding.one("value", "events", value) == b"\x02\x02\x06"
    with pytest.raises(UnfitColumnError, match=r"'value\.u\.z'.*the schema has no such field"):
        planned(schema, kind, **{"value.ignore.fields": "a.z, z"})


def test_a_type_that_holds_itself_fits_as_deep_as_the_column_is() -> None:
    schema = record(("x", "int"), ("next", ["null", "R"]))
    kind = pa.struct([("x", pa.int32()), ("next", pa.struct([("x", pa.int16())]))])
    (data,) = writer(schema).encode(pa.array([{"x": 1, "next": {"x": 2}}], kind), b"").to_pylist()
    assert data == by_fastavro(schema, {"x": 1, "next": ("R", {"x": 2, "next": None})})
    wrong = pa.struct([*kind, ("next", kind)])
    with pytest.raises(UnfitColumnError, match=r"'next'.*it is given twice"):
        writer(schema).fit(wrong)
    deep = pa.struct([("x", pa.int32()), ("next", pa.struct([("x", pa.int32()), ("y", kind)]))])
    with pytest.raises(UnfitColumnError, match=r"'next\.y'"):
        writer(schema).fit(deep)


@pytest.mark.parametrize(
    ("kind", "number", "schema", "shown"),
    [
        (pa.time64("ns"), 1, logical("long", "time-micros"), "00:00:00.000000001"),
        (pa.timestamp("ns", "UTC"), 1_500, _MILLIS, "1970-01-01 00:00:00.000001500Z"),
        (pa.timestamp("s"), 1 << 62, logical("long", "local-timestamp-micros"), ""),
        (pa.date64(), 1, logical("int", "date"), "1970-01-01"),
    ],
)
def test_a_time_that_would_be_cut_is_refused_in_words(
    kind: pa.DataType, number: int, schema: Any, shown: str
) -> None:
    given = pa.array([0, number], pa.int64()).view(kind)
    with pytest.raises(UnencodableRowError, match=f"^Row 1: {shown}.* is not a whole"):
        writer(schema).encode(given, b"")


def test_a_decimal_beyond_38_digits_is_refused_as_a_value_and_as_a_column() -> None:
    wide = logical("bytes", "decimal", precision=40, scale=2)
    schema = record(("x", "int"), ("d", ["null", wide]), ("f", ["null", fixed(17, **{
        each: wide[each] for each in ("logicalType", "precision", "scale")})]))  # fmt: skip
    by = writer(schema)
    given = pa.array([{"x": 1}])
    assert by.one({"x": 1}) == b"\x02\0\0"
    assert by.encode(given.cast(pa.struct([("x", pa.int32())])), b"")[0].as_py() == b"\x02\0\0"
    for name in "df":
        with pytest.raises(UnencodableRowError, match=f"{name}: .* more digits than 38"):
            by.one({"x": 1, name: Decimal(1)})
        with pytest.raises(UnfitColumnError, match=f"'{name}'"):
            by.fit(pa.struct([("x", pa.int32()), (name, pa.decimal128(10, 2))]))


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (pa.string_view(), "string"),
        (pa.list_view(pa.int32()), array("int")),
        (pa.run_end_encoded(pa.int32(), pa.string()), enum("X")),
        (pa.map_(pa.large_string(), pa.struct([("x", pa.null())])),
         {"type": "map", "values": record(("x", "null"), name="N")}),
    ],
    ids=str,
)  # fmt: skip
def test_tombstones_among_columns_of_other_forms(kind: pa.DataType, schema: Any) -> None:
    values = {"string_view": "X", "run_end_encoded": "X", "list_view": [1], "map": [("k", [None])]}
    value = next(each for name, each in values.items() if str(kind).startswith(name))
    given = column(kind, [value, None, value, value])[1:]
    one = encode_values(writer(schema), column(kind, [value]))[0].as_py()
    assert encode_values(writer(schema), given).to_pylist() == [None, one, one]
