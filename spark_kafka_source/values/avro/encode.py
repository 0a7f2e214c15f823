"""Encoder from Arrow to Avro: types make columns of numbers and of bytes, which Arrow joins once.

An absent value, such as in all other branches of a union, is null in these columns and left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source.records.packing import Varints
from spark_kafka_source.records.varints import Integers, Octets
from spark_kafka_source.values.avro.fit import (
    ABSENT_PLACE,
    Absent,
    Choice,
    Items,
    Leaf,
    Node,
    Record,
)
from spark_kafka_source.values.avro.schema import (
    AS_A_UUID,
    MILLIS,
    UUID_PATTERN,
    EnumType,
    FixedType,
    Kind,
    MapType,
    Primitive,
    is_null,
    is_uuid,
)
from spark_kafka_source.values.decimals import minimal_bytes
from spark_kafka_source.values.faults import Mask
from spark_kafka_source.values.fitting import converted, refuse_rows

_THOUSAND = 1000


def encode(plan: Node, array: pa.Array, prefix: bytes = b"") -> pa.BinaryArray:
    """Encode each row by the plan for the column's type, with `prefix` before it.

    Microseconds are cut if the schema has milliseconds, as in Spark's `to_avro`. Raises
    `UnencodableRowError` for rows that the schema has no place for: a null where the schema allows
    none, a symbol or a size that the schema does not have, or a time finer than microseconds.
    """
    if not len(array):
        return pa.array([], pa.binary())
    return _joined(len(array), _parts(plan, array, np.arange(len(array)), None), prefix)


@dataclass(frozen=True, slots=True, eq=False)
class _Numbers:
    """Column of varints, or of floats. `there` marks the rows with a value, None for all rows."""

    values: "npt.NDArray[Any]"
    there: Mask | None

    def column(self) -> "Varints | _Fixed":
        """Return the layout of the bytes. An absent value may be any number."""
        if self.values.dtype.kind == "f":
            return _Fixed(self.values)
        there = self.there
        return Varints.of(self.values if there is None else np.where(there, self.values, 0))


class _Fixed:
    """Column of numbers of constant width, with the methods of `Varints`."""

    def __init__(self, values: "npt.NDArray[Any]") -> None:
        self._values = values
        self.most = self.widths = values.itemsize

    def fill(self, columns: Octets) -> None:
        """Write one row for each row of `columns`."""
        columns[:] = np.ascontiguousarray(self._values).view(np.uint8).reshape(-1, self.most)

    def mark(self, present: Mask) -> None:
        """Do nothing: all bytes count."""


_Parts = Iterator[Any]
"""Columns of numbers and of bytes, to be joined."""


def _parts(node: Node, array: pa.Array, rows: Integers, there: Mask | None) -> _Parts:
    """Yield the columns that are written one after the other, for the present elements.

    `rows` has the row of each element.
    """
    if isinstance(node, Absent):
        yield from _absent(node, array, rows, there)
        return
    if isinstance(node, Choice):
        yield from _union(node, array, rows, there)
        return
    if array.null_count:
        null = _both(~_valid(array), there)
        if np.count_nonzero(null):
            refuse_rows(
                node.path, rows[null], f"null, where the schema has {node.kind} and no null"
            )
    if isinstance(node, Record):
        for place, inner in node.fields:
            field = array if place == ABSENT_PLACE else array.field(place)
            yield from _parts(inner, field, rows, there)
    elif isinstance(node, Items):
        yield from _blocks(node, array, rows, there)
    else:
        yield from _plain(node, converted(array, node.arrow, rows, node.path, there), rows, there)


def _absent(node: Absent, array: pa.Array, rows: Integers, there: Mask | None) -> _Parts:
    """Yield the branch null for each element. Nothing is written for the type null itself."""
    if node.null is not None:
        yield _Numbers(np.full(len(array), node.null), there)
    elif not is_null(node.kind):
        left = np.ones(len(array), np.bool_) if there is None else there
        if np.count_nonzero(left):
            refuse_rows(
                node.path, rows[left], f"null, where the schema has {node.kind} and no null"
            )


def _union(node: Choice, array: pa.Array, rows: Integers, there: Mask | None) -> _Parts:
    """Yield the number of the branch, then all branches.

    Only one branch has a value per row.
    """
    index = np.full(len(array), -1 if node.null is None else node.null)
    branches: list[tuple[Mask, Node, pa.Array]] = []
    for branch in node.branches:
        values = array.field(branch.place) if node.is_struct else array
        chosen = _both(_valid(values), _valid(array) if node.is_struct else None, there)
        taken = [each for each, *_ in branches]
        if any(np.count_nonzero(chosen & each) for each in taken):
            several = chosen & np.logical_or.reduce(taken)
            refuse_rows(node.path, rows[several], f"several members, where {node.kind} has one")
        index[chosen] = branch.number
        branches.append((chosen, branch.node, values))
    if node.null is None:
        left = _both(index < 0, there)
        if np.count_nonzero(left):
            refuse_rows(node.path, rows[left], f"null, where the schema has {node.kind}")
    yield _Numbers(index, there)
    for chosen, inner, values in branches:
        whole = np.count_nonzero(chosen) == len(chosen)
        yield from _parts(inner, values, rows, None if whole else chosen)


def _blocks(node: Items, array: pa.Array, rows: Integers, there: Mask | None) -> _Parts:
    """Yield one block of all items, and the count 0 that ends the blocks."""
    if there is not None:
        some = _blocks(node, array.filter(pa.array(there)), rows[there], None)
        count = int(np.count_nonzero(there))
        places = pa.array(np.cumsum(there) - 1, mask=~there)
        yield _joined(count, some).take(places) if count else pa.nulls(len(there), pa.binary())
        return
    offsets = array.offsets.to_numpy()
    counts, first = np.diff(offsets), int(offsets[0])
    owners, size = np.repeat(rows, counts), int(offsets[-1]) - first
    parts = _items(node, array, owners)
    yield _Numbers(counts.astype(np.int64), None)
    if size:
        items = _joined(size, parts)
        _, bounds, data = items.buffers()
        ends = np.frombuffer(bounds, np.int32)[items.offset : items.offset + size + 1]
        yield _bytes_at(ends[offsets - first], data)
    yield _Numbers(np.zeros(len(array), np.int64), counts > 0)


def _items(node: Items, array: pa.Array, owners: Integers) -> _Parts:
    start = array.offsets[0].as_py()
    if isinstance(node.kind, MapType):
        yield from _sized(array.keys.slice(start, len(owners)), None)
    items = array.items if isinstance(node.kind, MapType) else array.values
    yield from _parts(node.item, items.slice(start, len(owners)), owners, None)


def _plain(node: Leaf, array: pa.Array, rows: Integers, there: Mask | None) -> _Parts:
    match node.kind:
        case Primitive(Kind.NULL):
            return
        case Primitive(Kind.BOOLEAN):
            # The varint of -1 is the byte 1.
            known = array.fill_null(False) if array.null_count else array
            yield _Numbers(-known.to_numpy(zero_copy_only=False).astype(np.int64), there)
        case Primitive(Kind.INT):
            yield _Numbers(_numbers(array, np.int32).astype(np.int64), there)
        case Primitive(Kind.LONG):
            yield _Numbers(_long(node, array), there)
        case Primitive(Kind.FLOAT):
            yield _Numbers(_numbers(array, np.float32), there)
        case Primitive(Kind.DOUBLE):
            yield _Numbers(_numbers(array, np.float64), there)
        case Primitive():
            if is_uuid(node.kind):
                _check_uuids(node, array, rows, there)
            yield from _sized(_unscaled(array), there)
        case FixedType():
            yield _fixed(node, node.kind, array, rows, there)
        case EnumType(symbols=symbols):
            yield _Numbers(_symbol(node, symbols, array, rows, there), there)


def _valid(array: pa.Array) -> Mask:
    if not array.null_count:
        return np.ones(len(array), np.bool_)
    valid: Mask = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _both(mask: Mask, *others: Mask | None) -> Mask:
    for other in others:
        if other is not None:
            mask = mask & other
    return mask


def _joined(count: int, parts: _Parts, prefix: bytes = b"") -> pa.BinaryArray:
    """Join all parts of each row."""
    arrays: list[Any] = []
    run: list[_Numbers] = []
    for part in parts:
        if isinstance(part, _Numbers):
            run.append(part)
            continue
        if run:
            arrays.append(_packed(run))
            run = []
        arrays.append(part)
    if run:
        arrays.append(_packed(run))
    if prefix or not arrays:
        arrays.insert(0, pa.scalar(prefix, pa.binary()))
    if len(arrays) == 1 and isinstance(arrays[0], pa.Array) and not arrays[0].null_count:
        return arrays[0]
    nothing = _bytes_at(np.zeros(count + 1, np.int32), pa.py_buffer(b""))
    separator = pa.scalar(b"", pa.binary())
    return pc.binary_join_element_wise(*arrays, nothing, separator, null_handling="skip")


def _packed(run: list[_Numbers]) -> pa.BinaryArray:
    """Pack several columns of numbers, row by row, without the absent ones."""
    count = len(run[0].values)
    columns = [each.column() for each in run]
    places = list(pairwise(accumulate((column.most for column in columns), initial=0)))
    rows = np.empty((count, places[-1][-1]), np.uint8)
    present, widths = np.ones(rows.shape, np.bool_), np.zeros(count, np.int32)
    for numbers, column, (start, stop) in zip(run, columns, places, strict=True):
        column.fill(rows[:, start:stop])
        column.mark(present[:, start:stop])
        if numbers.there is None:
            widths += column.widths
        else:
            present[:, start:stop] &= numbers.there[:, np.newaxis]
            widths += column.widths * numbers.there
    bounds = np.zeros(count + 1, np.int32)
    np.cumsum(widths, out=bounds[1:])
    whole = int(bounds[-1]) == rows.size
    return _bytes_at(bounds, pa.py_buffer(rows if whole else rows[present]))


def _bytes_at(
    bounds: npt.NDArray[np.int32], data: pa.Buffer | None, there: Mask | None = None
) -> pa.BinaryArray:
    """Return the slices between these bounds, null where they are absent."""
    bitmap = None if there is None else pa.py_buffer(np.packbits(there, bitorder="little"))
    laid = pa.py_buffer(np.ascontiguousarray(bounds))
    buffers = [bitmap, laid, data or pa.py_buffer(b"")]
    return pa.Array.from_buffers(pa.binary(), len(bounds) - 1, buffers)


def _bounds(array: pa.Array) -> npt.NDArray[np.int32]:
    """Return the bounds of a column of bytes or text."""
    offsets: npt.NDArray[np.int32] = np.frombuffer(array.buffers()[1], np.int32)
    return offsets[array.offset : array.offset + len(array) + 1]


def _sized(array: pa.Array, there: Mask | None) -> _Parts:
    """Yield each value with its length before it."""
    bounds = _bounds(array)
    yield _Numbers(np.diff(bounds).astype(np.int64), there)
    yield _bytes_at(bounds, array.buffers()[2], there)


def _numbers(array: pa.Array, kind: type[np.generic]) -> "npt.NDArray[Any]":
    """Return the numbers of the array's buffer. A null may be any number."""
    return np.frombuffer(array.buffers()[1], kind)[array.offset : array.offset + len(array)]


def _long(node: Leaf, array: pa.Array) -> Integers:
    values: Integers = _numbers(array, np.int64)
    logical = (
        node.kind.logical.kind if isinstance(node.kind, Primitive) and node.kind.logical else None
    )
    is_cut = logical in MILLIS and not pa.types.is_integer(node.arrow)
    return values // _THOUSAND if is_cut else values


def _unscaled(array: pa.Array) -> pa.Array:
    return minimal_bytes(array) if pa.types.is_decimal(array.type) else array


def _fixed(
    node: Leaf, kind: FixedType, array: pa.Array, rows: Integers, there: Mask | None
) -> pa.BinaryArray:
    if pa.types.is_decimal(array.type):
        array = minimal_bytes(array, kind.size)
    bounds = _bounds(array)
    other = _both(np.diff(bounds) != kind.size, there)
    if np.count_nonzero(other):
        refuse_rows(node.path, rows[other], f"not of the {kind.size} bytes that {kind.name} has")
    return _bytes_at(bounds, array.buffers()[2], there)


def _check_uuids(node: Leaf, array: pa.Array, rows: Integers, there: Mask | None) -> None:
    """Refuse texts that are no UUID. A reader that takes them for one would fail."""
    are_uuids = pc.match_substring_regex(array, rf"\A{UUID_PATTERN}\z").fill_null(True)
    other = _both(~are_uuids.to_numpy(zero_copy_only=False), there)
    if np.count_nonzero(other):
        text = array.filter(pa.array(other))[0].as_py()
        refuse_rows(node.path, rows[other], f"{text!r} is no UUID, {AS_A_UUID}")


def _symbol(
    node: Leaf, symbols: tuple[str, ...], array: pa.Array, rows: Integers, there: Mask | None
) -> Integers:
    index = pc.index_in(array, value_set=pa.array(symbols, pa.string()))
    unknown = _both(~_valid(index), there)
    if np.count_nonzero(unknown):
        symbol = array.filter(pa.array(unknown))[0].as_py()
        refuse_rows(
            node.path, rows[unknown], f"{symbol!r} is none of the symbols {', '.join(symbols)}"
        )
    numbers: Integers = index.fill_null(0).to_numpy().astype(np.int64)
    return numbers
