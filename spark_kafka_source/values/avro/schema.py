"""Avro schemas as values, https://avro.apache.org/docs/1.12.0/specification/#schema-declaration.

A named type is defined once, in `Schema.named`. Each use is a `Reference`, even the place of its
definition. So a type may contain itself, and every value here is finite.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

Json: TypeAlias = str | int | float | bool | list["Json"] | dict[str, "Json"] | None


class Kind(Enum):
    """Primitive types, by Avro's names."""

    NULL = "null"
    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    BYTES = "bytes"
    STRING = "string"

    def __str__(self) -> str:
        return self.value


class LogicalKind(Enum):
    """Logical types that affect a column, by Avro's names."""

    DECIMAL = "decimal"
    UUID = "uuid"
    DATE = "date"
    TIME_MILLIS = "time-millis"
    TIME_MICROS = "time-micros"
    TIMESTAMP_MILLIS = "timestamp-millis"
    TIMESTAMP_MICROS = "timestamp-micros"
    TIMESTAMP_NANOS = "timestamp-nanos"
    LOCAL_TIMESTAMP_MILLIS = "local-timestamp-millis"
    LOCAL_TIMESTAMP_MICROS = "local-timestamp-micros"
    LOCAL_TIMESTAMP_NANOS = "local-timestamp-nanos"
    DURATION = "duration"

    def __str__(self) -> str:
        return self.value


MILLIS = (LogicalKind.TIMESTAMP_MILLIS, LogicalKind.LOCAL_TIMESTAMP_MILLIS)


@dataclass(frozen=True, slots=True)
class Logical:
    """Logical type. `precision` and `scale` are for decimals."""

    kind: LogicalKind
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        decimal = self.kind is LogicalKind.DECIMAL
        return f"decimal({self.precision},{self.scale})" if decimal else str(self.kind)


@dataclass(frozen=True, slots=True)
class Primitive:
    """Primitive type."""

    kind: Kind
    logical: Logical | None = None

    def __str__(self) -> str:
        return f"{self.kind} ({self.logical})" if self.logical else str(self.kind)


UUID_PATTERN = "([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{32})"
"""A text of the logical type `uuid`: https://www.rfc-editor.org/rfc/rfc4122#section-3.

Apache Avro for Python writes one without hyphens, too.
"""

AS_A_UUID = "such as '123e4567-e89b-12d3-a456-426614174000'"


def is_uuid(kind: Primitive) -> bool:
    """Whether texts of a type are UUIDs."""
    return kind.logical is not None and kind.logical.kind is LogicalKind.UUID


@dataclass(frozen=True, slots=True)
class Reference:
    """Use of a named type, by its full name."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class ArrayType:
    """List of any number of `items`."""

    items: "AvroType"

    def __str__(self) -> str:
        return "array"


@dataclass(frozen=True, slots=True)
class MapType:
    """Map of any number of `values`, with strings as keys."""

    values: "AvroType"

    def __str__(self) -> str:
        return "map"


@dataclass(frozen=True, slots=True)
class UnionType:
    """One of several types. No branch is a union."""

    branches: tuple["AvroType", ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.branches))}]"


@dataclass(frozen=True, slots=True)
class FixedType:
    """Fixed number of bytes."""

    name: str
    size: int
    aliases: tuple[str, ...] = ()
    logical: Logical | None = None

    def __str__(self) -> str:
        logical = f" ({self.logical})" if self.logical else ""
        return f"fixed {self.name} of {self.size} bytes{logical}"


@dataclass(frozen=True, slots=True)
class EnumType:
    """One of several symbols. A reader uses `default` for a symbol that it does not know."""

    name: str
    symbols: tuple[str, ...]
    default: str | None = None
    aliases: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"enum {self.name}"


class _NoDefault(Enum):
    NO_DEFAULT = "none"


NO_DEFAULT = _NoDefault.NO_DEFAULT
"""The default of a field without one. `None` would mean the default null."""


@dataclass(frozen=True, slots=True)
class Field:
    """Field of a record. Its default is in JSON form."""

    name: str
    type: "AvroType"
    default: Json | _NoDefault = field(default=NO_DEFAULT, hash=False)
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordType:
    """Record: fields one after the other."""

    name: str
    fields: tuple[Field, ...]
    aliases: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"record {self.name}"


NamedType: TypeAlias = FixedType | EnumType | RecordType
AvroType: TypeAlias = Primitive | Reference | ArrayType | MapType | UnionType
Definition: TypeAlias = Primitive | ArrayType | MapType | UnionType | NamedType
"""A type itself, not a reference to it."""


@dataclass(frozen=True, slots=True)
class Schema:
    """Type, and all named types that it and its references define."""

    type: AvroType
    named: Mapping[str, NamedType]

    def definition(self, kind: AvroType) -> Definition:
        """Return the type that a reference names, or any other type itself."""
        return self.named[kind.name] if isinstance(kind, Reference) else kind


def is_null(kind: object) -> bool:
    """Whether it is the type null."""
    return isinstance(kind, Primitive) and kind.kind is Kind.NULL
