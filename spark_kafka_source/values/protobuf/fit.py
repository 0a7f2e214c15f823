"""Plan of writing: the type of a column compared with a message, field by field, before any row.

Accepted for a field is each type that the source can read it into, under any of its options, and
each type that widens to one of these without loss. Spark's `to_protobuf` compares in the same way.
"""

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa

from spark_kafka_source.values.fitting import below, missing_field, places, unfit, widens
from spark_kafka_source.values.protobuf.program import MAX_NESTING
from spark_kafka_source.values.protobuf.schema import MESSAGES, Enum, Field, Kind, Message, Schema
from spark_kafka_source.values.protobuf.well_known import DURATION, is_moment, is_wrapper

UNSIGNED = pa.decimal128(20, 0)
"""The type that has all numbers of 64 bits without a sign."""

_WANTED: dict[Kind, tuple[pa.DataType, ...]] = {
    Kind.INT32: (pa.int32(),),
    Kind.SINT32: (pa.int32(),),
    Kind.SFIXED32: (pa.int32(),),
    Kind.INT64: (pa.int64(),),
    Kind.SINT64: (pa.int64(),),
    Kind.SFIXED64: (pa.int64(),),
    # Unsigned numbers are read as signed ones with the same bits, or by `upcast.unsigned.ints`.
    Kind.UINT32: (pa.int32(), pa.int64()),
    Kind.FIXED32: (pa.int32(), pa.int64()),
    Kind.UINT64: (pa.int64(), pa.uint64(), UNSIGNED),
    Kind.FIXED64: (pa.int64(), pa.uint64(), UNSIGNED),
    Kind.BOOL: (pa.bool_(),),
    Kind.FLOAT: (pa.float32(),),
    Kind.DOUBLE: (pa.float64(),),
    Kind.STRING: (pa.string(),),
    Kind.BYTES: (pa.binary(),),
    Kind.ENUM: (pa.string(), pa.int32()),
}
"""The types that an encoder takes. The first one that a column widens to is taken."""

_MOST_NAMES, _MOST_SHOWN = 20, 100


@dataclass(frozen=True, slots=True)
class Scalar:
    """Value that is no message. The encoder takes it as a column of the type `arrow`."""

    path: str
    kind: Kind
    arrow: pa.DataType
    enum: Enum | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """`Timestamp` or `Duration`, given as a time of Arrow."""

    path: str
    message: Message


@dataclass(frozen=True, slots=True)
class Wrapped:
    """Wrapper such as `Int32Value`, given as its value."""

    value: "Part"


@dataclass(frozen=True, slots=True)
class Struct:
    """Message, given as a struct. The parts are in the order of their numbers."""

    path: str
    message: Message
    parts: tuple["Part", ...]
    oneofs: tuple[tuple["Part", ...], ...]
    """The members of each oneof of which several are given."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Entry of a map."""

    key: "Part"
    value: "Part"


@dataclass(frozen=True, slots=True)
class Nothing:
    """Item, or value of a map, of Arrow's null type: there must be none."""

    path: str


Node = Scalar | Moment | Wrapped | Struct | Entry | Nothing


@dataclass(frozen=True, slots=True)
class Part:
    """Field of a message, and its place in the given struct. The node is of one value."""

    field: Field
    place: int
    path: str
    node: Node


def fit(
    schema: Schema, message: Message, kind: pa.DataType, ignored: Collection[str] = ()
) -> Struct | Nothing:
    """Return how a column of the plain type `kind` is written as a message.

    `ignored` are paths of fields that are left out if the message does not have them. Raises
    `UnfitColumnError` with the path of a type that does not fit.
    """
    if pa.types.is_null(kind):
        return Nothing("")
    if not pa.types.is_struct(kind):
        unfit("", kind, message, f"Give {how_given(message)}")
    return _Fit(schema, ignored).struct(message, kind, "", 1)


def described(schema: Schema, field: Field) -> str:
    """Return the type of a field, as an error names it."""
    if not field.repeated:
        return ("required " if field.required else "") + described_value(field)
    if field.kind in MESSAGES and schema.messages[field.type_name].is_entry:
        key, value = schema.messages[field.type_name].fields
        return f"map<{described_value(key)}, {described_value(value)}>"
    return f"repeated {described_value(field)}"


def described_value(field: Field) -> str:
    """Return the type of one value of a field."""
    if field.kind in MESSAGES:
        return field.type_name
    return f"enum {field.type_name}" if field.kind is Kind.ENUM else str(field.kind)


class _Fit:
    def __init__(self, schema: Schema, ignored: Collection[str]) -> None:
        self._schema, self._ignored = schema, ignored

    def struct(self, message: Message, kind: pa.DataType, path: str, depth: int) -> Struct:
        names = [each.name for each in kind]
        place_of = places(names, {each.name: each for each in message.fields}, path, self._ignored)
        parts = []
        for field in sorted(message.fields, key=lambda each: each.number):
            inner, place = below(path, field.name), place_of.get(field.name)
            if place is None or pa.types.is_null(kind[place].type):
                if field.required:
                    missing_field(inner, described(self._schema, field))
                continue
            node = self._node(field, kind[place].type, inner, depth)
            parts.append(Part(field, place, inner, node))
        return Struct(path, message, tuple(parts), _oneofs(parts))

    def _node(self, field: Field, kind: pa.DataType, path: str, depth: int) -> Node:
        """Return the node of a field's value, of its items, or of its entries."""
        if not field.repeated:
            return self._value(field, kind, path, depth)
        is_map = field.kind in MESSAGES and self._schema.messages[field.type_name].is_entry
        if not (pa.types.is_map(kind) if is_map else pa.types.is_list(kind)):
            unfit(path, kind, described(self._schema, field))
        if is_map:
            return self._entry(field, kind, f"{path}{{}}", depth + 1)
        return self._value(field, kind.value_type, f"{path}[]", depth)

    def _entry(self, field: Field, kind: pa.DataType, path: str, depth: int) -> Entry:
        _check_depth(path, depth)
        fields = {each.number: each for each in self._schema.messages[field.type_name].fields}
        key = self._value(fields[1], kind.key_type, path, depth)
        value = self._value(fields[2], kind.item_type, path, depth)
        return Entry(Part(fields[1], 0, path, key), Part(fields[2], 1, path, value))

    def _value(self, field: Field, kind: pa.DataType, path: str, depth: int) -> Node:
        if pa.types.is_null(kind):
            return Nothing(path)
        if field.kind in MESSAGES:
            return self._message(field, kind, path, depth + 1)
        taken = _taken(field, kind)
        if taken is None:
            unfit(path, kind, described_value(field))
        return Scalar(path, field.kind, taken, self._schema.enums.get(field.type_name))

    def _message(self, field: Field, kind: pa.DataType, path: str, depth: int) -> Node:
        _check_depth(path, depth)
        message = self._schema.messages[field.type_name]
        if pa.types.is_struct(kind):
            return self.struct(message, kind, path, depth)
        if is_moment(message) and _is_moment_of(kind, message):
            return Moment(path, message)
        if not is_wrapper(message) or not _taken(message.fields[0], kind):
            unfit(path, kind, described_value(field), f"Give {how_given(message)}")
        (value,) = message.fields
        return Wrapped(Part(value, 0, path, self._value(value, kind, path, depth)))


def _taken(field: Field, kind: pa.DataType) -> pa.DataType | None:
    """Return the type in which the encoder takes a column for a field that is no message."""
    return next((each for each in _WANTED[field.kind] if widens(kind, each)), None)


def how_given(message: Message) -> str:
    """Return what a column, or a value, for this message is."""
    if is_moment(message) and message.name == DURATION:
        return "a duration, or a struct of seconds and nanos"
    if is_moment(message):
        return "a timestamp with a time zone, or a struct of seconds and nanos"
    if is_wrapper(message):
        return f"{message.fields[0].kind}, or a struct of {message.fields[0].name}"
    names = ", ".join(field.name for field in message.fields[:_MOST_NAMES])
    return f"a struct of {names}" if names else "a struct without fields"


def _check_depth(path: str, depth: int) -> None:
    if depth > MAX_NESTING:
        unfit(
            path[:_MOST_SHOWN],
            "it is nested too deeply",
            f"at most {MAX_NESTING} messages within each other",
        )


def _is_moment_of(kind: pa.DataType, message: Message) -> bool:
    if message.name == DURATION:
        return bool(pa.types.is_duration(kind))
    return bool(pa.types.is_timestamp(kind) and kind.tz is not None)


def _oneofs(parts: list[Part]) -> tuple[tuple[Part, ...], ...]:
    members: dict[int, list[Part]] = {}
    for part in parts:
        if part.field.oneof >= 0:
            members.setdefault(part.field.oneof, []).append(part)
    return tuple(tuple(several) for several in members.values() if len(several) > 1)
