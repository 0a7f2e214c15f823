"""Random Avro schemas, random evolutions of them, and values, drawn by hypothesis."""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

NAMES = ("a", "b", "c", "d", "e")
SYMBOLS = ("X", "Y", "Z", "W")
PRIMITIVES = ("boolean", "int", "long", "float", "double", "bytes", "string")
PROMOTIONS = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
}


def logical(kind: str, name: str, **more: int) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


LOGICAL = (
    logical("int", "date"),
    logical("int", "time-millis"),
    logical("long", "time-micros"),
    logical("long", "timestamp-millis"),
    logical("long", "timestamp-micros"),
    logical("long", "local-timestamp-millis"),
    logical("long", "local-timestamp-micros"),
    logical("bytes", "decimal", precision=10, scale=2),
    logical("bytes", "decimal", precision=38, scale=10),
    logical("string", "uuid"),
)


@dataclass
class Names:
    """Unique names of types."""

    count: int = 0
    known: list[str] = field(default_factory=list)

    def next(self) -> str:
        self.count += 1
        return f"T{self.count}"


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3, names: Names | None = None) -> Any:
    """Draw any type that is not recursive."""
    names = names or Names()
    kinds = ["primitive", "logical", "enum", "fixed"]
    if depth:
        kinds += ["record", "array", "map", "optional", "union"]
    match draw(st.sampled_from(kinds)):
        case "primitive":
            return draw(st.sampled_from(PRIMITIVES))
        case "logical":
            return dict(draw(st.sampled_from(LOGICAL)))
        case "enum":
            symbols = draw(st.lists(st.sampled_from(SYMBOLS), min_size=1, unique=True))
            return {"type": "enum", "name": names.next(), "symbols": symbols}
        case "fixed":
            size = draw(st.integers(0, 20))
            return {"type": "fixed", "name": names.next(), "size": size}
        case "record":
            return draw(records(depth - 1, names))
        case "array":
            return {"type": "array", "items": draw(schemas(depth - 1, names))}
        case "map":
            return {"type": "map", "values": draw(schemas(depth - 1, names))}
        case "optional":
            inner = draw(schemas(depth - 1, names).filter(lambda each: not isinstance(each, list)))
            return draw(st.permutations(["null", inner]))
        case _:
            return draw(unions(depth - 1, names))


@st.composite
def unions(draw: st.DrawFn, depth: int, names: Names) -> list[Any]:
    """Draw branches without a promotion from one to another.

    fastavro takes the first possible promotion, but Java takes the exact type.
    """
    pool: list[Any] = ["null", "boolean", draw(st.sampled_from(["string", "bytes"]))]
    pool.append(draw(st.sampled_from(["int", "long", "float", "double"])))
    pool.append(draw(records(depth, names)) if depth else "null")
    return draw(st.lists(st.sampled_from(pool), min_size=1, max_size=4, unique_by=str))


@st.composite
def records(draw: st.DrawFn, depth: int = 2, names: Names | None = None) -> dict[str, Any]:
    names = names or Names()
    name = names.next()
    chosen = draw(st.lists(st.sampled_from(NAMES), max_size=4, unique=True))
    fields = [{"name": each, "type": draw(schemas(depth, names))} for each in chosen]
    return {"type": "record", "name": name, "fields": fields}


def kind_of(schema: Any) -> str:
    while isinstance(schema, dict) and isinstance(schema["type"], dict):
        schema = schema["type"]
    return (
        "union"
        if isinstance(schema, list)
        else schema
        if isinstance(schema, str)
        else schema["type"]
    )


def _f32(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


_NUMBERS: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(1 << 31), (1 << 31) - 1) | st.integers(-70, 70),
    "long": st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-70, 70),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=20),
    "string": st.text(max_size=12),
}
_LOGICAL: dict[str, st.SearchStrategy[Any]] = {
    "date": st.integers(-700_000, 2_900_000),
    "time-millis": st.integers(0, 86_399_999),
    "time-micros": st.integers(0, 86_399_999_999),
    "timestamp-millis": st.integers(-60_000_000_000_000, 250_000_000_000_000),
    "timestamp-micros": st.integers(-60_000_000_000_000_000, 250_000_000_000_000_000),
    "local-timestamp-millis": st.integers(-60_000_000_000_000, 250_000_000_000_000),
    "local-timestamp-micros": st.integers(-60_000_000_000_000_000, 250_000_000_000_000_000),
    "uuid": st.uuids().map(str),
}


def values(schema: Any) -> st.SearchStrategy[Any]:
    """Return Avro's underlying values: a timestamp is a number, a decimal is bytes."""
    kind = kind_of(schema)
    if kind == "union":
        return st.one_of([_branch(each) for each in schema])
    if kind in _NUMBERS:
        name = schema.get("logicalType") if isinstance(schema, dict) else None
        if name == "decimal":
            return _unscaled(schema["precision"])
        return _LOGICAL[name] if name else _NUMBERS[kind]
    return _COMPLEX[kind](schema)


def _unscaled(precision: int) -> st.SearchStrategy[bytes]:
    most = 10**precision - 1
    return st.integers(-most, most).map(
        lambda number: number.to_bytes((number.bit_length() + 8) // 8, signed=True)
    )


def _branch(schema: Any) -> st.SearchStrategy[Any]:
    """Return values with the branch's name, where the branch is ambiguous."""
    if kind_of(schema) == "record":
        return values(schema).map(lambda value: (schema["name"], value))
    plain = isinstance(schema, str)
    return values(schema).map(lambda value: (schema, value) if plain else value)


_COMPLEX: dict[str, Callable[[Any], st.SearchStrategy[Any]]] = {
    "enum": lambda schema: st.sampled_from(schema["symbols"]),
    "fixed": lambda schema: st.binary(min_size=schema["size"], max_size=schema["size"]),
    "array": lambda schema: st.lists(values(schema["items"]), max_size=4),
    "map": lambda schema: st.dictionaries(
        st.text(max_size=3), values(schema["values"]), max_size=3
    ),
    "record": lambda schema: st.fixed_dictionaries(
        {each["name"]: values(each["type"]) for each in schema["fields"]}
    ),
}


@st.composite
def evolved(draw: st.DrawFn, schema: Any) -> Any:
    """Draw a schema that can read data of this one, or most of it."""
    kind = kind_of(schema)
    if kind == "union":
        return schema
    if isinstance(schema, str) and schema in PROMOTIONS and draw(st.booleans()):
        return draw(st.sampled_from(PROMOTIONS[schema]))
    if kind == "record":
        return draw(_evolved_record(schema))
    if kind in ("array", "map"):
        inner = "items" if kind == "array" else "values"
        return {**schema, inner: draw(evolved(schema[inner]))}
    if kind == "enum" and draw(st.booleans()):
        symbols = draw(st.lists(st.sampled_from(SYMBOLS), min_size=1, unique=True))
        return {**schema, "symbols": symbols, "default": symbols[0]}
    return schema


DEFAULT_BYTES = "\u0001\u00ff"
ADDED: tuple[tuple[Any, Any], ...] = (
    ("int", -7),
    ("string", "né"),
    ("double", 1.5),
    (["null", "string"], None),
    (["string", "null"], "x"),
    ({"type": "array", "items": "int"}, [1, 2]),
    ({"type": "array", "items": "string"}, []),
    ({"type": "map", "values": "string"}, {"k": "v"}),
    (logical("bytes", "decimal", precision=10, scale=2), DEFAULT_BYTES),
)


@st.composite
def _evolved_record(draw: st.DrawFn, schema: dict[str, Any]) -> dict[str, Any]:
    fields = []
    for each in draw(st.permutations(schema["fields"])):
        match draw(st.sampled_from(["keep", "keep", "drop", "rename", "optional"])):
            case "drop":
                continue
            case "rename":
                name = each["name"] + "_new"
                fields.append({**each, "name": name, "aliases": [each["name"]]})
            case "optional" if kind_of(each["type"]) not in ("union", "null"):
                fields.append({**each, "type": ["null", each["type"]]})
            case _:
                fields.append({**each, "type": draw(evolved(each["type"]))})
    for number, (kind, default) in enumerate(draw(st.lists(st.sampled_from(ADDED), max_size=2))):
        fields.append({"name": f"added{number}", "type": kind, "default": default})
    return {**schema, "fields": fields}
