"""Columns that a schema is read into, with the types of Spark's `from_avro`.

Every column is nullable, as Spark wants from a source. `["int", "long"]` is a long, and `["float",
"double"]` a double. Any other union of several types is a struct of `member0`, `member1`, ... .
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from spark_kafka_source.values.avro.schema import (
    ArrayType,
    AvroType,
    Definition,
    EnumType,
    FixedType,
    Kind,
    Logical,
    LogicalKind,
    MapType,
    Primitive,
    RecordType,
    Schema,
    UnionType,
    is_null,
)
from spark_kafka_source.values.columns import OF_BYTES, Column, Form, Layout, Presence
from spark_kafka_source.values.errors import RecursiveTypeError, SchemaError, quoted
from spark_kafka_source.values.selection import MAX_COLUMNS, Tree, tree_of
from spark_kafka_source.values.typing import AvroTyping

_PLAIN = AvroTyping()

MAX_PRECISION = 38
TIME = pa.time64("ns")
"""The type of Spark's TIME, from 4.1 on. Before, time-micros is a long."""

_PRIMITIVES: Mapping[Kind, tuple[Form, pa.DataType]] = {
    Kind.NULL: (Form.NULL, pa.null()),
    Kind.BOOLEAN: (Form.BOOLEAN, pa.bool_()),
    Kind.INT: (Form.INT32, pa.int32()),
    Kind.LONG: (Form.INT64, pa.int64()),
    Kind.FLOAT: (Form.FLOAT, pa.float32()),
    Kind.DOUBLE: (Form.DOUBLE, pa.float64()),
    Kind.BYTES: (Form.BINARY, pa.binary()),
    Kind.STRING: (Form.STRING, pa.string()),
}
_LOGICAL: Mapping[LogicalKind, pa.DataType] = {
    LogicalKind.DATE: pa.date32(),
    LogicalKind.TIMESTAMP_MILLIS: pa.timestamp("us", "UTC"),
    LogicalKind.TIMESTAMP_MICROS: pa.timestamp("us", "UTC"),
    LogicalKind.LOCAL_TIMESTAMP_MILLIS: pa.timestamp("us"),
    LogicalKind.LOCAL_TIMESTAMP_MICROS: pa.timestamp("us"),
}


@dataclass(frozen=True, slots=True)
class Reader:
    """Schema to read with, and its columns."""

    schema: Schema
    layout: Layout
    typing: AvroTyping = _PLAIN

    @classmethod
    def of(
        cls,
        schema: Schema,
        fields: Iterable[str] | None = None,
        time_type: pa.DataType | None = None,
        typing: AvroTyping = _PLAIN,
    ) -> "Reader":
        """Return a reader of all columns, or only of `fields`, each a path such as `address.city`.

        time-micros become `time_type`: `TIME`, or a long by default. Raises `SchemaError`, and
        `RecursiveTypeError` for a type that contains itself.
        """
        shape = _Shape(schema, time_type or pa.int64(), typing)
        column = shape.whole(tree_of(fields))
        layout = Layout(column, tuple(shape.slot_levels), tuple(shape.levels_above))
        return cls(schema, layout, typing)

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of the array that rows are decoded into."""
        return self.layout.column.arrow


def members(schema: Schema, union: UnionType) -> tuple[AvroType, ...]:
    """Return the branches that a union is read as, without null. int and long become one long.

    An int or a long with a logical type stays a branch of its own: 5 and a time are not the same.
    """
    found = tuple(branch for branch in union.branches if not is_null(branch))
    for wide, narrow in _WIDENED.items():
        if set(found) == {wide, narrow}:
            return (wide,)
    return found


def member_names(
    schema: Schema, found: Sequence[AvroType], typing: AvroTyping, path: str
) -> tuple[str, ...]:
    """Return the names of the members of a union's struct, as Spark names them.

    Raises `SchemaError` if two members have one stable name.
    """
    if not typing.enable_stable_identifiers_for_union_type:
        return tuple(f"member{place}" for place in range(len(found)))
    prefix = typing.stable_identifier_prefix_for_union_type
    names = [prefix + _type_name(schema.definition(kind)) for kind in found]
    lowered = [name.lower() for name in names]
    if twice := [name for name in names if lowered.count(name.lower()) > 1]:
        expected = "Leave 'value.enableStableIdentifiersForUnionType' out"
        raise SchemaError(path, f"two members of a union would be {quoted(twice[0])}", expected)
    return tuple(names)


def _type_name(kind: Definition) -> str:
    if isinstance(kind, Primitive):
        return str(kind.kind)
    if isinstance(kind, ArrayType | MapType):
        return str(kind)
    return "" if isinstance(kind, UnionType) else kind.name.rpartition(".")[2]


_WIDENED = {
    Primitive(Kind.LONG): Primitive(Kind.INT),
    Primitive(Kind.DOUBLE): Primitive(Kind.FLOAT),
}


class _Shape:
    """Builder of columns, which assigns slots and levels."""

    def __init__(self, schema: Schema, time_type: pa.DataType, typing: AvroTyping) -> None:
        self.slot_levels: list[int] = []
        self.levels_above = [-1]
        self._schema = schema
        self._time_type = time_type
        self._typing = typing
        self._within: list[str] = []
        self._columns = 0

    def whole(self, wanted: Tree) -> Column:
        """Return the column of the whole schema."""
        column = self.column(self._schema.type, "", 0, None, wanted)
        assert column is not None  # noqa: S101  # Only a type within itself has no column.
        return column

    def column(
        self, kind: AvroType, path: str, level: int, presence: Presence | None, wanted: Tree
    ) -> Column | None:
        """Return the column of a type, or None beyond the depth of a type within itself."""
        self._columns += 1
        if self._columns > MAX_COLUMNS:
            found = f"more than {MAX_COLUMNS} columns"
            raise SchemaError(path, found, "Choose the fields that are wanted")
        match self._schema.definition(kind):
            case UnionType() as union:
                return self._union(union, path, level, wanted)
            case RecordType() as record:
                return self._record(record, path, level, presence, wanted)
            case ArrayType(items):
                item = self.column(items, f"{path}[]", self._level(level), None, wanted)
                return item and _list_of(item, path, level, presence)
            case MapType(values):
                inner = self._level(level)
                key = self._leaf(f"{path}{{}}", Form.STRING, pa.string(), inner, None)
                value = self.column(values, f"{path}{{}}", inner, None, wanted)
                return value and _map_of(key, value, path, level, presence)
            case leaf:
                if wanted:
                    found = f"{leaf} has no field {quoted(next(iter(wanted)))}"
                    raise SchemaError(path, found, "Fields are those of records")
                return self._plain(leaf, path, level, presence)

    def _plain(
        self,
        kind: Primitive | FixedType | EnumType,
        path: str,
        level: int,
        presence: Presence | None,
    ) -> Column:
        if isinstance(kind, EnumType):
            slot = self._slot(level)
            arrow = pa.string()
            return Column(path, Form.SYMBOL, arrow, level, slot, presence, symbols=kind.symbols)
        primitive = Kind.BYTES if isinstance(kind, FixedType) else kind.kind
        form, arrow = _PRIMITIVES[primitive]
        if kind.logical:
            form, arrow = self._logical(kind.logical, path, form, arrow)
        return self._leaf(path, form, arrow, level, presence)

    def _logical(
        self, logical: Logical, path: str, form: Form, arrow: pa.DataType
    ) -> tuple[Form, pa.DataType]:
        if logical.kind is LogicalKind.DECIMAL:
            if logical.precision > MAX_PRECISION:
                expected = f"Spark has decimals of up to {MAX_PRECISION} digits"
                raise SchemaError(path, f"{logical} has {logical.precision}", expected)
            return Form.DECIMAL, pa.decimal128(logical.precision, logical.scale)
        if logical.kind is LogicalKind.TIME_MICROS:
            return form, self._time_type
        return form, _LOGICAL.get(logical.kind, arrow)

    def _leaf(
        self, path: str, form: Form, arrow: pa.DataType, level: int, presence: Presence | None
    ) -> Column:
        slot = -1 if form is Form.NULL else self._slot(level)
        if form in OF_BYTES:
            self._slot(level)
        return Column(path, form, arrow, level, slot, presence)

    def _union(self, union: UnionType, path: str, level: int, wanted: Tree) -> Column | None:
        found = members(self._schema, union)
        if not found:
            return Column(path, Form.NULL, pa.null(), level)
        if len(found) == 1:
            nullable = any(map(is_null, union.branches))
            presence = Presence(self._slot(level), 1) if nullable else None
            return self.column(found[0], path, level, presence, wanted)
        slot = self._slot(level)
        names = member_names(self._schema, found, self._typing, path)
        children = {
            name: self.column(each, f"{path}.{name}", level, Presence(slot, place + 1), {})
            for place, (name, each) in enumerate(zip(names, found, strict=True))
        }
        return _of_children(Column(path, Form.CHOICE, pa.null(), level, slot), children)

    def _record(
        self, record: RecordType, path: str, level: int, presence: Presence | None, wanted: Tree
    ) -> Column | None:
        depth, most = self._within.count(record.name), self._typing.recursive_field_max_depth
        if depth and most <= 0:
            expected = "Choose fields without it, or give 'value.recursiveFieldMaxDepth'"
            raise RecursiveTypeError(path, f"{record} holds itself", expected)
        if depth and depth >= most:
            return None
        names = tuple(f.name for f in record.fields if not wanted or f.name in wanted)
        if missing := sorted(wanted.keys() - set(names)):
            expected = f"It has {', '.join(f.name for f in record.fields)}"
            raise SchemaError(path, f"{record} has no field {quoted(missing[0])}", expected)
        self._within.append(record.name)
        fields = {
            field.name: self.column(
                field.type,
                f"{path}.{field.name}" if path else field.name,
                level,
                None,
                wanted.get(field.name, {}),
            )
            for field in record.fields
            if field.name in names
        }
        self._within.pop()
        return _of_children(Column(path, Form.STRUCT, pa.null(), level, -1, presence), fields)

    def _slot(self, level: int) -> int:
        self.slot_levels.append(level)
        return len(self.slot_levels) - 1

    def _level(self, above: int) -> int:
        self.levels_above.append(above)
        return len(self.levels_above) - 1


def _of_children(column: Column, found: Mapping[str, Column | None]) -> Column:
    """Return a struct's column with its children. A child without a column is left out."""
    children = {name: child for name, child in found.items() if child is not None}
    arrow = pa.struct([(name, child.arrow) for name, child in children.items()])
    return replace(column, arrow=arrow, children=tuple(children.values()), names=tuple(children))


def _list_of(item: Column, path: str, level: int, presence: Presence | None) -> Column:
    arrow = pa.list_(pa.field("element", item.arrow))
    return Column(path, Form.LIST, arrow, level, -1, presence, (item,))


def _map_of(key: Column, value: Column, path: str, level: int, presence: Presence | None) -> Column:
    arrow = pa.map_(pa.string(), value.arrow)
    return Column(path, Form.MAP, arrow, level, -1, presence, (key, value))
