"""Arrow arrays from slots, and the checks that are done for a whole column after decoding.

The module is long because it has one short function for each `Form`.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_kafka_source.records.varints import Integers, Octets
from spark_kafka_source.values.columns import OF_BYTES, Column, Form
from spark_kafka_source.values.compiled import Kernels
from spark_kafka_source.values.decimals import decimals
from spark_kafka_source.values.faults import COLUMNS, Fault, Mask, Outcome
from spark_kafka_source.values.octets import OctetReader
from spark_kafka_source.values.slots import Slots

_MOST_BYTES = (1 << 31) - 1
_TOO_LARGE = "give a column fewer rows at once; it would have"
_MOST_SECONDS = ((1 << 63) - 1) // 1_000_000 - 3
"""The exclusive bound for seconds that fit, with any nanoseconds, in microseconds of 64 bits."""
Order = Integers | None
"""The elements of a level that become an array, in this order. None for all in their order."""


class ArrowBuilder:
    """Builder of the tree of columns. A row whose bytes turn out bad becomes null."""

    def __init__(
        self,
        source: OctetReader,
        slots: Slots,
        outcome: Outcome,
        constants: int = 0,
        kernels: Kernels | None = None,
    ) -> None:
        """`constants` is where the columns' defaults begin in the data."""
        self._source, self._slots, self._outcome = source, slots, outcome
        self._data, self._constants, self._kernels = source.data, constants, kernels

    def rows(self, column: Column, skipped: Mask) -> pa.Array:
        """Return the rows. Skipped and bad rows are null."""
        array = self._array(column, None)
        skipped = skipped | (self._outcome.status != 0)
        if not np.count_nonzero(skipped):
            return array
        if column.form is Form.STRUCT:
            null = self._null(column, None)
            validity = _validity(skipped if null is None else skipped | null)
            children = [array.field(place) for place in range(len(column.children))]
            return _laid(column.arrow, len(array), [validity], children)
        kept = pa.array(np.arange(len(array)), mask=skipped)
        return array.take(kept)

    def _array(self, column: Column, order: Order) -> pa.Array:
        return _BUILD[column.form](self, column, order)

    def _values(self, column: Column, order: Order, place: int = 0) -> Integers:
        """Return the values of one slot, with the default where the column is absent."""
        values = self._slot(column, column.slot + place, order)
        if column.default and (absent := self._absent(column, order)) is not None:
            moved = self._constants if column.form in OF_BYTES else 0
            return np.where(absent, column.default[place] + moved, values)
        return values

    def _slot(self, column: Column, slot: int, order: Order) -> Integers:
        values = self._slots.values(slot, column.level)
        return values if order is None else values[order]

    def _count(self, column: Column, order: Order) -> int:
        return self._slots.sizes[column.level] if order is None else len(order)

    def _null(self, column: Column, order: Order) -> Mask | None:
        if column.zero_is_null:
            null = self._zero(column, order)
            return null if np.count_nonzero(null) else None
        return None if column.default else self._absent(column, order)

    def _absent(self, column: Column, order: Order) -> Mask | None:
        presence = column.presence
        if presence is None:
            return None
        values = self._slot(column, presence.slot, order)
        absent = (values if presence.mask == -1 else values & presence.mask) != presence.value
        return absent if np.count_nonzero(absent) else None

    def _zero(self, column: Column, order: Order) -> Mask:
        values = self._slot(column, column.slot, order)
        if column.form in OF_BYTES:
            zero: Mask = values == self._slot(column, column.slot + 1, order)
        elif column.form in (Form.INT32, Form.ENUM):
            zero = values.astype(np.int32) == 0
        else:
            zero = values == 0
        return zero

    def _bad(self, column: Column, order: Order, bad: Mask, fault: Fault) -> None:
        """Mark the rows that contain these elements as bad."""
        elements = np.flatnonzero(bad) if order is None else order[bad]
        level = column.level
        while level:
            elements = self._slots.parents[level][elements]
            level = self._slots.levels_above[level]
        self._outcome.add(np.unique(elements), fault, COLUMNS - column.slot)

    def _nothing(self, column: Column, order: Order) -> pa.Array:
        return pa.nulls(self._count(column, order))

    def _boolean(self, column: Column, order: Order) -> pa.Array:
        bits = _bitmap(self._values(column, order) != 0)
        return self._number(column, order, bits)

    def _int32(self, column: Column, order: Order) -> pa.Array:
        return self._number(column, order, self._values(column, order).astype(np.int32))

    def _int64(self, column: Column, order: Order) -> pa.Array:
        values = self._values(column, order)
        return self._number(column, order, np.ascontiguousarray(values))

    def _float(self, column: Column, order: Order) -> pa.Array:
        wide = np.ascontiguousarray(self._values(column, order)).view(np.float64)
        return self._number(column, order, wide.astype(np.float32))

    def _number(
        self, column: Column, order: Order, values: "npt.NDArray[np.generic] | pa.Buffer"
    ) -> pa.Array:
        count = self._count(column, order)
        validity = _validity(self._null(column, order))
        return _laid(column.arrow, count, [validity, pa.py_buffer(values)])

    def _bounds(self, column: Column, order: Order) -> tuple[Integers, Integers, Mask | None]:
        """Return the start and end of bytes. A null has no bytes."""
        start = self._values(column, order)
        end = self._values(column, order, 1)
        null = self._null(column, order)
        if null is not None:
            start, end = np.where(null, 0, start), np.where(null, 0, end)
        return start, end, null

    def _binary(self, column: Column, order: Order) -> pa.Array:
        return self._gathered(*self._bounds(column, order))[0]

    def _gathered(
        self, start: Integers, end: Integers, null: Mask | None
    ) -> tuple[pa.BinaryArray, bool]:
        """Return the slices as a column, and whether all bytes are known to be ASCII."""
        if self._kernels:
            return gather_compiled(self._kernels, self._source, start, end, null)
        return gather(self._data, start, end, null), False

    def _string(self, column: Column, order: Order) -> pa.Array:
        start, end, null = self._bounds(column, order)
        values, is_ascii = self._gathered(start, end, null)
        if is_ascii:
            return values.view(pa.string())
        try:
            return values.cast(pa.string())
        except pa.ArrowInvalid:
            bad = _not_text(values)
        self._bad(column, order, bad, Fault.TEXT)
        values, _ = self._gathered(np.where(bad, 0, start), np.where(bad, 0, end), null)
        return values.cast(pa.string())

    def _decimal(self, column: Column, order: Order) -> pa.Array:
        start, end, null = self._bounds(column, order)
        values, bad = decimals(self._source, start, end, column.arrow.precision)
        if np.count_nonzero(bad):
            self._bad(column, order, bad & self._decoded(column, order), Fault.DECIMAL)
        return _laid(column.arrow, len(start), [_validity(null), pa.py_buffer(values)])

    def _decoded(self, column: Column, order: Order) -> Mask:
        """Return which elements were decoded: those with an end above 0, as no value ends at 0."""
        return self._values(column, order, 1) > 0

    def _symbol(self, column: Column, order: Order) -> pa.Array:
        index = self._values(column, order)
        null = self._null(column, order)
        if not column.symbols:
            return pa.nulls(len(index), pa.string())
        return pa.array(column.symbols, pa.string()).take(pa.array(index, mask=null))

    def _enum(self, column: Column, order: Order) -> pa.Array:
        """Return the symbols. A number without a symbol becomes its digits."""
        values = self._values(column, order).astype(np.int32)
        null = self._null(column, order)
        numbers = np.array(column.numbers, np.int32)
        # Most enums number their symbols without gaps, so the number is the index.
        index = np.clip(values - numbers[0], 0, len(numbers) - 1)
        unknown = numbers[index] != values
        if unknown.any():
            index = np.minimum(np.searchsorted(numbers, values), len(numbers) - 1)
            unknown = numbers[index] != values
        symbols = list(column.symbols)
        if unknown.any():
            more, of = np.unique(values[unknown], return_inverse=True)
            index[unknown] = len(symbols) + of
            symbols += map(str, more.tolist())
        return pa.array(symbols, pa.string()).take(pa.array(index, mask=null))

    def _unsigned(self, column: Column, order: Order) -> pa.Array:
        values = self._values(column, order)
        wide = np.zeros((len(values), 2), np.int64)
        wide[:, 0] = values
        return self._number(column, order, wide)

    def _moment(self, column: Column, order: Order) -> pa.Array:
        """Return microseconds. Nanoseconds are cut towards 0, as Spark cuts them."""
        seconds = self._values(column, order)
        nanos = self._values(column, order, 1).astype(np.int32).astype(np.int64)
        micros = nanos // 1000
        if nanos.min(initial=0) < 0:
            micros = np.where(nanos < 0, -(-nanos // 1000), micros)
        if seconds.max(initial=0) >= _MOST_SECONDS or seconds.min(initial=0) <= -_MOST_SECONDS:
            beyond = (seconds >= _MOST_SECONDS) | (seconds <= -_MOST_SECONDS)
            absent = self._null(column, order)
            bad = beyond if absent is None else beyond & ~absent
            self._bad(column, order, bad, Fault.TIMESTAMP)
            seconds = np.where(beyond, 0, seconds)
        return self._number(column, order, seconds * 1_000_000 + micros)

    def _shown(self, column: Column, order: Order) -> pa.Array:
        assert column.show is not None  # noqa: S101  # The form has it.
        given = [self._array(child, order).to_pylist() for child in column.children]
        null = self._null(column, order)
        texts: list[str | None] = [None] * self._count(column, order)
        bad = np.zeros(len(texts), np.bool_)
        for place in range(len(texts)) if null is None else np.flatnonzero(~null).tolist():
            try:
                texts[place] = column.show(*(values[place] for values in given))
            except ValueError:
                bad[place] = True
        if np.count_nonzero(bad):
            self._bad(column, order, bad, Fault.ANY)
        return pa.array(texts, pa.string())

    def _struct(self, column: Column, order: Order) -> pa.Array:
        children = [self._array(child, order) for child in column.children]
        validity = _validity(self._null(column, order))
        return _laid(column.arrow, self._count(column, order), [validity], children)

    def _choice(self, column: Column, order: Order) -> pa.Array:
        children = [self._array(child, order) for child in column.children]
        null = self._values(column, order) == 0
        validity = _validity(null if np.count_nonzero(null) else None)
        return _laid(column.arrow, self._count(column, order), [validity], children)

    def _list(self, column: Column, order: Order) -> pa.Array:
        owner, items = self._items(column, order)
        child = self._array(column.children[0], items)
        return self._nested(column, order, owner, child)

    def _map(self, column: Column, order: Order) -> pa.Array:
        owner, entries = self._items(column, order)
        keys = self._array(column.children[0], entries)
        last = _last_of_each(owner, keys)
        if last is not None:
            owner, keys = owner[last], keys.take(pa.array(last))
            entries = last if entries is None else entries[last]
        values = self._array(column.children[1], entries)
        fields = [column.arrow.key_field, column.arrow.item_field]
        pairs = pa.StructArray.from_arrays([keys, values], fields=fields)
        return self._nested(column, order, owner, pairs)

    def _items(self, column: Column, order: Order) -> tuple[Integers, Order]:
        """Return for each item the place of its owner, and the order of the items."""
        level = column.item_level
        parents = self._slots.parents[level][: self._slots.sizes[level]]
        if order is None:
            owner = parents
        else:
            # The last place is for items without owner, whose parent is -1.
            places = np.full(self._slots.sizes[column.level] + 1, -1)
            places[order] = np.arange(len(order))
            owner = places[parents]
        if len(owner) < 2 or (owner[0] >= 0 and (owner[1:] >= owner[:-1]).all()):
            return (owner, None) if (owner >= 0).all() else (owner[:0], np.zeros(0, np.int64))
        items = np.argsort(owner, kind="stable")
        owner = owner[items]
        lost = int(np.searchsorted(owner, 0))
        return owner[lost:], items[lost:]

    def _nested(self, column: Column, order: Order, owner: Integers, child: pa.Array) -> pa.Array:
        count = self._count(column, order)
        offsets = np.zeros(count + 1, np.int32)
        np.cumsum(np.bincount(owner, minlength=count), out=offsets[1:])
        validity = _validity(self._null(column, order))
        return _laid(column.arrow, count, [validity, pa.py_buffer(offsets)], [child])


_Build = Callable[[ArrowBuilder, Column, Order], pa.Array]
_BUILD: dict[Form, _Build] = {
    Form.NULL: ArrowBuilder._nothing,
    Form.BOOLEAN: ArrowBuilder._boolean,
    Form.INT32: ArrowBuilder._int32,
    Form.INT64: ArrowBuilder._int64,
    Form.FLOAT: ArrowBuilder._float,
    Form.DOUBLE: ArrowBuilder._int64,
    Form.BINARY: ArrowBuilder._binary,
    Form.STRING: ArrowBuilder._string,
    Form.DECIMAL: ArrowBuilder._decimal,
    Form.SYMBOL: ArrowBuilder._symbol,
    Form.ENUM: ArrowBuilder._enum,
    Form.UNSIGNED: ArrowBuilder._unsigned,
    Form.MOMENT: ArrowBuilder._moment,
    Form.SHOWN: ArrowBuilder._shown,
    Form.STRUCT: ArrowBuilder._struct,
    Form.CHOICE: ArrowBuilder._choice,
    Form.LIST: ArrowBuilder._list,
    Form.MAP: ArrowBuilder._map,
}


def gather(data: Octets, start: Integers, end: Integers, null: Mask | None) -> pa.BinaryArray:
    """Return a column of these slices of `data`. Null slices must be empty.

    If the slices are in order, Arrow copies them. An array is laid over all of `data`: its even
    elements are the slices, its odd elements the gaps. Then the even elements are taken.
    """
    count = len(start)
    if count == 0:
        return pa.array([], pa.binary())
    first, last, empty = start, end, start == end
    if np.count_nonzero(empty):
        # Empty slices may be anywhere. Move each one behind the slice before it.
        last = np.maximum.accumulate(np.where(empty, 0, end))
        first = np.where(empty, last, start)
    if np.count_nonzero(first[1:] < last[:-1]):
        return _copied(data, start, end, null)
    bounds = np.empty(2 * count, np.int32)
    bounds[0::2], bounds[1::2] = first, last
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    array = pa.BinaryArray.from_buffers(pa.binary(), 2 * count - 1, buffers)
    return array.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32), mask=null))


def _copied(data: Octets, start: Integers, end: Integers, null: Mask | None) -> pa.BinaryArray:
    """Copy slices in any order, such as a default that many rows share."""
    length = end - start
    offsets = np.zeros(len(start) + 1, np.int64)
    np.cumsum(length, out=offsets[1:])
    if offsets[-1] > _MOST_BYTES:
        raise OverflowError(f"{_TOO_LARGE} {offsets[-1]} bytes")
    places = np.arange(offsets[-1]) + np.repeat(start - offsets[:-1], length)
    buffers = [
        _validity(null),
        pa.py_buffer(offsets.astype(np.int32)),
        pa.py_buffer(data.take(places)),
    ]
    return pa.BinaryArray.from_buffers(pa.binary(), len(start), buffers)


def gather_compiled(
    kernels: Kernels, source: OctetReader, start: Integers, end: Integers, null: Mask | None
) -> tuple[pa.BinaryArray, bool]:
    """Gather slices in any order, as `gather` does. Also return whether all bytes are ASCII."""
    offsets = np.empty(len(start) + 1, np.int32)
    size = kernels.measure(start, end, offsets)
    if size > _MOST_BYTES:
        raise OverflowError(f"{_TOO_LARGE} more than {_MOST_BYTES} bytes")
    out = np.empty(size + 7, np.uint8)
    words = np.ndarray((size,), "<i8", out.data, strides=(1,))
    is_ascii = kernels.gather(source.data, source.longs, start, end, offsets, out, words)
    buffers = [_validity(null), pa.py_buffer(offsets), pa.py_buffer(out)]
    return pa.BinaryArray.from_buffers(pa.binary(), len(start), buffers), is_ascii


def _laid(
    kind: pa.DataType,
    count: int,
    buffers: list[pa.Buffer | None],
    children: list[pa.Array] | None = None,
) -> pa.Array:
    return pa.Array.from_buffers(kind, count, buffers, children=children)


def _bitmap(mask: Mask) -> pa.Buffer:
    return pa.py_buffer(np.packbits(mask, bitorder="little"))


def _validity(null: Mask | None) -> pa.Buffer | None:
    return None if null is None else _bitmap(~null)


def _not_text(array: pa.BinaryArray) -> Mask:
    """Return which values are not UTF-8. All-ASCII columns are recognized in one step."""
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int32)[: len(array) + 1]
    high = np.flatnonzero(np.frombuffer(data, np.uint8)[: bounds[-1]] >= 128)
    doubtful = np.unique(np.searchsorted(bounds, high, side="right") - 1)
    bad = np.zeros(len(array), np.bool_)
    bad[[row for row in doubtful.tolist() if not _is_text(array[row].as_py())]] = True
    return bad


def _is_text(value: bytes | None) -> bool:
    try:
        return value is None or value.decode() is not None
    except UnicodeDecodeError:
        return False


def _last_of_each(owner: Integers, keys: pa.Array) -> Integers | None:
    """Return the last entry of each key of each map. None if no map has a key twice."""
    if len(owner) < 2 or not (owner[1:] == owner[:-1]).any():
        return None
    encoded = keys.dictionary_encode()
    code = encoded.indices.to_numpy() + owner * len(encoded.dictionary)
    _, last = np.unique(code[::-1], return_index=True)
    return None if len(last) == len(code) else np.sort(len(code) - 1 - last)
