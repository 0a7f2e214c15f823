"""Arrow to Avro, a column at a time: each type makes a column of bytes, and Arrow joins them.

What is null, or one branch of several, is encoded without the others and spread over the rows.
"""

from collections.abc import Callable
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source.records import ColumnTypeError, UnencodableRowError
from spark_kafka_source.records.varints import Integers
from spark_kafka_source.values.avro.reader import TIME, Reader, members
from spark_kafka_source.values.avro.schema import (
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    Kind,
    LogicalKind,
    MapType,
    Primitive,
    RecordType,
    Schema,
    UnionType,
    is_null,
)
from spark_kafka_source.values.bytes_columns import (
    fixed_width,
    integers,
    joined,
    numbers,
    owners,
    put_together,
    spread,
    valid,
)
from spark_kafka_source.values.columns import Column, Form
from spark_kafka_source.values.decimals import minimal_bytes

_MILLIS = (LogicalKind.TIMESTAMP_MILLIS, LogicalKind.LOCAL_TIMESTAMP_MILLIS)
_THOUSAND = 1000


def encode(reader: Reader, array: pa.Array, prefix: bytes = b"") -> pa.BinaryArray:
    """Encode each row as the schema of `reader` says, `prefix` before it.

    `array` is of `reader.arrow_type`, or of a type that casts to it; microseconds are cut where the
    schema has milliseconds, as Spark's `to_avro` does. Raises `ColumnTypeError` for any other type,
    and `UnencodableRowError` for rows that the schema has no place for: null where nothing may be,
    a symbol or a size that it does not have.
    """
    if array.type != reader.arrow_type:
        try:
            array = array.cast(reader.arrow_type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            expected = f"{reader.arrow_type}, as the schema is: {error}"
            raise ColumnTypeError("value", array.type, expected) from error
    if not len(array):
        return pa.array([], pa.binary())
    encoder = _Encoder(reader.schema)
    rows = np.arange(len(array))
    encoded = encoder.encode(reader.schema.type, reader.layout.column, array, rows)
    return joined(len(array), prefix, encoded) if prefix else encoded


class _Encoder:
    """Goes down the types, the columns and the arrays; `rows` says of which row an element is."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def encode(
        self, kind: AvroType, column: Column, array: pa.Array, rows: Integers
    ) -> pa.BinaryArray:
        if not len(array):
            return pa.array([], pa.binary())
        definition = self._schema.definition(kind)
        if isinstance(definition, UnionType):
            return self._union(definition, column, array, rows)
        if array.null_count and not is_null(definition):
            null = array.is_null().to_numpy(zero_copy_only=False)
            _refuse(column, rows[null], f"null, where the schema has {kind} and no null")
        if isinstance(definition, RecordType):
            return self._record(definition, column, array, rows)
        if isinstance(definition, ArrayType):
            of = owners(array, rows)
            items = self.encode(definition.items, column.children[0], array.flatten(), of)
            return _blocks(array, items)
        if isinstance(definition, MapType):
            return self._map(definition.values, column, array, rows)
        return _plain(definition, column, array, rows)

    def _record(
        self, record: RecordType, column: Column, array: pa.Array, rows: Integers
    ) -> pa.BinaryArray:
        parts = [
            self.encode(field.type, child, array.field(place), rows)
            for place, (field, child) in enumerate(zip(record.fields, column.children, strict=True))
        ]
        return joined(len(array), *parts)

    def _map(
        self, values: AvroType, column: Column, array: pa.Array, rows: Integers
    ) -> pa.BinaryArray:
        first, stop = array.offsets[0].as_py(), array.offsets[-1].as_py()
        keys = array.keys.slice(first, stop - first)
        items = array.items.slice(first, stop - first)
        found = self.encode(values, column.children[1], items, owners(array, rows))
        return _blocks(array, joined(len(keys), _sized(keys), found) if len(keys) else found)

    def _union(
        self, union: UnionType, column: Column, array: pa.Array, rows: Integers
    ) -> pa.BinaryArray:
        """The number of the branch, and what it has; of all branches one has something."""
        found = members(self._schema, union)
        choice = column.form is Form.CHOICE
        left = np.ones(len(array), np.bool_)
        index = np.zeros(len(array), np.int64)
        parts = []
        for place, kind in enumerate(found):
            values = array.field(place) if choice else array
            there = valid(values) & valid(array)
            if not left[there].all():
                _refuse(column, rows[there & ~left], f"several members, where {union} has one")
            left &= ~there
            index[there] = union.branches.index(kind)
            child = column.children[place] if choice else column
            some = values.filter(pa.array(there))
            parts.append(spread(self.encode(kind, child, some, rows[there]), there))
        if left.any():
            null = [place for place, each in enumerate(union.branches) if is_null(each)]
            if not null:
                _refuse(column, rows[left], f"null, where the schema has {union}")
            index[left] = null[0]
        return joined(len(array), integers(index), *parts)


def _plain(
    kind: Primitive | FixedType | EnumType, column: Column, array: pa.Array, rows: Integers
) -> pa.BinaryArray:
    match kind:
        case Primitive():
            return _primitive(kind, array)
        case FixedType():
            return _fixed(kind, column, array, rows)
        case EnumType(symbols=symbols):
            return _symbol(symbols, column, array, rows)


def _refuse(column: Column, rows: Integers, reason: str) -> NoReturn:
    where = f"{column.path}: " if column.path else ""
    raise UnencodableRowError(np.unique(rows).tolist(), where + reason)


def _sized(array: pa.Array) -> pa.BinaryArray:
    """Each with its length before it."""
    data = array.cast(pa.binary())
    return joined(len(data), integers(pc.binary_length(data).to_numpy()), data)


def _boolean(kind: Primitive, array: pa.Array) -> pa.BinaryArray:
    return fixed_width(array.to_numpy(zero_copy_only=False).astype(np.uint8))


def _int(kind: Primitive, array: pa.Array) -> pa.BinaryArray:
    return integers(numbers(array, pa.int32()))


def _long(kind: Primitive, array: pa.Array) -> pa.BinaryArray:
    values = numbers(array, pa.int64())
    logical = kind.logical.kind if kind.logical else None
    if logical in _MILLIS or array.type == TIME:
        values = values // _THOUSAND
    return integers(values)


def _floating(kind: Primitive, array: pa.Array) -> pa.BinaryArray:
    return fixed_width(array.to_numpy().astype("<f4" if kind.kind is Kind.FLOAT else "<f8"))


def _bytes(kind: Primitive, array: pa.Array) -> pa.BinaryArray:
    if pa.types.is_decimal(array.type):
        array = minimal_bytes(array)
    return _sized(array)


def _primitive(kind: Primitive, array: pa.Array) -> pa.BinaryArray:
    return _PRIMITIVES[kind.kind](kind, array)


_PRIMITIVES: dict[Kind, Callable[[Primitive, pa.Array], pa.BinaryArray]] = {
    Kind.NULL: lambda _, array: joined(len(array)),
    Kind.BOOLEAN: _boolean,
    Kind.INT: _int,
    Kind.LONG: _long,
    Kind.FLOAT: _floating,
    Kind.DOUBLE: _floating,
    Kind.BYTES: _bytes,
    Kind.STRING: _bytes,
}


def _fixed(kind: FixedType, column: Column, array: pa.Array, rows: Integers) -> pa.BinaryArray:
    if pa.types.is_decimal(array.type):
        return minimal_bytes(array, kind.size)
    other = pc.binary_length(array).to_numpy() != kind.size
    if other.any():
        _refuse(column, rows[other], f"not of the {kind.size} bytes that {kind.name} has")
    return array


def _symbol(
    symbols: tuple[str, ...], column: Column, array: pa.Array, rows: Integers
) -> pa.BinaryArray:
    index = pc.index_in(array, value_set=pa.array(symbols, pa.string()))
    if index.null_count:
        unknown = index.is_null().to_numpy(zero_copy_only=False)
        found = array.filter(pa.array(unknown))[0].as_py()
        _refuse(column, rows[unknown], f"{found!r} is none of the symbols {', '.join(symbols)}")
    return integers(index.to_numpy())


def _blocks(array: pa.Array, items: pa.BinaryArray) -> pa.BinaryArray:
    """One block of all items, and the count 0 that ends them."""
    counts = np.diff(array.offsets.to_numpy())
    if not len(items):
        return integers(counts)
    last = pa.array([b"", b"\0"], pa.binary()).take(pa.array((counts > 0).astype(np.int8)))
    return joined(len(array), integers(counts), put_together(array, items), last)
