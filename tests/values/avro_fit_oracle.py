"""What a column's type has to be for an Avro schema, and what a value is there, in few words.

Nothing here is taken from the package.
"""

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import fastavro
import pyarrow as pa

from tests.values.avro_oracle import bare
from tests.values.avro_pairs import names_of

is_a = pa.types

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
    numbers = {avro(each) for each in found if logical_of(each) is None}
    for wide, narrow in (("long", "int"), ("double", "float")):
        if len(found) == 2 and numbers == {wide, narrow}:
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
    if name == "uuid" and avro(schema) == "string":
        digits = "-".join(f"[0-9A-Fa-f]{{{count}}}" for count in (8, 4, 4, 4, 12))
        no_value(re.fullmatch(digits, value) is not None, "no UUID")
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


# -- fastavro --------------------------------------------------------------------------------------


def by_fastavro(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(bare(schema)), value)
    return out.getvalue()


def read_back(schema: Any, data: bytes) -> Any:
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
