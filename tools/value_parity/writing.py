"""Where writing Avro differs from Spark's `to_avro`: kinds, each with the reason, and a page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from tests.values.avro_fit_oracle import (
    Oracle,
    avro,
    dotted,
    fits_leaf,
    is_nullable,
    logical_of,
    named,
)
from tests.values.avro_fit_oracle import members as members_of
from tests.values.avro_pairs import Families, mutated, record_of, schema_of, value_of
from tests.values.avro_schemas import logical
from tests.values.test_avro_cases import of
from tools.marks import Marks

is_a = pa.types

PAGE = Path(__file__).parents[2] / "docs" / "contributors" / "measured" / "typed-writing-parity.md"
MARKS = Marks("<!-- differences: held by tools/value_parity -->", "<!-- end of differences -->")


@dataclass(frozen=True, slots=True)
class Kind:
    """One difference. `here` and `there` say who writes: this package, and `to_avro`."""

    what: str
    here: str
    there: str
    why: str


WRITTEN, REFUSED = "written", "refused"

INT_FOR_LONG = Kind(
    "a smaller whole number than the schema's: INT for `long`", WRITTEN, REFUSED,
    "Each INT is a `long`. Nothing is lost.")  # fmt: skip
NUMBER_FOR_FLOAT = Kind(
    "FLOAT for `double`; a whole number for `float` or `double` that has all its digits",
    WRITTEN, REFUSED,
    "The number stays the same. BIGINT for `double` is refused by both.")  # fmt: skip
DECIMAL = Kind(
    "DECIMAL, or a whole number, for a `decimal` with more digits on both sides of the point",
    WRITTEN, REFUSED,
    "The number stays the same. `to_avro` wants the same precision and scale.")  # fmt: skip
TIME_MILLIS = Kind(
    "TIME for `time-millis`", WRITTEN, REFUSED,
    "Whole milliseconds stay the same. A finer time is an error of its row.")  # fmt: skip
NANOS = Kind(
    "TIMESTAMP for `timestamp-nanos`, TIMESTAMP_NTZ for `local-timestamp-nanos`",
    WRITTEN, REFUSED,
    "The moment stays the same. A moment that 64 bits of nanoseconds do not hold is an error of "
    "its row.")  # fmt: skip
VOID = Kind(
    "VOID for a field, an item or a member that may be null", WRITTEN, REFUSED,
    "All its values are null, and the schema has null. Items of the type VOID are written if the "
    "lists are empty.")  # fmt: skip
NO_NULL_FIELD = Kind(
    "no column for a field of the type `null`", WRITTEN, REFUSED,
    "Its only value is null, which takes no bytes.")  # fmt: skip
MEMBERS = Kind(
    "some of a union's members, or in another order", WRITTEN, REFUSED,
    "Members have names. A member that is not there is not chosen.")  # fmt: skip
FIELDS_BY_CASE = Kind(
    "a record with two fields whose names differ in case only", WRITTEN, REFUSED,
    "Names count with their case here, so both fields are found.")  # fmt: skip
TOP_UNION = Kind(
    "a union of several types that is the whole schema", WRITTEN, REFUSED,
    "It is a struct of members, as it is within a record.")  # fmt: skip
CASE = Kind(
    "a name in another case than the schema's", REFUSED, WRITTEN,
    "Names count with their case in all ways to write, with and without Spark, since readers of "
    "the topic compare them so. The error names the field that is meant.")  # fmt: skip
DATE = Kind(
    "DATE for an `int` that is no `date`", REFUSED, WRITTEN,
    "A reader would take the number of days for milliseconds, or for any number.")  # fmt: skip
MOMENT = Kind(
    "TIMESTAMP or TIMESTAMP_NTZ for a `long` without a logical type", REFUSED, WRITTEN,
    "The schema does not say the unit, so a reader would have to guess that it is milliseconds. "
    "To write such a number, convert the column: `unix_millis(ts)`.")  # fmt: skip
INTERVAL = Kind(
    "INTERVAL for a `long`", REFUSED, WRITTEN,
    "The schema does not say the unit. To write the number, convert the column. (Spark does not "
    "hand INTERVAL YEAR TO MONTH to Python at all.)")  # fmt: skip
BINARY = Kind(
    "BINARY for a `decimal`", REFUSED, WRITTEN,
    "The bytes may be no number of the decimal's precision. A reader would refuse them, or read "
    "another number.")  # fmt: skip
NUMBERS_AND_TIMES = Kind(
    "BIGINT for a union of `int` and `long`, of which one is a time or a date", REFUSED, WRITTEN,
    "It would be a guess whether the number is a time. The column is a struct of members, as in "
    "the source's own column.")  # fmt: skip
STRUCT_OF_NUMBERS = Kind(
    "a struct of members for a union of `int` and `long`, or `float` and `double`", REFUSED,
    WRITTEN, "Such a union is one BIGINT or DOUBLE, in the source's own column, too.")  # fmt: skip
ROW_CUT = Kind(
    "a row: TIME with nanoseconds for `time-micros`", REFUSED, WRITTEN,
    "`to_avro` cuts the nanoseconds. Here the row is an error.")  # fmt: skip
ROW_MEMBERS = Kind(
    "a row: several members of a union at once", REFUSED, WRITTEN,
    "`to_avro` writes the first one and drops the others. Here the row is an error.")  # fmt: skip
ROW_NULL = Kind(
    "a row: a null for a record without fields", REFUSED, WRITTEN,
    "Such a record has no bytes, so a reader would find a record where the null was.")  # fmt: skip

KINDS = [
    INT_FOR_LONG, NUMBER_FOR_FLOAT, DECIMAL, TIME_MILLIS, NANOS, VOID, NO_NULL_FIELD, MEMBERS,
    FIELDS_BY_CASE, TOP_UNION, CASE, DATE, MOMENT, INTERVAL, BINARY, NUMBERS_AND_TIMES,
    STRUCT_OF_NUMBERS, ROW_CUT, ROW_MEMBERS, ROW_NULL,
]  # fmt: skip
BOTH = Kind("a type that fits in neither", REFUSED, REFUSED, "")


def table() -> str:
    """Return the page's table."""
    head = ["column and schema", "here", "`to_avro`", "why"]
    rows = [[each.what, each.here, each.there, each.why] for each in KINDS]
    return "\n".join(f"| {' | '.join(each)} |" for each in [head, ["---"] * len(head), *rows])


# -- pairs -----------------------------------------------------------------------------------------

SPARK: Families = (
    (pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    (pa.float32(), pa.float64(), pa.int8(), pa.int32(), pa.int64()),
    (pa.string(), pa.binary()),
    (pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.int64(), pa.duration("us")),
    (pa.time64("ns"), pa.int32(), pa.int64()),
    (pa.date32(), pa.timestamp("us"), pa.int32()),
    (pa.decimal128(10, 2), pa.decimal128(4, 2), pa.decimal128(38, 10), pa.decimal128(3, 0),
     pa.decimal128(9, 0), pa.int8(), pa.int32(), pa.binary()),
    (pa.bool_(), pa.string(), pa.null()),
)  # fmt: skip
"""Leaves in the types that Spark hands to Python."""

_TWO = {
    "type": "record", "name": "R", "fields": [
        {"name": "a", "type": "int"}, {"name": "A", "type": "int"}, {"name": "n", "type": "null"}]
}  # fmt: skip


def of_v(kind: pa.DataType) -> pa.DataType:
    return pa.struct([("v", kind)])


RARE: Sequence[tuple[Any, pa.DataType]] = [
    (_TWO, pa.struct([("a", pa.int32()), ("A", pa.int32()), ("n", pa.null())])),
    (_TWO, pa.struct([("a", pa.int32()), ("n", pa.null())])),
    (["int", logical("long", "timestamp-millis")], pa.int64()),
    (["int", logical("long", "timestamp-millis")], pa.int32()),
    ([logical("int", "date"), "long"], pa.int64()),
    (of(["int", "long"]), of_v(pa.struct([("member0", pa.int32()), ("member1", pa.int64())]))),
    (of(["int", "long"]), of_v(pa.struct([("member0", pa.int32()), ("member1", pa.int32())]))),
    (["int", "long"], pa.struct([("member0", pa.int32()), ("member1", pa.int64())])),
    (of(["float", "double", "null"]),
     of_v(pa.struct([("member0", pa.float32()), ("member1", pa.float64())]))),
    (of(["int", "string"]), of_v(pa.struct([("member1", pa.string()), ("member0", pa.int32())]))),
]  # fmt: skip
"""Pairs that are hardly drawn."""


def drawn_type(random: Random, reading: pa.DataType) -> pa.DataType:
    """Return a type near the one that the source reads."""
    kind = reading
    for _ in range(random.choice([0, 1, 1, 2])):
        kind = mutated(random, kind, SPARK)
    return kind


def drawn_schema(random: Random) -> Any:
    return schema_of(random) if random.randint(0, 3) else record_of(random)


def rows_of(random: Random, kind: pa.DataType, count: int = 4) -> list[Any]:
    return [value_of(random, kind) for _ in range(count)]


# -- kinds -----------------------------------------------------------------------------------------


class Differences:
    """Places of a pair at which one side refuses the type."""

    def __init__(self, schema: Any) -> None:
        self._known = Oracle(schema).known

    def of(self, schema: Any, kind: pa.DataType, path: str = "") -> Iterator[tuple[str, Kind]]:
        """Yield the path of each place, and what is different there."""
        schema = named(schema, self._known)
        branches = schema if isinstance(schema, list) else [schema]
        values = [each for each in branches if each != "null"]
        if is_a.is_null(kind):
            if values:
                yield path, VOID if is_nullable(schema) else BOTH
        elif not values:
            yield path, BOTH
        elif len(values) > 1:
            yield from self._of_union(values, kind, path)
        else:
            yield from self._of_value(named(values[0], self._known), kind, path)

    def _of_value(self, schema: Any, kind: pa.DataType, path: str) -> Iterator[tuple[str, Kind]]:
        match avro(schema):
            case "record" if is_a.is_struct(kind):
                yield from self._of_record(schema, kind, path)
            case "array" if is_a.is_list(kind):
                yield from self._item(schema["items"], kind.value_type, f"{path}[]")
            case "map" if is_a.is_map(kind):
                yield from self._item(schema["values"], kind.item_type, f"{path}{{}}")
            case _:
                found = of_leaf(schema, kind)
                if found is not None:
                    yield path, found

    def _item(self, schema: Any, kind: pa.DataType, path: str) -> Iterator[tuple[str, Kind]]:
        if not is_a.is_null(kind):
            yield from self.of(schema, kind, path)
        elif schema not in ("null", ["null"]):
            yield path, VOID

    def _of_record(self, record: Any, kind: pa.StructType, path: str) -> Iterator[tuple[str, Kind]]:
        fields = {each["name"]: each["type"] for each in record["fields"]}
        there: set[str] = set()
        for given in kind:
            inner = dotted(path, given.name)
            alike = [each for each in fields if each.lower() == given.name.lower()]
            if not alike:
                yield inner, BOTH
                continue
            if len(alike) > 1:
                yield inner, FIELDS_BY_CASE
            elif given.name not in fields:
                yield inner, CASE
            name = given.name if given.name in fields else alike[0]
            there.add(name)
            yield from self.of(fields[name], given.type, inner)
        for name, schema in fields.items():
            if name not in there:
                if not is_nullable(schema):
                    yield dotted(path, name), BOTH
                elif schema == "null":
                    yield dotted(path, name), NO_NULL_FIELD

    def _of_union(
        self, values: Sequence[Any], kind: pa.DataType, path: str
    ) -> Iterator[tuple[str, Kind]]:
        avros = {avro(named(each, self._known)) for each in values}
        names = {f"member{place}": each for place, each in enumerate(values)}
        is_struct = is_a.is_struct(kind)
        wide = members_of(values)
        if len(wide) == 1 and not is_struct:
            if str(kind) != {"long": "int64"}.get(wide[0], wide[0]):
                wider = INT_FOR_LONG if wide[0] == "long" else NUMBER_FOR_FLOAT
                yield path, wider if fits_leaf(wide[0], kind) else BOTH
        elif not is_struct:
            is_number = avros == {"int", "long"} and is_a.is_int64(kind)
            yield path, NUMBERS_AND_TIMES if is_number else BOTH
        else:
            given = {each.name: each.type for each in kind}
            if not path:
                yield path, TOP_UNION if len(wide) > 1 else BOTH
            if given.keys() - names.keys() or (len(wide) == 1 and list(given) != list(names)):
                yield path, BOTH
            elif len(wide) == 1:
                yield path, STRUCT_OF_NUMBERS
            elif list(given) != list(names):
                yield path, MEMBERS
            for name in given.keys() & names.keys():
                inner = dotted(path, name)
                if is_a.is_null(given[name]):
                    yield inner, VOID
                else:
                    yield from self._of_value(named(names[name], self._known), given[name], inner)


def of_leaf(schema: Any, kind: pa.DataType) -> Kind | None:
    """Return the difference for a type without parts. None if both write it."""
    here, there = fits_leaf(schema, kind), _takes(schema, kind)
    if here is there:
        return None if here else BOTH
    if there:
        return next(found for is_of, found in _THERE if is_of(kind))
    if logical_of(schema) == "decimal":
        return DECIMAL
    if avro(schema) in ("float", "double"):
        return NUMBER_FOR_FLOAT
    if is_a.is_integer(kind):
        return INT_FOR_LONG
    return TIME_MILLIS if is_a.is_time(kind) else NANOS


_THERE = [
    (is_a.is_date, DATE),
    (is_a.is_timestamp, MOMENT),
    (is_a.is_duration, INTERVAL),
    (is_a.is_binary, BINARY),
]
_PLAIN: Mapping[str, set[str]] = {
    "boolean": {"bool"}, "int": {"int8", "int16", "int32", "date32[day]"},
    "long": {"int64", "duration[us]"}, "float": {"float"}, "double": {"double"},
    "string": {"string"}, "enum": {"string"}, "bytes": {"binary"}, "fixed": {"binary"},
}  # fmt: skip


def _takes(schema: Any, kind: pa.DataType) -> bool:
    """Whether `to_avro` takes this type, as it was found to do."""
    name = logical_of(schema)
    if is_a.is_timestamp(kind):
        local = "local-" if kind.tz is None else ""
        moments = (None, f"{local}timestamp-millis", f"{local}timestamp-micros")
        return avro(schema) == "long" and name in moments
    if is_a.is_time(kind):
        return name == "time-micros"
    if is_a.is_decimal(kind):
        wanted = (schema["precision"], schema["scale"]) if name == "decimal" else ()
        return wanted == (kind.precision, kind.scale)
    return str(kind) in _PLAIN.get(avro(schema), ())
