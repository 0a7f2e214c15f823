"""Pairs of a column's type and an Avro schema: refused by name, or written exactly.

`misfits` and `wanted` say with few words what fits, and what a value is in Avro. fastavro writes
it. Nothing here is taken from the package.
"""

import datetime
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_kafka_source.records import UnencodableRowError
from spark_kafka_source.settings import Settings
from spark_kafka_source.typed import TypedWriteConfig, plan_writes
from spark_kafka_source.typed.encoding import TypedEncoding
from spark_kafka_source.values import SchemaText, SchemaType, encode_values
from spark_kafka_source.values.avro import AvroWriter
from spark_kafka_source.values.fitting import UnfitColumnError
from tests.values.avro_oracle import bare
from tests.values.avro_pairs import column, mutated, names_of, record_of, schema_of, value_of
from tests.values.avro_schemas import logical
from tests.values.test_avro_cases import array, enum, fixed, of, record

is_a = pa.types


def writer(schema: Any, ignored: Sequence[str] = ()) -> AvroWriter:
    return AvroWriter(SchemaText(SchemaType.AVRO, json.dumps(schema)), tuple(ignored))


def reading_type(schema: Any) -> pa.DataType:
    """Return the type of the columns that the source reads. Decimals there have 38 digits."""
    return writer(json.loads(json.dumps(schema).replace(": 40", ": 38"))).arrow_type


# -- what fits -------------------------------------------------------------------------------------

_SIGNED = ("int8", "int16", "int32", "int64")
_INTEGERS = {
    "int": {"int8", "int16", "int32", "uint8", "uint16"},
    "long": {*_SIGNED, "uint8", "uint16", "uint32"},
}
_PLAIN: dict[str, set[str]] = {
    **_INTEGERS,
    "boolean": {"bool"},
    "float": {"halffloat", "float", "int8", "int16", "uint8", "uint16"},
    "double": {
        "halffloat", "float", "double", "int8", "int16", "int32", "uint8", "uint16", "uint32"
    },
    "bytes": {"binary"},
    "fixed": {"binary"},
    "string": {"string"},
    "enum": {"string"},
    "null": set(),
}  # fmt: skip


def is_moment(kind: pa.DataType) -> bool:
    return is_a.is_timestamp(kind) and kind.tz is not None


def is_local(kind: pa.DataType) -> bool:
    return is_a.is_timestamp(kind) and kind.tz is None


_TIMES: dict[str, tuple[str, Callable[[pa.DataType], bool]]] = {
    "date": ("int", is_a.is_date),
    "time-millis": ("int", is_a.is_time),
    "time-micros": ("long", is_a.is_time),
    **{f"timestamp-{unit}": ("long", is_moment) for unit in ("millis", "micros", "nanos")},
    **{f"local-timestamp-{unit}": ("long", is_local) for unit in ("millis", "micros", "nanos")},
}


def stored(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values, however they are stored."""
    if is_a.is_dictionary(kind) or is_a.is_run_end_encoded(kind):
        return kind.value_type
    if is_a.is_large_string(kind) or is_a.is_string_view(kind):
        return pa.string()
    is_bytes = is_a.is_large_binary(kind) or is_a.is_fixed_size_binary(kind)
    return pa.binary() if is_bytes or is_a.is_binary_view(kind) else kind


def is_list(kind: pa.DataType) -> bool:
    return hasattr(kind, "value_field") and not is_a.is_map(kind)


def named(schema: Any, known: Mapping[str, Any]) -> Any:
    return known.get(schema, schema) if isinstance(schema, str) else schema


def avro(schema: Any) -> str:
    return schema if isinstance(schema, str) else schema["type"]


def logical_of(schema: Any) -> str | None:
    """Return the logical type, if it belongs to this Avro type."""
    found = schema.get("logicalType") if isinstance(schema, dict) else None
    if found == "decimal":
        return "decimal" if avro(schema) in ("bytes", "fixed") else None
    return found if found in _TIMES and _TIMES[found][0] == avro(schema) else None


def is_nullable(schema: Any) -> bool:
    return schema == "null" or (isinstance(schema, list) and "null" in schema)


def members(union: Sequence[Any]) -> list[Any]:
    """Return the branches that are read as columns of their own."""
    found = [each for each in union if each != "null"]
    for wide, narrow in (("long", "int"), ("double", "float")):
        if len(found) == 2 and wide in found and narrow in found:
            return [wide]
    return found


class Oracle:
    """What fits a schema, and what a value is in it."""

    def __init__(self, schema: Any, ignored: Sequence[str] = ()) -> None:
        self.known, self.ignored = names_of(schema), ignored

    def misfits(self, schema: Any, kind: pa.DataType, path: str) -> Iterator[str]:
        """Yield the path of each part that does not fit."""
        schema, kind = named(schema, self.known), stored(kind)
        if is_a.is_null(kind):
            if not is_nullable(schema):
                yield path
        elif isinstance(schema, list):
            yield from self._of_union(schema, kind, path)
        elif avro(schema) == "record" and is_a.is_struct(kind):
            yield from self._of_record(schema, kind, path)
        elif avro(schema) == "array" and is_list(kind):
            if not is_a.is_null(kind.value_type):
                yield from self.misfits(schema["items"], kind.value_type, f"{path}[]")
        elif avro(schema) == "map" and is_a.is_map(kind):
            if not is_a.is_string(stored(kind.key_type)):
                yield f"{path}{{}}"
            elif not is_a.is_null(kind.item_type):
                yield from self.misfits(schema["values"], kind.item_type, f"{path}{{}}")
        elif not fits_leaf(schema, kind):
            yield path

    def _of_record(self, record: Any, kind: pa.StructType, path: str) -> Iterator[str]:
        fields = {each["name"]: each["type"] for each in record["fields"]}
        given = [each.name for each in kind]
        yield from self._strange(given, fields, path)
        for name, schema in fields.items():
            if name in given:
                yield from self.misfits(schema, kind[given.index(name)].type, dotted(path, name))
            elif not is_nullable(schema):
                yield dotted(path, name)

    def _of_union(self, union: Any, kind: pa.DataType, path: str) -> Iterator[str]:
        found = members(union)
        if len(found) == 1:
            yield from self.misfits(found[0], kind, path)
        elif not found or not is_a.is_struct(kind):
            yield path
        else:
            names = {f"member{place}": each for place, each in enumerate(found)}
            given = [each.name for each in kind]
            yield from self._strange(given, names, path)
            for each in kind:
                if each.name in names and not is_a.is_null(each.type):
                    inner = dotted(path, each.name)
                    yield from self.misfits(names[each.name], each.type, inner)

    def _strange(self, given: Sequence[str], names: Mapping[str, Any], path: str) -> Iterator[str]:
        for name in given:
            if name not in names and dotted(path, name) not in self.ignored:
                yield dotted(path, name)
            if name in names and given.count(name) > 1:
                yield dotted(path, name)

    def wanted(self, schema: Any, kind: pa.DataType, value: Any) -> Any:
        """Return a value as fastavro writes it. Raise `NoValueError` if the schema has none."""
        schema, kind = named(schema, self.known), stored(kind)
        if isinstance(schema, list):
            return self._branch(schema, kind, value)
        if value is None:
            return no_value(is_nullable(schema), "null")
        if avro(schema) == "record":
            given = {each.name: (each.type, value[place]) for place, each in enumerate(kind)}
            return {
                each["name"]: self.wanted(each["type"], *given.get(each["name"], (pa.null(), None)))
                for each in schema["fields"]
            }
        if avro(schema) == "array":
            return [self.wanted(schema["items"], kind.value_type, each) for each in value]
        if avro(schema) == "map":
            items = schema["values"]
            return {name: self.wanted(items, kind.item_type, each) for name, each in value}
        return leaf(schema, kind, value)

    def _branch(self, union: Any, kind: pa.DataType, value: Any) -> Any:
        found = members(union)
        if value is not None and len(found) == 1:
            return branch_name(found[0], self.known), self.wanted(found[0], kind, value)
        there = (
            []
            if value is None
            else [
                (found[int(each.name.removeprefix("member"))], each.type, value[place])
                for place, each in enumerate(kind)
                if value[place] is not None and each.name.removeprefix("member").isdigit()
            ]
        )
        no_value(len(there) <= 1, "several members")
        for chosen, inner, member in there:
            return branch_name(chosen, self.known), self.wanted(chosen, inner, member)
        return no_value("null" in union, "null")


class NoValueError(Exception):
    """A row has a value that the schema has no place for."""


def no_value(is_there: bool, reason: str) -> None:
    if not is_there:
        raise NoValueError(reason)


def dotted(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def branch_name(schema: Any, known: Mapping[str, Any]) -> str:
    schema = named(schema, known)
    is_named = avro(schema) in ("record", "enum", "fixed")
    return str(schema["name"]) if is_named else avro(schema)


def fits_leaf(schema: Any, kind: pa.DataType) -> bool:
    name = logical_of(schema)
    if name == "decimal":
        return fits_decimal(schema["precision"], schema["scale"], kind)
    is_time = name is not None and _TIMES[name][1](kind)
    return bool(is_time) or str(kind) in _PLAIN.get(avro(schema), ())


def fits_decimal(precision: int, scale: int, kind: pa.DataType) -> bool:
    if precision > 38:
        return False
    if is_a.is_decimal(kind):
        return bool(kind.scale <= scale and kind.precision - kind.scale <= precision - scale)
    if not is_a.is_integer(kind):
        return False
    most: int = 1 << kind.bit_width - is_a.is_signed_integer(kind)
    return bool(most < 10 ** (precision - scale))


_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_PER_SECOND = {"millis": 1_000, "micros": 1_000_000, "nanos": 1_000_000_000}


def leaf(schema: Any, kind: pa.DataType, value: Any) -> Any:
    name = logical_of(schema)
    if avro(schema) == "enum":
        no_value(value in schema["symbols"], "none of the symbols")
    if name == "decimal":
        return unscaled(schema, kind, value)
    if avro(schema) == "fixed":
        no_value(len(value) == schema["size"], "not of the")
    if is_a.is_date64(kind):
        return whole(Fraction(value, 86_400_000), 32)
    if is_a.is_time(kind) or is_a.is_timestamp(kind):
        assert name is not None
        unit = _PER_SECOND[name.rpartition("-")[2]]
        seconds = Fraction(value, _UNITS[kind.unit])
        if name.endswith("timestamp-millis"):
            # Microseconds are cut, as by to_avro. A finer time is refused.
            return whole(seconds * 1_000_000, 64) // 1_000
        return whole(seconds * unit, 64)
    return float(value) if avro(schema) in ("float", "double") else value


def whole(number: Fraction, bits: int) -> int:
    no_value(number.denominator == 1, "is not a whole")
    no_value(-(1 << bits - 1) <= number < 1 << bits - 1, "is not a whole")
    return int(number)


def unscaled(schema: Any, kind: pa.DataType, value: int) -> bytes:
    number: int = value * 10 ** (schema["scale"] - (kind.scale if is_a.is_decimal(kind) else 0))
    if avro(schema) == "fixed":
        return number.to_bytes(schema["size"], signed=True)
    size = next(each for each in range(1, 20) if -(1 << 8 * each - 1) <= number < 1 << 8 * each - 1)
    return number.to_bytes(size, signed=True)


# -- pairs -----------------------------------------------------------------------------------------

_ROWS = 4


def by_fastavro(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(bare(schema)), value)
    return out.getvalue()


def read(schema: Any, data: bytes) -> Any:
    source = io.BytesIO(data)
    value = fastavro.schemaless_reader(source, fastavro.parse_schema(bare(schema)), None)
    assert source.tell() == len(data)
    return value


def unnamed(value: Any) -> Any:
    """Return a value to write as it is read: without the names of branches."""
    if isinstance(value, tuple):
        return unnamed(value[1])
    if isinstance(value, dict):
        return {name: unnamed(each) for name, each in value.items()}
    return [unnamed(each) for each in value] if isinstance(value, list) else value


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
            assert repr(read(schema, right[place])) == repr(unnamed(value))
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


_REASONS = ("null", "several members", "none of the symbols", "not of the", "is not a whole")


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
    """Whether Python's value may be less than the column's: a date64 within a day."""
    return "date64" in str(kind)


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
    assert read(of(schema), data) == {"v": wanted}
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
