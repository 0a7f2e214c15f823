"""Random pairs of an Avro schema and a column's type, and columns of such types.

All is drawn from a `random.Random`, which may be hypothesis' own.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from random import Random
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from tests.values.avro_schemas import SYMBOLS, Names, logical

PRIMITIVES = ("boolean", "int", "long", "float", "double", "bytes", "string", "null")
TIMES = {
    "int": ("date", "time-millis"),
    "long": (
        "time-micros", "timestamp-millis", "timestamp-micros", "timestamp-nanos",
        "local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos",
    ),
}  # fmt: skip
FIELDS = ("a", "b", "c", "d", "Ab")
_SIZES = (2, 2, 2, 12, 16, 0)

# -- schemas ---------------------------------------------------------------------------------------


def schema_of(random: Random, depth: int = 3, names: Names | None = None) -> Any:
    """Draw a schema, in its JSON form."""
    names = names or Names()
    kinds: list[Callable[[], Any]] = [
        lambda: random.choice(PRIMITIVES),
        lambda: _time(random),
        lambda: random.choice(PRIMITIVES),
        lambda: _time(random),
        lambda: _decimal(random, names),
        lambda: _named(random, names),
    ]
    if depth:
        kinds += [
            lambda: record_of(random, depth, names),
            lambda: record_of(random, depth, names),
            lambda: {"type": "array", "items": schema_of(random, depth - 1, names)},
            lambda: {"type": "map", "values": schema_of(random, depth - 1, names)},
            lambda: union_of(random, depth, names),
            lambda: _optional(random, depth, names),
            lambda: _optional(random, depth, names),
        ]
    return random.choice(kinds)()


def record_of(random: Random, depth: int = 3, names: Names | None = None) -> Any:
    names = names or Names()
    name, chosen = names.next(), random.sample(FIELDS, random.randint(0, 4))
    fields = [{"name": each, "type": schema_of(random, depth - 1, names)} for each in chosen]
    return {"type": "record", "name": name, "fields": fields}


def union_of(random: Random, depth: int, names: Names) -> list[Any]:
    """Draw up to four branches. Numbers and times stand side by side."""
    pool = [
        "null", "boolean", "string", "bytes", random.choice(["float", "double"]),
        random.choice(["int", _time(random, "int")]),
        random.choice(["long", _time(random, "long")]),
        record_of(random, depth, names), {"type": "array", "items": "int"},
        _named(random, names),
    ]  # fmt: skip
    if not random.randint(0, 2):
        return list(random.choice(_SPECIAL))
    return random.sample(pool, random.randint(2, 4))


_SPECIAL: Sequence[Sequence[Any]] = (
    ["int", "long"], ["long", "null", "int"], ["float", "double"], ["null"], ["int"],
    ["int", logical("long", "timestamp-millis")], [logical("int", "date"), "long", "null"],
    [logical("int", "time-millis"), logical("long", "timestamp-micros")],
)  # fmt: skip


def _optional(random: Random, depth: int, names: Names) -> list[Any]:
    inner = schema_of(random, depth - 1, names)
    if isinstance(inner, list) or inner == "null":
        inner = "long"
    return ["null", inner] if random.randint(0, 1) else [inner, "null"]


def _time(random: Random, kind: str = "") -> Any:
    of = kind or random.choice(["int", "long", "long"])
    # One in eight is beside its type: `date` on a long means nothing.
    of_other = {"int": "long", "long": "int"}[of] if not random.randint(0, 7) else of
    return logical(of, random.choice(TIMES[of_other]))


def _decimal(random: Random, names: Names) -> Any:
    precision, scale = random.choice([(10, 2), (4, 2), (38, 10), (19, 0), (9, 0), (40, 2)])
    if random.randint(0, 2):
        return logical("bytes", "decimal", precision=precision, scale=scale)
    # 17 bytes hold 40 digits.
    kind = {"type": "fixed", "name": names.next(), "size": 17}
    return {**kind, "logicalType": "decimal", "precision": precision, "scale": scale}


def _named(random: Random, names: Names) -> Any:
    if random.randint(0, 1):
        symbols = random.sample(SYMBOLS, random.randint(1, len(SYMBOLS)))
        return {"type": "enum", "name": names.next(), "symbols": symbols}
    if not random.randint(0, 5):
        return {"type": "fixed", "name": names.next(), "size": 12, "logicalType": "duration"}
    return {"type": "fixed", "name": names.next(), "size": random.choice(_SIZES)}


# -- types -----------------------------------------------------------------------------------------

Families: TypeAlias = Sequence[Sequence[pa.DataType]]
_ZONES = (None, "UTC", "Europe/Berlin", "+05:30")
ARROW: Families = (
    (pa.int8(), pa.int16(), pa.int32(), pa.int64(),
     pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    (pa.float16(), pa.float32(), pa.float64(), pa.int8(), pa.int32(), pa.int64(), pa.uint32()),
    (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()),
     pa.run_end_encoded(pa.int32(), pa.string()), pa.binary()),
    (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2), pa.binary(12),
     pa.dictionary(pa.int32(), pa.binary()), pa.string()),
    tuple(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in _ZONES),
    (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"), pa.int32(), pa.int64()),
    (pa.date32(), pa.date64(), pa.timestamp("us"), pa.int32()),
    (pa.decimal128(10, 2), pa.decimal128(4, 2), pa.decimal128(38, 10), pa.decimal128(3, 0),
     pa.decimal256(10, 2), pa.decimal256(40, 2), pa.decimal32(4, 2), pa.decimal64(10, 2),
     pa.decimal128(10, 3), pa.int8(), pa.int32(), pa.uint64(), pa.float64()),
    (pa.bool_(), pa.int8(), pa.string(), pa.null()),
    (pa.duration("us"), pa.duration("ms"), pa.month_day_nano_interval(), pa.int64()),
)  # fmt: skip
"""Leaves that one takes for another."""


def mutated(random: Random, kind: pa.DataType, families: Families = ARROW) -> pa.DataType:
    """Change the type in one place, perhaps deep within it."""
    children = _children(kind)
    if children and random.randint(0, 2):
        chosen = random.randrange(len(children))
        children[chosen] = mutated(random, children[chosen], families)
        return _with_children(kind, children)
    if pa.types.is_struct(kind):
        return _changed_struct(random, kind, families)
    if pa.types.is_map(kind):
        return random.choice(
            [kind.item_type, pa.list_(kind.item_type), pa.null()]
            + [pa.map_(key, kind.item_type) for key in _KEYS if families is ARROW]
        )
    if pa.types.is_list(kind):
        return random.choice(_lists(kind.value_type, families))
    return _other_leaf(random, kind, families)


_KEYS = (pa.large_string(), pa.int32(), pa.binary(), pa.dictionary(pa.int8(), pa.string()))


def _lists(item: pa.DataType, families: Families) -> list[pa.DataType]:
    others = [item, pa.list_(pa.list_(item)), pa.map_(pa.string(), item), pa.null()]
    if families is not ARROW:
        return others
    alike = [pa.large_list(item), pa.list_(item, 2), pa.list_view(item), pa.large_list_view(item)]
    return [*others[:2], *alike, pa.list_(pa.field("other", item)), pa.list_(pa.null())]


def _children(kind: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_struct(kind):
        return [each.type for each in kind]
    if pa.types.is_map(kind):
        return [kind.item_type]
    return [kind.value_type] if pa.types.is_list(kind) else []


def _with_children(kind: pa.DataType, children: Sequence[pa.DataType]) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([(each.name, child) for each, child in zip(kind, children, strict=True)])
    (child,) = children
    is_map = pa.types.is_map(kind)
    return pa.map_(kind.key_type, child) if is_map else pa.list_(pa.field("element", child))


def _changed_struct(random: Random, kind: pa.StructType, families: Families) -> pa.DataType:
    fields = [(each.name, each.type) for each in kind]
    place = random.randrange(len(fields) or 1)
    name, of = fields[place] if fields else ("a", pa.int32())
    leaf = random.choice(random.choice(families))
    match random.choice(["drop", "add", "rename", "recase", "order", "null", "leaf", "twice"]):
        case "drop":
            del fields[place : place + 1]
        case "add":
            fields.insert(place, (random.choice(["extra", name.swapcase()]), leaf))
        case "rename":
            fields[place : place + 1] = [("other", of)]
        case "recase":
            fields[place : place + 1] = [(name.swapcase(), of)]
        case "order":
            random.shuffle(fields)
        case "null":
            fields[place : place + 1] = [(name, pa.null())]
        case "leaf":
            return leaf
        case "twice" if families is ARROW:
            fields.append((name, of))
    return pa.struct(fields)


def _other_leaf(random: Random, kind: pa.DataType, families: Families) -> pa.DataType:
    near = [family for family in families if kind in family]
    found = random.choice(random.choice(near if near and random.randint(0, 4) else families))
    if random.randint(0, 9):
        return found
    wrapped = [pa.list_(found), pa.struct([("v", found)]), pa.null()]
    return random.choice(wrapped)


# -- columns ---------------------------------------------------------------------------------------

_TEXTS = (*SYMBOLS, *SYMBOLS, "X", "", "né", "\U0001f600", "a" * 70)
_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DAY = 86_400


def value_of(random: Random, kind: pa.DataType, *, nulls: int = 25) -> Any:
    """Draw a value: times are whole numbers in the type's unit. One in `nulls` is null."""
    if pa.types.is_null(kind) or not random.randrange(nulls):
        return None
    of = pa.types
    if of.is_struct(kind):
        return _members(random, kind, nulls)
    if of.is_map(kind):
        keys = {_key(random, kind.key_type) for _ in range(random.randint(0, 3))}
        return [(key, value_of(random, kind.item_type, nulls=nulls)) for key in sorted(keys)]
    if of.is_fixed_size_list(kind):
        return [value_of(random, kind.value_type, nulls=nulls) for _ in range(kind.list_size)]
    if hasattr(kind, "value_field"):
        count = random.choice([0, 1, 1, 2, 3])
        return [value_of(random, kind.value_type, nulls=nulls) for _ in range(count)]
    if of.is_dictionary(kind) or of.is_run_end_encoded(kind):
        return value_of(random, kind.value_type, nulls=nulls)
    return _leaf(random, kind)


def _members(random: Random, kind: pa.StructType, nulls: int) -> list[Any]:
    """Draw a struct. What may be a union has one member, as a rule."""
    found = [value_of(random, each.type, nulls=nulls) for each in kind]
    if found and all(each.name.startswith("member") for each in kind) and random.randrange(nulls):
        chosen = random.randrange(len(found))
        return [each if place == chosen else None for place, each in enumerate(found)]
    return found


def _key(random: Random, kind: pa.DataType) -> Any:
    if pa.types.is_integer(kind):
        return random.randint(0, 5)
    text = random.choice("xyz")
    return text.encode() if pa.types.is_binary(kind) else text


def _leaf(random: Random, kind: pa.DataType) -> Any:
    of = pa.types
    if of.is_boolean(kind):
        return bool(random.randint(0, 1))
    if of.is_integer(kind):
        return _whole(random, kind.bit_width, of.is_signed_integer(kind))
    if of.is_floating(kind):
        number = random.choice([0.0, -0.0, 1.5, -0.1, 65_504.0, float("inf"), float("nan")])
        return float(np.dtype(f"f{kind.bit_width // 8}").type(number))
    if of.is_decimal(kind):
        digits = random.choice([1, 2, kind.precision])
        return random.randint(-(10**digits) + 1, 10**digits - 1)
    if of.is_string(kind) or of.is_large_string(kind) or of.is_string_view(kind):
        return random.choice(_TEXTS)
    if of.is_temporal(kind):
        return _moment(random, kind)
    size = kind.byte_width if of.is_fixed_size_binary(kind) else random.choice([*_SIZES, 1, 130])
    return bytes(random.choices(range(256), k=size))


def _whole(random: Random, bits: int, is_signed: bool) -> int:
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    return random.choice([least, most, 0, 5, most // 3, random.randint(least, most)])


def _moment(random: Random, kind: pa.DataType) -> Any:
    of = pa.types
    if of.is_date32(kind):
        return random.choice([0, -1, 20_000, -719_162, 2_932_896, (1 << 31) - 1])
    if of.is_date64(kind):
        return random.choice([0, -1, 20_000, 2_932_896, 1 << 33]) * _DAY * 1_000
    if of.is_interval(kind):
        return pa.MonthDayNano([1, 2, 3])
    unit = _UNITS[kind.unit]
    if of.is_time(kind):
        number = random.choice([0, 43_200 * unit, _DAY * unit - 1, random.randrange(_DAY * unit)])
        # Every second one has milliseconds only.
        coarse = max(unit // 1_000, 1)
        return number // coarse * coarse if random.randint(0, 1) else number
    few = random.choice([0, 1, -1, 1_704_067_200 * unit, -62_135_596_800 * unit, 1_500_000_001])
    far = random.choice([(1 << 63) - 1, -(1 << 62), 253_402_300_799 * unit])
    number = few if random.randint(0, 9) else far
    return number if -(1 << 63) <= number < 1 << 63 else 0


def column(kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
    """Return values, as `value_of` draws them, as a column.

    What lies under a null is not null: a number, a struct with values, a list with items.
    """
    of = pa.types
    absent = np.array([each is None for each in values], np.bool_)
    mask = pa.array(absent)
    if of.is_struct(kind):
        rows = [each if each is not None else [None] * kind.num_fields for each in values]
        inner = [column(each.type, [row[n] for row in rows]) for n, each in enumerate(kind)]
        if not inner:
            return pa.array([None if each is None else {} for each in values], kind)
        return pa.StructArray.from_arrays(inner, fields=list(kind), mask=mask)
    if hasattr(kind, "value_field") or of.is_map(kind):
        return _listed(kind, values, mask)
    if of.is_dictionary(kind):
        return column(kind.value_type, values).dictionary_encode().cast(kind)
    if of.is_run_end_encoded(kind):
        ends = pa.array(range(1, len(values) + 1), kind.run_end_type)
        return pa.RunEndEncodedArray.from_arrays(ends, column(kind.value_type, values), kind)
    if of.is_decimal(kind):
        return _decimals(kind, values)
    if (of.is_temporal(kind) and not of.is_interval(kind)) or of.is_integer(kind):
        form = np.dtype(f"i{kind.bit_width // 8}") if of.is_temporal(kind) else None
        dtype = form or np.dtype(str(kind))
        numbers = np.array([77 if each is None else each for each in values], dtype)
        return pa.array(numbers, mask=absent).view(kind)
    if of.is_float16(kind):  # An older Arrow takes only numpy's own.
        return pa.array(
            np.array([0.0 if each is None else each for each in values], np.float16), mask=absent
        )
    return pa.array(values, kind)


def _decimals(kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
    # Built from bytes, since Python's decimals would be rounded.
    width = kind.bit_width // 8
    data = b"".join((each or 0).to_bytes(width, "little", signed=True) for each in values)
    there = np.packbits(
        np.array([each is not None for each in values], np.bool_), bitorder="little"
    )
    buffers = [pa.py_buffer(there.tobytes()), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, len(values), buffers)


def _listed(kind: pa.DataType, values: Sequence[Any], mask: pa.Array) -> pa.Array:
    of = pa.types
    if of.is_fixed_size_list(kind):
        flat = [item for each in values for item in each or [None] * kind.list_size]
        return pa.FixedSizeListArray.from_arrays(
            column(kind.value_type, flat), type=kind, mask=mask
        )
    flat = [item for each in values for item in each or ()]
    starts = list(accumulate((len(each or ()) for each in values), initial=0))
    if of.is_map(kind):
        keys = column(kind.key_type, [key for key, _ in flat])
        items = column(kind.item_type, [item for _, item in flat])
        # pyarrow takes a null in the offsets for a null map.
        offsets = pa.array([*starts], pa.int32(), mask=np.append(mask.to_numpy(False), False))
        return pa.MapArray.from_arrays(offsets, keys, items, kind)
    items = column(kind.value_type, flat)
    if of.is_list(kind):
        return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), items, kind, mask=mask)
    if of.is_large_list(kind):
        return pa.LargeListArray.from_arrays(pa.array(starts, pa.int64()), items, kind, mask=mask)
    is_large = of.is_large_list_view(kind)
    form = pa.int64() if is_large else pa.int32()
    sizes = pa.array([len(each or ()) for each in values], form)
    views = pa.LargeListViewArray if is_large else pa.ListViewArray
    return views.from_arrays(pa.array(starts[:-1], form), sizes, items, kind, mask=mask)


def names_of(schema: Any, known: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the named types of a schema."""
    found: dict[str, Any] = dict(known or {})
    if isinstance(schema, list):
        for each in schema:
            found = names_of(each, found)
    elif isinstance(schema, dict):
        if "name" in schema and "type" in schema and schema["type"] in ("record", "enum", "fixed"):
            found[schema["name"]] = schema
        for each in schema.get("fields", ()):
            found = names_of(each["type"], found)
        for part in ("items", "values"):
            found = names_of(schema[part], found) if part in schema else found
    return found
