"""Plan to write a column as Avro: the column's type and the schema, compared once.

Types fit as in Spark's `to_avro`, and where a type widens without loss. A whole number fits each
logical type on a number: it is the value in the schema's own unit.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from spark_kafka_source.records.plain_types import plain
from spark_kafka_source.values.avro.schema import (
    ArrayType,
    AvroType,
    Definition,
    EnumType,
    FixedType,
    LogicalKind,
    MapType,
    Primitive,
    RecordType,
    Schema,
    UnionType,
    is_null,
)
from spark_kafka_source.values.avro.shape import MAX_PRECISION, PRIMITIVES, member_names, members
from spark_kafka_source.values.fitting import below, missing_field, places, unfit, widens
from spark_kafka_source.values.typing import AvroTyping

_AS_SPARK = AvroTyping()

Plain: TypeAlias = Primitive | EnumType | FixedType


@dataclass(frozen=True, slots=True)
class Leaf:
    """Values without parts. They are encoded from columns of the type `arrow`."""

    path: str
    kind: Plain
    arrow: pa.DataType


@dataclass(frozen=True, slots=True)
class Record:
    """Fields in the schema's order, each with its place in the column's struct."""

    path: str
    kind: RecordType
    fields: tuple[tuple[int, "Node"], ...]


@dataclass(frozen=True, slots=True)
class Items:
    """Items of lists, or entries of maps."""

    path: str
    kind: ArrayType | MapType
    item: "Node"


@dataclass(frozen=True, slots=True)
class Branch:
    """Branch of a union, by its number there. `place` is that of its member in a struct."""

    number: int
    place: int
    node: "Node"


@dataclass(frozen=True, slots=True)
class Choice:
    """Union. If `is_struct` is false, the column's values are those of the only branch."""

    path: str
    kind: UnionType
    null: int | None
    """The number of the branch null."""
    branches: tuple[Branch, ...]
    is_struct: bool


@dataclass(frozen=True, slots=True)
class Absent:
    """Field that the column lacks, or that has no type but null."""

    path: str
    kind: AvroType
    null: int | None
    """The number of the branch null, or None outside of a union."""


Node: TypeAlias = Leaf | Record | Items | Choice | Absent

ABSENT_PLACE = -1
"""The place of a field that the column lacks."""


def fit(
    schema: Schema,
    given: pa.DataType,
    ignored: Collection[str] = (),
    typing: AvroTyping = _AS_SPARK,
) -> Node:
    """Return the plan to write columns of the type `given`.

    `ignored` are the paths of fields that may be left out. Raises `UnfitColumnError`.
    """
    return _Fit(schema, ignored, typing).node(schema.type, plain(given), "")


class _Fit:
    def __init__(self, schema: Schema, ignored: Collection[str], typing: AvroTyping) -> None:
        self._schema, self._ignored, self._typing = schema, ignored, typing

    def node(self, kind: AvroType, given: pa.DataType, path: str) -> Node:
        definition = self._schema.definition(kind)
        if pa.types.is_null(given):
            return self._absent(kind, path)
        plan = self._fitting(definition, given, path)
        return plan or unfit(path, given, _named(definition), _advice(definition, given))

    def _fitting(self, definition: Definition, given: pa.DataType, path: str) -> Node | None:
        """Return the plan for a type that may fit, or None if it is of another kind."""
        match definition:
            case UnionType():
                return self._union(definition, given, path)
            case RecordType() if pa.types.is_struct(given):
                return self._record(definition, given, path)
            case ArrayType(items) if pa.types.is_list(given):
                item = self._item(items, given.value_type, f"{path}[]")
                return Items(path, definition, item)
            case MapType(values) if pa.types.is_map(given):
                if not pa.types.is_string(given.key_type):
                    unfit(f"{path}{{}}", given.key_type, "strings as the keys of maps")
                item = self._item(values, given.item_type, f"{path}{{}}")
                return Items(path, definition, item)
            case Primitive() | EnumType() | FixedType():
                for arrow in _encoded_from(definition):
                    if widens(given, arrow):
                        return Leaf(path, definition, arrow)
        return None

    def _item(self, kind: AvroType, given: pa.DataType, path: str) -> Node:
        """Return the plan of items. A list of the type null may be empty, whatever the schema."""
        if pa.types.is_null(given):
            return Absent(path, kind, self._null(kind))
        return self.node(kind, given, path)

    def _absent(self, kind: AvroType, path: str) -> Node:
        null = self._null(kind)
        if null is None and not is_null(kind):
            missing_field(path, _named(self._schema.definition(kind)))
        return Absent(path, kind, null)

    def _null(self, kind: AvroType) -> int | None:
        branches = kind.branches if isinstance(kind, UnionType) else ()
        return next((number for number, each in enumerate(branches) if is_null(each)), None)

    def _record(self, record: RecordType, given: pa.StructType, path: str) -> Record:
        names = [each.name for each in record.fields]
        place_of = places([each.name for each in given], names, path, self._ignored)
        fields: list[tuple[int, Node]] = []
        for field in record.fields:
            inner = below(path, field.name)
            if field.name in place_of:
                place = place_of[field.name]
                fields.append((place, self.node(field.type, given[place].type, inner)))
            else:
                fields.append((ABSENT_PLACE, self._absent(field.type, inner)))
        return Record(path, record, tuple(fields))

    def _union(self, union: UnionType, given: pa.DataType, path: str) -> Choice:
        branches_read, null = members(self._schema, union), self._null(union)
        if len(branches_read) == 1:
            number = union.branches.index(branches_read[0])
            branch = Branch(number, ABSENT_PLACE, self.node(branches_read[0], given, path))
            return Choice(path, union, null, (branch,), is_struct=False)
        names = member_names(self._schema, branches_read, self._typing, path)
        if not pa.types.is_struct(given) or not branches_read:
            listed = ", ".join(f"{n}: {kind}" for n, kind in zip(names, branches_read, strict=True))
            unfit(path, given, union, f"Give a struct of {listed}" if branches_read else "")
        there = places([field.name for field in given], names, path, self._ignored)
        branches = tuple(
            Branch(
                union.branches.index(kind),
                there[name],
                self.node(kind, given[there[name]].type, below(path, name)),
            )
            for name, kind in zip(names, branches_read, strict=True)
            if name in there and not pa.types.is_null(given[there[name]].type)
        )
        return Choice(path, union, null, branches, is_struct=True)


def _encoded_from(kind: Plain) -> tuple[pa.DataType, ...]:
    """Return the types of columns that are encoded as this type."""
    if isinstance(kind, EnumType):
        return (pa.string(),)
    logical = kind.logical
    if logical and logical.kind is LogicalKind.DECIMAL:
        is_known = logical.precision <= MAX_PRECISION
        return (pa.decimal128(logical.precision, logical.scale),) if is_known else ()
    if isinstance(kind, FixedType):
        return (pa.binary(),)
    of_logical = (TIMES[logical.kind],) if logical and logical.kind in TIMES else ()
    return (*of_logical, PRIMITIVES[kind.kind][1])


TIMES: dict[LogicalKind, pa.DataType] = {
    LogicalKind.DATE: pa.date32(),
    LogicalKind.TIME_MILLIS: pa.time32("ms"),
    LogicalKind.TIME_MICROS: pa.time64("us"),
    LogicalKind.TIMESTAMP_MILLIS: pa.timestamp("us", "UTC"),
    LogicalKind.TIMESTAMP_MICROS: pa.timestamp("us", "UTC"),
    LogicalKind.TIMESTAMP_NANOS: pa.timestamp("ns", "UTC"),
    LogicalKind.LOCAL_TIMESTAMP_MILLIS: pa.timestamp("us"),
    LogicalKind.LOCAL_TIMESTAMP_MICROS: pa.timestamp("us"),
    LogicalKind.LOCAL_TIMESTAMP_NANOS: pa.timestamp("ns"),
}


def _named(kind: Any) -> str:
    return "an array" if isinstance(kind, ArrayType) else str(kind)


def _advice(kind: Any, given: pa.DataType) -> str:
    """Return what to give in place of a timestamp that has a time zone, or none, by mistake."""
    logical = getattr(kind, "logical", None)
    wanted = TIMES.get(logical.kind) if logical else None
    if wanted is None or not pa.types.is_timestamp(wanted) or not pa.types.is_timestamp(given):
        return ""
    return "Give timestamps with a time zone" if wanted.tz else "Give timestamps without time zone"
