"""Columns that a message is read into, with the types of Spark's `from_protobuf`.

Every column is nullable. A message without fields has no column, as in Spark.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from spark_kafka_source.values.columns import (
    Column,
    Form,
    Numbering,
    Presence,
    list_of,
    map_of,
    of_children,
)
from spark_kafka_source.values.errors import RecursiveTypeError, SchemaError, quoted
from spark_kafka_source.values.protobuf.program import Node, Op, Row, Table
from spark_kafka_source.values.protobuf.schema import (
    MESSAGES,
    Field,
    Kind,
    Message,
    Schema,
    Wire,
    wire_of,
)
from spark_kafka_source.values.protobuf.well_known import MOMENTS, is_any, is_moment, is_wrapper
from spark_kafka_source.values.selection import Tree, tree_of
from spark_kafka_source.values.typing import ProtobufTyping

MAX_DEPTH = 64
"""The deepest nesting of columns."""
_DEPTH = "value.recursive.fields.max.depth"
_BITS = 62
"""The most fields whose presence is stored in one slot."""

_SCALARS: dict[Kind, tuple[Form, pa.DataType, Op]] = {
    Kind.DOUBLE: (Form.DOUBLE, pa.float64(), Op.FIXED64),
    Kind.FLOAT: (Form.FLOAT, pa.float32(), Op.FLOAT),
    Kind.INT64: (Form.INT64, pa.int64(), Op.VARINT),
    Kind.UINT64: (Form.INT64, pa.int64(), Op.VARINT),
    Kind.INT32: (Form.INT32, pa.int32(), Op.VARINT),
    Kind.FIXED64: (Form.INT64, pa.int64(), Op.FIXED64),
    Kind.FIXED32: (Form.INT32, pa.int32(), Op.FIXED32),
    Kind.BOOL: (Form.BOOLEAN, pa.bool_(), Op.VARINT),
    Kind.STRING: (Form.STRING, pa.string(), Op.BYTES),
    Kind.BYTES: (Form.BINARY, pa.binary(), Op.BYTES),
    Kind.UINT32: (Form.INT32, pa.int32(), Op.VARINT),
    Kind.ENUM: (Form.ENUM, pa.string(), Op.VARINT),
    Kind.SFIXED32: (Form.INT32, pa.int32(), Op.FIXED32),
    Kind.SFIXED64: (Form.INT64, pa.int64(), Op.FIXED64),
    Kind.SINT32: (Form.INT32, pa.int32(), Op.SINT32),
    Kind.SINT64: (Form.INT64, pa.int64(), Op.SINT64),
}
_UPCAST: dict[Kind, tuple[Form, pa.DataType, Op]] = {
    Kind.UINT32: (Form.INT64, pa.int64(), Op.UINT32),
    Kind.UINT64: (Form.UNSIGNED, pa.decimal128(20, 0), Op.VARINT),
}


Show = Callable[[str, bytes], str]
"""Returns the JSON of an `Any`, from its fields. Raises `ValueError` if there is none."""


def table_of(
    schema: Schema,
    message: Message,
    fields: Iterable[str] | None,
    typing: ProtobufTyping,
    show: Show | None = None,
) -> Table:
    """Return the table for all columns of a message, or only for `fields`.

    With `show` each `google.protobuf.Any` is a text. Raises `SchemaError`, and `RecursiveTypeError`
    for a message that contains itself, unless the options allow it.
    """
    return _Columns(schema, typing, show).table(message, tree_of(fields))


@dataclass(slots=True)
class _Node:
    """Node whose rows are still being found."""

    around: int
    """The node around it, or -1."""
    is_entry: bool
    level: int
    path: str
    rows: list[tuple[Row, str]] = field(default_factory=list)
    presence: int = -1
    bits: int = _BITS
    cases: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Place:
    """Place for the values of a field, and the rule for null."""

    path: str
    level: int
    node: int
    presence: Presence | None = None
    zero_is_null: bool = False


class _Columns:
    """Builder of columns, and of the nodes that fill them."""

    def __init__(self, schema: Schema, typing: ProtobufTyping, show: Show | None) -> None:
        self._schema, self._typing, self._show = schema, typing, show
        self._numbering = Numbering()
        self._nodes: list[_Node] = []
        self._closed: list[tuple[int, ...]] = []
        self._constants = bytearray()
        self._within: list[str] = []

    def table(self, message: Message, wanted: Tree) -> Table:
        place = _Place("", 0, self._node(message, "", 0))
        column = self._struct(message, place, wanted)
        rows: list[Row] = []
        nodes: list[Node] = []
        paths: list[str] = []
        lasts = list(range(1, len(self._nodes) + 1))
        for number, node in reversed([*enumerate(self._nodes)][1:]):
            lasts[node.around] = max(lasts[node.around], lasts[number])
        for node, last in zip(self._nodes, lasts, strict=True):
            node.rows.sort(key=lambda each: each[0].number)
            first = len(rows)
            rows += [row for row, _ in node.rows]
            paths += [path for _, path in node.rows]
            nodes.append(Node(first, len(rows), node.level, last, int(node.is_entry)))
        paths += [node.path for node in self._nodes]
        return Table(
            self._numbering.layout(column, bytes(self._constants)),
            tuple(nodes),
            tuple(rows),
            tuple(paths),
            tuple(np.array(sorted(numbers), np.int64) for numbers in self._closed),
        )

    def _struct(self, message: Message, place: _Place, wanted: Tree) -> Column:
        self._numbering.count_column(place.path)
        if len(self._within) >= MAX_DEPTH:
            raise SchemaError(place.path, "columns nested too deeply", f"Nest at most {MAX_DEPTH}")
        if missing := sorted(wanted.keys() - {field.name for field in message.fields}):
            expected = f"It has {', '.join(field.name for field in message.fields[:50])}"
            raise SchemaError(place.path, f"{message} has no field {quoted(missing[0])}", expected)
        self._within.append(message.name)
        found_columns = {
            field.name: column
            for field in message.fields
            if not wanted or field.name in wanted
            if (column := self._field(message, field, place, wanted.get(field.name, {})))
        }
        self._within.pop()
        if left := sorted(wanted.keys() - found_columns.keys()):
            found = (
                f"{quoted(left[0])} has no column, since it has no fields, or none of this depth"
            )
            raise SchemaError(place.path, found, f"Choose others, or set '{_DEPTH}'")
        column = Column(place.path, Form.STRUCT, pa.null(), place.level, -1, place.presence)
        return of_children(column, found_columns)

    def _field(self, message: Message, each: Field, of: _Place, wanted: Tree) -> Column | None:
        path = f"{of.path}.{each.name}" if of.path else each.name
        path = of.path if message.is_entry else path
        if each.repeated:
            return self._repeated(each, path, of, wanted)
        row = _row(of.node, each.number)
        if message.is_entry:
            return self._one(each, row, replace(of, path=path, presence=None), wanted)
        if not each.presence:
            implicit = not self._typing.emit_default_values
            inner = _Place(path, of.level, of.node, None, implicit)
            return self._one(each, row, inner, wanted)
        node = self._nodes[of.node]
        if each.oneof >= 0:
            if each.oneof not in node.cases:
                node.cases[each.oneof] = self._numbering.slot(of.level)
            row = row._replace(case=node.cases[each.oneof])
            presence = Presence(row.case, each.number)
        else:
            if node.bits == _BITS:
                node.presence, node.bits = self._numbering.slot(of.level), 0
            bit = 1 << node.bits
            node.bits += 1
            row = row._replace(presence=node.presence, bit=bit)
            presence = Presence(node.presence, bit, bit)
        return self._one(each, row, _Place(path, of.level, of.node, presence), wanted)

    def _repeated(self, each: Field, path: str, of: _Place, wanted: Tree) -> Column | None:
        inner = self._numbering.level(of.level)
        row = _row(of.node, each.number)._replace(level=inner)
        if each.kind is Kind.MESSAGE and self._schema.messages[each.type_name].is_entry:
            return self._map(each, row, path, of, wanted)
        item = self._one(each, row, _Place(f"{path}[]", inner, of.node), wanted)
        if item is None:
            return None
        return list_of(item, path, of.level)

    def _map(self, each: Field, row: Row, path: str, of: _Place, wanted: Tree) -> Column | None:
        entry = self._schema.messages[each.type_name]
        inner = f"{path}{{}}"
        node = self._node(entry, inner, row.level, of.node)
        place = _Place(inner, row.level, node)
        fields = {field.number: field for field in entry.fields}
        self._numbering.count_column(inner)
        key = self._field(entry, fields[1], place, {})
        value = self._field(entry, fields[2], place, wanted)
        if key is None or value is None:
            return None
        self._keep(row._replace(wire=Wire.SIZED, op=Op.MESSAGE, child=node), path)
        return map_of(key, value, path, of.level)

    def _one(self, each: Field, row: Row, place: _Place, wanted: Tree) -> Column | None:
        """Return the column of one value, or of an item of many."""
        if each.kind not in MESSAGES:
            if wanted:
                found = f"{each.kind} has no field {quoted(next(iter(wanted)))}"
                raise SchemaError(place.path, found, "Fields are those of messages")
            return self._scalar(each, row, place)
        message = self._schema.messages[each.type_name]
        node = self._node(message, place.path, place.level, place.node)
        inner = replace(place, node=node)
        column = None if wanted else self._as_value(message, inner)
        if column is None:
            if self._is_too_deep(message, place.path):
                return None
            column = self._struct(message, inner, wanted)
            if not column.children:
                return None
        wire = wire_of(each.kind)
        self._keep(row._replace(wire=wire, op=Op.MESSAGE, child=node), place.path)
        return column

    def _as_value(self, message: Message, place: _Place) -> Column | None:
        """Return the column of a message that is no struct there, or None."""
        if is_moment(message):
            return self._moment(message, place)
        if self._show is not None and is_any(message):
            return self._shown(message, place, self._show)
        if self._typing.unwrap_primitive_wrapper_types and is_wrapper(message):
            return self._unwrapped(message, place)
        return None

    def _is_too_deep(self, message: Message, path: str) -> bool:
        """Whether a message is within itself as often as the options allow it."""
        count, most = self._within.count(message.name), self._typing.recursive_fields_max_depth
        if count and most <= 0:
            expected = f"Choose fields without it, or set '{_DEPTH}'"
            raise RecursiveTypeError(path, f"{message} holds itself", expected)
        return count > 0 and count >= most

    def _shown(self, message: Message, place: _Place, show: Show) -> Column:
        plain = replace(place, presence=None)
        children = tuple(
            self._scalar(field, _row(place.node, field.number), plain) for field in message.fields
        )
        return Column(
            place.path, Form.SHOWN, pa.string(), place.level, children[0].slot, place.presence,
            children, show=show,
        )  # fmt: skip

    def _moment(self, message: Message, place: _Place) -> Column:
        self._numbering.count_column(place.path)
        slot = self._numbering.slot(place.level, 2)
        for number in (1, 2):
            row = _row(place.node, number)._replace(wire=Wire.VARINT, op=Op.VARINT)
            self._keep(row._replace(slot=slot + number - 1), place.path)
        arrow = MOMENTS[message.name]
        return Column(place.path, Form.MOMENT, arrow, place.level, slot, place.presence)

    def _unwrapped(self, message: Message, place: _Place) -> Column:
        value = message.fields[0]
        row = _row(place.node, value.number)
        return self._scalar(value, row, place)

    def _scalar(self, each: Field, row: Row, place: _Place) -> Column:
        self._numbering.count_column(place.path)
        form, arrow, op = _SCALARS[each.kind]
        if self._typing.upcast_unsigned_ints:
            form, arrow, op = _UPCAST.get(each.kind, (form, arrow, op))
        slot = self._numbering.slot(place.level, 2 if op is Op.BYTES else 1)
        symbols: dict[int, str] = {}
        if each.kind is Kind.ENUM:
            enum = self._schema.enums[each.type_name]
            for name, number in reversed(enum.values):
                symbols[number] = name  # The first of several names.
            if enum.closed:
                row = row._replace(closed=len(self._closed))
                self._closed.append(tuple(symbols))
            if self._typing.enums_as_ints:
                form, arrow = Form.INT32, pa.int32()
        self._keep(row._replace(slot=slot, wire=wire_of(each.kind), op=op), place.path)
        numbers = tuple(sorted(symbols))
        return Column(
            place.path, form, arrow, place.level, slot, place.presence,
            symbols=tuple(symbols[number] for number in numbers), numbers=numbers,
            zero_is_null=place.zero_is_null,
            default=self._default(each) if place.presence and not each.repeated else (),
        )  # fmt: skip

    def _default(self, each: Field) -> tuple[int, ...]:
        if each.default is None:
            return ()
        if isinstance(each.default, int):
            return (each.default,)
        start = len(self._constants)
        self._constants += each.default
        return (start, len(self._constants))

    def _keep(self, row: Row, path: str) -> None:
        self._nodes[row.node].rows.append((row, path))

    def _node(self, message: Message, path: str, level: int, around: int = -1) -> int:
        self._nodes.append(_Node(around, message.is_entry, level, path))
        return len(self._nodes) - 1


def _row(node: int, number: int) -> Row:
    """Return a row with only its node and number."""
    return Row(node, number, Wire.VARINT, Op.SKIP, -1, -1, -1, 0, -1, -1, -1)
