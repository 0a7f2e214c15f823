"""Parser of schemas, https://avro.apache.org/docs/1.12.0/specification/#schema-declaration.

Names are as free as in Java's parser: letters of any alphabet, and any namespace. Unknown
attributes are ignored. So are logical types that do not fit their type.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from spark_kafka_source.values.avro.schema import (
    NO_DEFAULT,
    ArrayType,
    AvroType,
    EnumType,
    Field,
    FixedType,
    Json,
    Kind,
    Logical,
    LogicalKind,
    MapType,
    NamedType,
    Primitive,
    RecordType,
    Reference,
    Schema,
    UnionType,
)
from spark_kafka_source.values.errors import SchemaError, quoted

MAX_SCHEMA_CHARACTERS = 4 << 20
MAX_DEPTH = 64
"""The deepest nesting of types."""
MAX_NAME_CHARACTERS = 1024
MAX_NAMES = 20_000
"""The most types, fields and symbols in a schema, together."""
MAX_FIXED_BYTES = 1 << 20

_PRIMITIVES: Mapping[str, Kind] = {kind.value: kind for kind in Kind}
_LOGICAL: Mapping[LogicalKind, tuple[Kind, ...]] = {
    LogicalKind.DECIMAL: (Kind.BYTES,),
    LogicalKind.UUID: (Kind.STRING,),
    LogicalKind.DATE: (Kind.INT,),
    LogicalKind.TIME_MILLIS: (Kind.INT,),
    LogicalKind.TIME_MICROS: (Kind.LONG,),
    LogicalKind.TIMESTAMP_MILLIS: (Kind.LONG,),
    LogicalKind.TIMESTAMP_MICROS: (Kind.LONG,),
    LogicalKind.TIMESTAMP_NANOS: (Kind.LONG,),
    LogicalKind.LOCAL_TIMESTAMP_MILLIS: (Kind.LONG,),
    LogicalKind.LOCAL_TIMESTAMP_MICROS: (Kind.LONG,),
    LogicalKind.LOCAL_TIMESTAMP_NANOS: (Kind.LONG,),
    LogicalKind.DURATION: (),
}
"""The primitive types that each logical type may annotate. For a fixed, the size decides."""
_LOGICAL_NAMES: Mapping[str, LogicalKind] = {kind.value: kind for kind in LogicalKind}


def parse_schema(text: str, references: Iterable[str] = ()) -> Schema:
    """Parse the schema in `text`. Raises `SchemaError`.

    `references` are schemas of named types that it uses. Each comes after the ones that it uses.
    """
    parser = _Parser()
    for place, reference in enumerate(references):
        parser.parse(_json(reference, f"reference {place}"))
    kind = parser.parse(_json(text, ""))
    return Schema(kind, MappingProxyType(parser.named))


def _json(text: str, path: str) -> Json:
    if len(text) > MAX_SCHEMA_CHARACTERS:
        found = f"it has {len(text)} characters"
        raise SchemaError(path, found, f"At most {MAX_SCHEMA_CHARACTERS} are read")
    try:
        parsed: Json = json.loads(text)
    except RecursionError:
        raise SchemaError(path, "it is nested too deeply", _DEPTH) from None
    except ValueError as error:
        raise SchemaError(path, f"no JSON: {error}", "An Avro schema is JSON") from None
    return parsed


_DEPTH = f"Nest types at most {MAX_DEPTH} deep"
_TYPES = "A type is a name, an object with 'type', or a list of branches"


class _Parser:
    """Parser that keeps the named types so far."""

    def __init__(self) -> None:
        self.named: dict[str, NamedType] = {}
        self._begun: set[str] = set()
        self._depths: dict[str, int] = {}
        self._names = 0

    def parse(self, schema: Json) -> AvroType:
        return self._type(schema, "", "", 0)

    def _type(self, schema: Json, space: str, path: str, depth: int) -> AvroType:
        if depth > MAX_DEPTH:
            raise SchemaError(path, "it is nested too deeply", _DEPTH)
        if isinstance(schema, str):
            return self._by_name(schema, space, path)
        if isinstance(schema, list):
            return self._union(schema, space, path, depth)
        if not isinstance(schema, dict) or "type" not in schema:
            raise SchemaError(path, f"{quoted(schema)} is no type", _TYPES)
        name = schema["type"]
        if not isinstance(name, str):
            return self._type(name, space, path, depth + 1)
        if kind := _PRIMITIVES.get(name):
            return Primitive(kind, _logical(schema, kind, path))
        if complex_type := _COMPLEX.get(name):
            return complex_type(self, schema, space, path, depth)
        return self._by_name(name, space, path)

    def _by_name(self, name: str, space: str, path: str) -> AvroType:
        if kind := _PRIMITIVES.get(name):
            return Primitive(kind)
        for full in (_full_name(name, space), name):
            if full in self._begun:
                return Reference(full)
        expected = "Define it before it is used, or give its schema as a reference"
        raise SchemaError(path, f"there is no type {quoted(name)}", expected)

    def _union(self, schema: list[Json], space: str, path: str, depth: int) -> AvroType:
        branches = tuple(
            self._type(branch, space, f"{path}[{place}]", depth + 1)
            for place, branch in enumerate(schema)
        )
        if not branches:
            raise SchemaError(path, "an empty union", "A union has at least one branch")
        seen = set()
        for branch in branches:
            if isinstance(branch, UnionType):
                raise SchemaError(path, "a union in a union", "Write one union of all branches")
            same = str(branch.kind) if isinstance(branch, Primitive) else str(branch)
            if same in seen:
                found = f"a union with {quoted(same)} twice"
                raise SchemaError(path, found, "Use each unnamed type once")
            seen.add(same)
        return UnionType(branches)

    def _array(self, schema: dict[str, Json], space: str, path: str, depth: int) -> AvroType:
        items = _required(schema, "items", path)
        return ArrayType(self._type(items, space, f"{path}[]", depth + 1))

    def _map(self, schema: dict[str, Json], space: str, path: str, depth: int) -> AvroType:
        values = _required(schema, "values", path)
        return MapType(self._type(values, space, f"{path}{{}}", depth + 1))

    def _fixed(self, schema: dict[str, Json], space: str, path: str, _: int) -> AvroType:
        name, space, aliases = self._begin(schema, space, path)
        size = _required(schema, "size", path)
        if type(size) is not int or not 0 <= size <= MAX_FIXED_BYTES:
            expected = f"It has a size from 0 to {MAX_FIXED_BYTES}"
            raise SchemaError(path, f"fixed {name} has a size of {quoted(size)}", expected)
        return self._end(FixedType(name, size, aliases, _fixed_logical(schema, size)))

    def _enum(self, schema: dict[str, Json], space: str, path: str, _: int) -> AvroType:
        name, space, aliases = self._begin(schema, space, path)
        symbols = _strings(_required(schema, "symbols", path), path, "symbols")
        for symbol in symbols:
            self._count(_checked_name(symbol, path))
        if len(set(symbols)) < len(symbols):
            raise SchemaError(path, f"enum {name} has a symbol twice", "Give each symbol once")
        default = schema.get("default")
        if default is not None and default not in symbols:
            found = f"enum {name} has the default {quoted(default)}"
            raise SchemaError(path, found, "It must be one of the symbols")
        return self._end(EnumType(name, symbols, str(default) if default else None, aliases))

    def _record(self, schema: dict[str, Json], space: str, path: str, depth: int) -> AvroType:
        name, space, aliases = self._begin(schema, space, path)
        fields = _required(schema, "fields", path)
        if not isinstance(fields, list):
            raise SchemaError(path, f"the fields of {name} are no list", "A record has a list")
        parsed = tuple(self._field(field, space, path, depth) for field in fields)
        if twice := [each for each, count in Counter(f.name for f in parsed).items() if count > 1]:
            raise SchemaError(
                path, f"{name} has {quoted(twice[0])} twice", "Give each field its own name"
            )
        return self._end(RecordType(name, parsed, aliases))

    def _field(self, schema: Json, space: str, path: str, depth: int) -> Field:
        if not isinstance(schema, dict):
            raise SchemaError(path, f"{quoted(schema)} is no field", "A field is an object")
        name = self._count(_checked_name(_required(schema, "name", path), path))
        path = f"{path}.{name}" if path else name
        kind = self._type(_required(schema, "type", path), space, path, depth + 1)
        aliases = _strings(schema.get("aliases") or [], path, "aliases")
        return Field(name, kind, schema.get("default", NO_DEFAULT), aliases)

    def _begin(
        self, schema: dict[str, Json], space: str, path: str
    ) -> tuple[str, str, tuple[str, ...]]:
        """Return the full name, the namespace for the inside, and the aliases of a named type."""
        own = schema.get("namespace")
        name = _full_name(
            _checked_name(_required(schema, "name", path), path, dots=True),
            own if isinstance(own, str) else space,
        )
        if name in self._begun or name in _PRIMITIVES:
            raise SchemaError(
                path, f"{quoted(name)} is defined twice", "Give each type its own name"
            )
        self._begun.add(self._count(name))
        space = name.rpartition(".")[0]
        aliases = _strings(schema.get("aliases") or [], path, "aliases")
        return name, space, tuple(_full_name(alias, space) for alias in aliases)

    def _end(self, kind: NamedType) -> Reference:
        self._depths[kind.name] = self._depth(kind)
        if self._depths[kind.name] > MAX_DEPTH:
            raise SchemaError("", f"{kind} is nested too deeply", _DEPTH)
        self.named[kind.name] = kind
        return Reference(kind.name)

    def _depth(self, kind: AvroType | NamedType) -> int:
        """Return the nesting depth of a type. It follows names, but not into the type itself."""
        match kind:
            case Reference(name):
                return self._depths.get(name, 0)
            case ArrayType(inner) | MapType(inner):
                return 1 + self._depth(inner)
            case UnionType(branches):
                return 1 + max(map(self._depth, branches))
            case RecordType(_, fields):
                return 1 + max((self._depth(field.type) for field in fields), default=0)
            case _:
                return 0

    def _count(self, name: str) -> str:
        self._names += 1
        if self._names > MAX_NAMES:
            raise SchemaError("", f"more than {MAX_NAMES} names", "Types this large are not read")
        return name


_Complex = Callable[[_Parser, dict[str, Json], str, str, int], AvroType]
_COMPLEX: Mapping[str, _Complex] = {
    "array": _Parser._array,
    "map": _Parser._map,
    "fixed": _Parser._fixed,
    "enum": _Parser._enum,
    "record": _Parser._record,
    "error": _Parser._record,
}


def _full_name(name: str, space: str) -> str:
    """Return the full name. A name with a dot is full; a dot at its start means no namespace."""
    return name.lstrip(".") if "." in name or not space else f"{space}.{name}"


def _checked_name(name: Json, path: str, *, dots: bool = False) -> str:
    last = name.rpartition(".")[2] if dots and isinstance(name, str) else name
    good = (
        isinstance(name, str)
        and isinstance(last, str)
        and len(name) <= MAX_NAME_CHARACTERS
        and last.replace("_", "a").isalnum()
        and not last[0].isdigit()
    )
    if not good:
        expected = "A name begins with a letter or _, and has letters, digits and _"
        raise SchemaError(path, f"the name {quoted(name)}", expected)
    return str(name)


def _required(schema: dict[str, Json], key: str, path: str) -> Json:
    if key not in schema:
        raise SchemaError(path, f"{quoted(schema)} has no '{key}'", f"Give it '{key}'")
    return schema[key]


def _strings(value: Json, path: str, what: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise SchemaError(path, f"the {what} {quoted(value)}", "They are a list of names")
    return tuple(str(each) for each in value)


def _logical(schema: dict[str, Json], kind: Kind, path: str) -> Logical | None:
    logical = _LOGICAL_NAMES.get(str(schema.get("logicalType")))
    if logical is None or kind not in _LOGICAL[logical]:
        return None
    return _decimal(schema) if logical is LogicalKind.DECIMAL else Logical(logical)


def _fixed_logical(schema: dict[str, Json], size: int) -> Logical | None:
    logical = _LOGICAL_NAMES.get(str(schema.get("logicalType")))
    if logical is LogicalKind.DECIMAL:
        decimal = _decimal(schema)
        # The number of digits that always fits in these bytes.
        digits = int((8 * size - 1) * math.log10(2)) if size else 0
        fits = decimal is not None and decimal.precision <= digits
        return decimal if fits else None
    sized = {LogicalKind.DURATION: 12, LogicalKind.UUID: 16}
    return Logical(logical) if logical and sized.get(logical) == size else None


def _decimal(schema: dict[str, Json]) -> Logical | None:
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if type(precision) is not int or type(scale) is not int:
        return None
    return Logical(LogicalKind.DECIMAL, precision, scale) if 0 <= scale <= precision > 0 else None
