"""Columns that a schema is read into, with the types of Spark's `from_avro`.

Every column is nullable, as Spark wants from a source. `["int", "long"]` is a long, and `["float",
"double"]` a double. Any other union of several types is a struct of `member0`, `member1`, ... .
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

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
from spark_kafka_source.values.columns import (
    OF_BYTES,
    Column,
    Form,
    Layout,
    Numbering,
    Presence,
    list_of,
    map_of,
    of_children,
)
from spark_kafka_source.values.errors import RecursiveTypeError, SchemaError, quoted
from spark_kafka_source.values.selection import Tree, tree_of
from spark_kafka_source.values.typing import AvroTyping

_PLAIN = AvroTyping()

MAX_PRECISION = 38
TIME = pa.time64("ns")
"""The type of Spark's TIME, from 4.1 on. Before, time-micros is a long."""

PRIMITIVES: Mapping[Kind, tuple[Form, pa.DataType]] = {
    Kind.NULL: (Form.NULL, pa.null()),
    Kind.BOOLEAN: (Form.BOOLEAN, pa.bool_()),
    Kind.INT: (Form.INT32, pa.int32()),
    Kind.LONG: (Form.INT64, pa.int64()),
    Kind.FLOAT: (Form.FLOAT, pa.float32()),
    Kind.DOUBLE: (Form.DOUBLE, pa.float64()),
    Kind.BYTES: (Form.BINARY, pa.binary()),
    Kind.STRING: (Form.STRING, pa.string()),
}
"""The column of each primitive type."""
_LOGICAL: Mapping[LogicalKind, pa.DataType] = {
    LogicalKind.DATE: pa.date32(),
    LogicalKind.TIMESTAMP_MILLIS: pa.timestamp("us", "UTC"),
    LogicalKind.TIMESTAMP_MICROS: pa.timestamp("us", "UTC"),
    LogicalKind.LOCAL_TIMESTAMP_MILLIS: pa.timestamp("us"),
    LogicalKind.LOCAL_TIMESTAMP_MICROS: pa.timestamp("us"),
}


@dataclass(frozen=True, slots=True)
class ReaderSchema:
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
    ) -> "ReaderSchema":
        """Return a reader of all columns, or only of `fields`, each a path such as `address.city`.

        time-micros become `time_type`: `TIME`, or a long by default. Raises `SchemaError`, and
        `RecursiveTypeError` for a type that contains itself.
        """
        columns = _Columns(schema, time_type or pa.int64(), typing)
        return cls(schema, columns.layout(tree_of(fields)), typing)

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of the array that rows are decoded into."""
        return self.layout.column.arrow


def members(schema: Schema, union: UnionType) -> tuple[AvroType, ...]:
    """Return the branches that a union is read as, without null. int and long become one long.

    An int or a long with a logical type stays a branch of its own: 5 and a time are not the same.
    """
    kinds = tuple(branch for branch in union.branches if not is_null(branch))
    for wide, narrow in _WIDENED.items():
        if set(kinds) == {wide, narrow}:
            return (wide,)
    return kinds


def member_names(
    schema: Schema, kinds: Sequence[AvroType], typing: AvroTyping, path: str
) -> tuple[str, ...]:
    """Return the names of the members of a union's struct, as Spark names them.

    Raises `SchemaError` if two members have one stable name.
    """
    if not typing.enable_stable_identifiers_for_union_type:
        return tuple(f"member{place}" for place in range(len(kinds)))
    prefix = typing.stable_identifier_prefix_for_union_type
    names = [prefix + _type_name(schema.definition(kind)) for kind in kinds]
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


class _Columns:
    """Builder of columns."""

    def __init__(self, schema: Schema, time_type: pa.DataType, typing: AvroTyping) -> None:
        self._numbering = Numbering()
        self._schema = schema
        self._time_type = time_type
        self._typing = typing
        self._within: list[str] = []

    def layout(self, wanted: Tree) -> Layout:
        """Return the layout of the whole schema."""
        column = self.column(self._schema.type, "", 0, None, wanted)
        assert column is not None  # noqa: S101  # Only a type within itself has no column.
        return self._numbering.layout(column)

    def column(
        self, kind: AvroType, path: str, level: int, presence: Presence | None, wanted: Tree
    ) -> Column | None:
        """Return the column of a type, or None beyond the depth of a type within itself."""
        self._numbering.count_column(path)
        match self._schema.definition(kind):
            case UnionType() as union:
                return self._union(union, path, level, wanted)
            case RecordType() as record:
                return self._record(record, path, level, presence, wanted)
            case ArrayType(items):
                item = self.column(items, f"{path}[]", self._numbering.level(level), None, wanted)
                return item and list_of(item, path, level, presence)
            case MapType(values):
                inner = self._numbering.level(level)
                key = self._leaf(f"{path}{{}}", Form.STRING, pa.string(), inner, None)
                value = self.column(values, f"{path}{{}}", inner, None, wanted)
                return value and map_of(key, value, path, level, presence)
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
            slot = self._numbering.slot(level)
            arrow = pa.string()
            return Column(path, Form.SYMBOL, arrow, level, slot, presence, symbols=kind.symbols)
        primitive = Kind.BYTES if isinstance(kind, FixedType) else kind.kind
        form, arrow = PRIMITIVES[primitive]
        if kind.logical:
            form, arrow = self._logical(kind.logical, path, form, arrow)
        return self._leaf(path, form, arrow, level, presence)

    def _logical(
        self, logical: Logical, path: str, form: Form, arrow: pa.DataType
    ) -> tuple[Form, pa.DataType]:
        if logical.kind is LogicalKind.DECIMAL:
            if logical.precision > MAX_PRECISION:
                expected = (
                    f"Spark has decimals of up to {MAX_PRECISION} digits. Give a 'value.schema'"
                    f" with precision {MAX_PRECISION} there, where a larger number is a bad record,"
                    " or with no logicalType, for its bytes; or leave the field out by"
                    " 'value.fields'"
                )
                raise SchemaError(path, f"{logical} has {logical.precision}", expected)
            return Form.DECIMAL, pa.decimal128(logical.precision, logical.scale)
        if logical.kind is LogicalKind.TIME_MICROS:
            return form, self._time_type
        return form, _LOGICAL.get(logical.kind, arrow)

    def _leaf(
        self, path: str, form: Form, arrow: pa.DataType, level: int, presence: Presence | None
    ) -> Column:
        count = 2 if form in OF_BYTES else 1
        slot = -1 if form is Form.NULL else self._numbering.slot(level, count)
        return Column(path, form, arrow, level, slot, presence)

    def _union(self, union: UnionType, path: str, level: int, wanted: Tree) -> Column | None:
        kinds = members(self._schema, union)
        if not kinds:
            return Column(path, Form.NULL, pa.null(), level)
        if len(kinds) == 1:
            nullable = any(map(is_null, union.branches))
            presence = Presence(self._numbering.slot(level), 1) if nullable else None
            return self.column(kinds[0], path, level, presence, wanted)
        slot = self._numbering.slot(level)
        names = member_names(self._schema, kinds, self._typing, path)
        children = {
            name: self.column(each, f"{path}.{name}", level, Presence(slot, place + 1), {})
            for place, (name, each) in enumerate(zip(names, kinds, strict=True))
        }
        return of_children(Column(path, Form.CHOICE, pa.null(), level, slot), children)

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
        return of_children(Column(path, Form.STRUCT, pa.null(), level, -1, presence), fields)
