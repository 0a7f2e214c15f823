"""Resolution of a writer's schema to a reader's, by Avro's specification, into a `Program`.

https://avro.apache.org/docs/1.12.0/specification/#schema-resolution leaves some points open. They
are as in Java. Records may differ in name, unless a union has several records. From a union, the
first branch of the same type is taken, else the first branch that the type can be promoted to.
Beyond the specification, a time stays the same time if the two sides count it in other units, and a
date is read as its first moment. Other logical types are not read as each other. The module is long
because one class has all rules: each type's rule calls the rules of the types within it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeGuard

import numpy as np
import pyarrow as pa

from spark_kafka_source.values.avro.defaults import encode_default
from spark_kafka_source.values.avro.program import Convert, Op, Program, Row
from spark_kafka_source.values.avro.schema import (
    NO_DEFAULT,
    ArrayType,
    AvroType,
    Definition,
    EnumType,
    Field,
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
from spark_kafka_source.values.avro.shape import ReaderSchema, member_names, members
from spark_kafka_source.values.columns import Column, Form, Presence
from spark_kafka_source.values.errors import SchemaError, UnresolvableError, quoted
from spark_kafka_source.values.typing import AvroTyping

MAX_ROWS = 50_000
"""The most rows of a program: types that use each other can need very many."""
MAX_TRIES = 100_000
"""The most tries to resolve one type as another: nested unions multiply the tries."""

MOST_LEAST_BYTES = 1 << 31
"""More bytes than any row has. A bound, as types that use each other can add up to huge minima."""

_NUMBERS = {
    Kind.BOOLEAN: Op.BOOLEAN,
    Kind.INT: Op.INT,
    Kind.LONG: Op.LONG,
    Kind.FLOAT: Op.FLOAT,
    Kind.DOUBLE: Op.DOUBLE,
}
_PROMOTED = {
    (Kind.INT, Kind.FLOAT): Convert.TO_FLOAT,
    (Kind.INT, Kind.DOUBLE): Convert.TO_DOUBLE,
    (Kind.LONG, Kind.FLOAT): Convert.TO_FLOAT,
    (Kind.LONG, Kind.DOUBLE): Convert.TO_DOUBLE,
    (Kind.FLOAT, Kind.DOUBLE): Convert.NOT,
}
_TEXTS = (Kind.BYTES, Kind.STRING)

_DAY, _MILLI, _MICRO = 86_400_000_000_000, 1_000_000, 1_000
_UNITS = {
    LogicalKind.DATE: ("date", _DAY),
    LogicalKind.TIME_MILLIS: ("time", _MILLI),
    LogicalKind.TIME_MICROS: ("time", _MICRO),
    LogicalKind.TIMESTAMP_MILLIS: ("timestamp", _MILLI),
    LogicalKind.TIMESTAMP_MICROS: ("timestamp", _MICRO),
    LogicalKind.TIMESTAMP_NANOS: ("timestamp", 1),
    LogicalKind.LOCAL_TIMESTAMP_MILLIS: ("local", _MILLI),
    LogicalKind.LOCAL_TIMESTAMP_MICROS: ("local", _MICRO),
    LogicalKind.LOCAL_TIMESTAMP_NANOS: ("local", 1),
}
"""What a number counts, and the nanoseconds in one of it."""
_HAS_A_MOMENT = {("date", "timestamp"), ("date", "local")}
"""The kinds of time that are read as another kind."""
_COLUMN_UNITS = {"us": _MICRO, "ns": 1}


def resolve(writer: Schema, reader: ReaderSchema) -> Program:
    """Return the program for `writer`. Raises `UnresolvableError` if it can never read a value."""
    resolution = _Resolution(writer, reader.schema, reader.typing)
    resolution.emit(writer.type, reader.schema.type, reader.layout.column)
    return Program(
        reader.layout,
        tuple(Row(*row) for row in resolution.rows),
        tuple(resolution.paths),
        np.array(resolution.mapping, np.int64),
        bytes(resolution.constants),
        {at: text for at, text in resolution.failures.items() if resolution.rows[at][0] == Op.FAIL},
    )


class _Resolution:
    """State of a resolution: the table so far."""

    def __init__(self, writer: Schema, reader: Schema, typing: AvroTyping) -> None:
        self.rows: list[list[int]] = []
        self.paths: list[str] = []
        self.mapping: list[int] = []
        self.constants = bytearray()
        self.failures: dict[int, str] = {}
        self._writer, self._reader, self._typing = writer, reader, typing
        self._skipped: dict[str, int] = {}
        self._least: dict[str, int] = {}
        self._nothing: dict[str, bool] = {}
        self._path = ""
        self._tries = 0

    def emit(self, writer: AvroType, reader: AvroType, column: Column) -> None:
        """Add the operations that read `writer` into the column of `reader`."""
        if not isinstance(writer, UnionType):
            self._one(writer, reader, column)
            return
        last: UnresolvableError | None = None
        resolved = False
        with self._body(Op.UNION, argument=len(writer.branches)):
            for branch in writer.branches:
                with self._body(Op.BRANCH):
                    try:
                        with self._or_nothing():
                            self._one(branch, reader, column)
                        resolved = True
                    except UnresolvableError as error:
                        self.failures[len(self.rows)] = f"{error.found}. {error.expected}"
                        self._row(Op.FAIL)
                        self.paths[-1] = error.path
                        last = error
        if last and not resolved:
            raise last

    def _one(self, writer: AvroType, reader: AvroType, column: Column) -> None:
        """Resolve a writer's type that is not a union."""
        if not isinstance(reader, UnionType):
            self._plain(writer, reader, column)
        elif is_null(writer) and any(map(is_null, reader.branches)):
            return
        else:
            self._member(writer, reader, column)

    def _member(self, writer: AvroType, reader: UnionType, column: Column) -> None:
        kinds = members(self._reader, reader)
        columns: Sequence[Column | None] = (column,) * len(kinds)
        if column.form is Form.CHOICE:
            children = dict(zip(column.names, column.children, strict=True))
            names = member_names(self._reader, kinds, self._typing, self._path)
            columns = [children.get(name) for name in names]
        order = sorted(range(len(kinds)), key=lambda each: self._distance(writer, kinds[each]))
        for place in order:
            try:
                with self._or_nothing():
                    self._plain(writer, kinds[place], columns[place])
            except UnresolvableError:
                if len(kinds) == 1:
                    raise
                continue
            return
        raise self._unresolvable(writer, reader)

    def _distance(self, writer: AvroType, reader: AvroType) -> int:
        """Return 0 for the same type, 1 for the same type with another name, 2 for other types."""
        one, other = self._writer.definition(writer), self._reader.definition(reader)
        if type(one) is not type(other):
            return 2
        if isinstance(one, Primitive) and isinstance(other, Primitive):
            return 0 if one.kind is other.kind else 2
        if _is_named(one) and _is_named(other):
            return 0 if _same_name(one, other, full=True) else 1
        return 0

    def _plain(self, writer: AvroType, reader: AvroType, column: Column | None) -> None:
        """Resolve two types that are not unions. None is a member that has no column.

        The first operation marks the column as present.
        """
        if column is None:
            if self._distance(writer, reader) > 1:
                raise self._unresolvable(writer, reader)
            self._skip(writer)
            return
        self._tries += 1
        if self._tries > MAX_TRIES:
            raise self._too_large(f"more than {MAX_TRIES} types to try as another")
        one, other = self._writer.definition(writer), self._reader.definition(reader)
        if column.presence:
            self._set(column.presence)
        match one, other:
            case Primitive(), Primitive():
                self._primitive(one, other, column)
            case ArrayType(items), ArrayType(expected):
                with self._body(Op.ARRAY, column.item_level, self._minimum(items)):
                    self.emit(items, expected, column.children[0])
            case MapType(values), MapType(expected):
                with self._body(Op.ARRAY, column.item_level, 1 + self._minimum(values)):
                    self._row(Op.BYTES, column.children[0].slot)
                    self.emit(values, expected, column.children[1])
            case FixedType(), FixedType() if (
                _same_name(one, other) and one.size == other.size and _same_meaning(one, other)
            ):
                self._row(Op.FIXED, column.slot, one.size)
            case EnumType(), EnumType() if _same_name(one, other):
                self._enum(one, other, column)
            case RecordType(), RecordType():
                self._record(one, other, column)
            case _:
                raise self._unresolvable(one, other)

    def _primitive(self, writer: Primitive, reader: Primitive, column: Column) -> None:
        one, other = writer.kind, reader.kind
        if one is other and one is Kind.NULL:
            return
        if one in _TEXTS and other in _TEXTS and _same_meaning(writer, reader):
            self._row(Op.BYTES, column.slot)
        elif (one is other and one in _NUMBERS) or (one, other) == (Kind.INT, Kind.LONG):
            self._row(_NUMBERS[one], column.slot, *self._unit(writer, reader, column))
        elif (one, other) in _PROMOTED:
            self._row(_NUMBERS[one], column.slot, _PROMOTED[one, other])
        else:
            raise self._unresolvable(writer, reader)

    def _unit(self, writer: Primitive, reader: Primitive, column: Column) -> tuple[Convert, int]:
        """Return the conversion to the column's unit. A number without a type has the reader's."""
        if reader.logical is None or reader.logical.kind not in _UNITS:
            return Convert.NOT, 0
        wanted, own = _UNITS[reader.logical.kind]
        kind, unit = _UNITS[(writer.logical or reader.logical).kind]
        if kind != wanted and (kind, wanted) not in _HAS_A_MOMENT:
            raise self._unresolvable(writer, reader)
        if pa.types.is_timestamp(column.arrow) or pa.types.is_time(column.arrow):
            own = _COLUMN_UNITS[column.arrow.unit]
        if unit == own:
            return Convert.NOT, 0
        return (Convert.TIMES, unit // own) if unit > own else (Convert.OVER, own // unit)

    def _enum(self, writer: EnumType, reader: EnumType, column: Column) -> None:
        known = {symbol: place for place, symbol in enumerate(reader.symbols)}
        other = known.get(reader.default, -1) if reader.default is not None else -1
        start = len(self.mapping)
        self.mapping += [known.get(symbol, other) for symbol in writer.symbols]
        self._row(Op.ENUM, column.slot, start, len(writer.symbols))

    def _record(self, writer: RecordType, reader: RecordType, column: Column) -> None:
        matched = _matched(writer, reader)
        children = dict(zip(column.names, column.children, strict=True))
        for field in writer.fields:
            wanted = matched.get(field.name)
            child = children.get(wanted.name) if wanted else None
            with self._at(field.name):
                if wanted and child:
                    self.emit(field.type, wanted.type, child)
                else:
                    self._skip(field.type)
        written = {field.name for field in matched.values()}
        for field in reader.fields:
            child = children.get(field.name)
            if child and field.name not in written:
                with self._at(field.name):
                    self._default(field, child)

    def _default(self, field: Field, column: Column) -> None:
        if field.default is NO_DEFAULT:
            found = f"the writer has no field {quoted(field.name)}"
            raise UnresolvableError(self._path, found, "The reader's field has no default either")
        data = encode_default(self._reader, field.type, field.default, self._path)
        resolution = _Resolution(self._reader, self._reader, self._typing)
        if field.default is None and isinstance(field.type, UnionType):
            return
        start = len(self.constants)
        self.constants += data
        with self._body(Op.DEFAULT, argument=start, extra=len(data)):
            resolution.emit(field.type, field.type, column)
            self._append(resolution)

    def _append(self, other: "_Resolution") -> None:
        """Append the rows of another resolution, with their references adjusted."""
        first, mapped = len(self.rows), len(self.mapping)
        for (op, slot, argument, end, extra), path in zip(other.rows, other.paths, strict=True):
            moved = {Op.ENUM: mapped, Op.CALL: first}.get(Op(op), 0)
            self._row(Op(op), slot, argument + moved, extra, end=first + end)
            self.paths[-1] = f"{self._path}.{path}" if path else self._path
        self.mapping += other.mapping

    def _skip(self, kind: AvroType) -> None:
        """Add the operations that read a value and keep nothing."""
        match self._writer.definition(kind):
            case Primitive(Kind.NULL):
                pass
            case Primitive(Kind.BYTES | Kind.STRING):
                self._row(Op.BYTES)
            case Primitive(number):
                self._row(_NUMBERS[number])
            case FixedType(size=size):
                self._row(Op.FIXED, argument=size)
            case EnumType(symbols=symbols):
                start = len(self.mapping)
                self.mapping += range(len(symbols))
                self._row(Op.ENUM, argument=start, extra=len(symbols))
            case ArrayType(items):
                with self._body(Op.ARRAY, argument=self._minimum(items)):
                    self._skip(items)
            case MapType(values):
                with self._body(Op.ARRAY, argument=1 + self._minimum(values)):
                    self._row(Op.BYTES)
                    self._skip(values)
            case UnionType(branches):
                with self._body(Op.UNION, argument=len(branches)):
                    for branch in branches:
                        with self._body(Op.BRANCH):
                            self._skip(branch)
            case RecordType() as record:
                self._skip_record(record)

    def _skip_record(self, record: RecordType) -> None:
        """Skip a record. Its body is added once; later uses, perhaps within itself, call it."""
        if self._is_nothing(record):
            return
        known = self._skipped.get(record.name)
        if known is not None:
            self._row(Op.CALL, argument=known)
            return
        self._skipped[record.name] = len(self.rows)
        with self._body(Op.RECORD):
            for field in record.fields:
                with self._at(field.name):
                    self._skip(field.type)

    def _is_nothing(self, kind: Definition) -> bool:
        """Whether the writer's values of this type never have a byte."""
        match kind:
            case Primitive(number):
                return number is Kind.NULL
            case FixedType(size=size):
                return size == 0
            case RecordType(name, fields):
                if name not in self._nothing:
                    self._nothing[name] = True  # While its own fields are checked.
                    kinds = (self._writer.definition(field.type) for field in fields)
                    self._nothing[name] = all(map(self._is_nothing, kinds))
                return self._nothing[name]
            case _:
                return False

    def _minimum(self, kind: AvroType) -> int:
        """Return a lower bound for the bytes of a value of the writer."""
        match self._writer.definition(kind):
            case Primitive(number):
                return {Kind.NULL: 0, Kind.FLOAT: 4, Kind.DOUBLE: 8}.get(number, 1)
            case FixedType(size=size):
                return size
            case UnionType(branches):
                return 1 + min(map(self._minimum, branches))
            case RecordType(name, fields):
                if name not in self._least:
                    self._least[name] = 0  # While its own fields are checked.
                    least = sum(self._minimum(field.type) for field in fields)
                    self._least[name] = min(least, MOST_LEAST_BYTES)
                return self._least[name]
            case _:
                return 1

    def _set(self, presence: Presence) -> None:
        self._row(Op.SET, presence.slot, presence.value)

    def _row(
        self, op: Op, slot: int = -1, argument: int = 0, extra: int = 0, end: int | None = None
    ) -> None:
        if len(self.rows) >= MAX_ROWS:
            raise self._too_large(f"more than {MAX_ROWS} operations")
        after = len(self.rows) + 1
        self.rows.append([op, slot, argument, after if end is None else end, extra])
        self.paths.append(self._path)

    @contextmanager
    def _body(self, op: Op, slot: int = -1, argument: int = 0, extra: int = 0) -> Iterator[None]:
        place = len(self.rows)
        self._row(op, slot, argument, extra)
        yield
        self.rows[place][Row._fields.index("end")] = len(self.rows)

    @contextmanager
    def _at(self, name: str) -> Iterator[None]:
        kept = self._path
        self._path = f"{kept}.{name}" if kept else name
        try:
            yield
        finally:
            self._path = kept

    @contextmanager
    def _or_nothing(self) -> Iterator[None]:
        """Remove the new operations if the resolution fails."""
        rows, mapped, constants, path = (
            len(self.rows), len(self.mapping), len(self.constants), self._path,
        )  # fmt: skip
        try:
            yield
        except UnresolvableError:
            del self.rows[rows:], self.paths[rows:], self.mapping[mapped:]
            del self.constants[constants:]
            self._skipped = {n: at for n, at in self._skipped.items() if at < rows}
            self._path = path
            raise

    def _too_large(self, found: str) -> SchemaError:
        """Return the error for a schema that is too large. No other branch is tried after it."""
        return SchemaError(self._path, found, "Types this large are not read")

    def _unresolvable(self, writer: object, reader: object) -> UnresolvableError:
        return UnresolvableError(
            self._path, f"{writer} was written", f"It cannot be read as {reader}"
        )


_Named = FixedType | EnumType | RecordType


def _is_named(kind: Definition) -> TypeGuard[_Named]:
    return isinstance(kind, _Named)


def _same_name(writer: _Named, reader: _Named, *, full: bool = False) -> bool:
    """Whether names match, by the reader's name or aliases.

    If not `full`, namespaces may differ.
    """
    if writer.name in (reader.name, *reader.aliases):
        return True
    return not full and writer.name.rpartition(".")[2] == reader.name.rpartition(".")[2]


def _same_meaning(writer: Primitive | FixedType, reader: Primitive | FixedType) -> bool:
    """Whether two types have one logical type and scale, or one has none. A text is no decimal."""
    both = (writer, reader)
    kinds = {(each.logical.kind, each.logical.scale) for each in both if each.logical}
    has_text = any(isinstance(each, Primitive) and each.kind is Kind.STRING for each in both)
    return len(kinds) <= 1 and not (has_text and LogicalKind.DECIMAL in dict(kinds))


def _matched(writer: RecordType, reader: RecordType) -> dict[str, Field]:
    """Return the reader's field for each writer's field, by name, or else by alias."""
    wanted = {field.name: field for field in reader.fields}
    names = {field.name for field in writer.fields}
    matched = {name: wanted.pop(name) for name in names & wanted.keys()}
    for field in wanted.values():
        for alias in field.aliases:
            if alias in names and alias not in matched:
                matched[alias] = field
                break
    return matched
