"""Engine for one row at a time, in plain Python. It defines the operations.

Waves hand over to it when few rows are left, as in one long list. Both engines give the same
results, and a test checks that.
"""

import struct
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from spark_kafka_source.records.varints import NOWHERE, VARLONG_BYTES, Octets
from spark_kafka_source.values.faults import BadPlaceError, Fault
from spark_kafka_source.values.outcome import Outcome
from spark_kafka_source.values.program import Convert, Op, Program, Row
from spark_kafka_source.values.slots import Slots

MAX_NESTING = 100
"""The deepest nesting of bodies. Types are never that deep, but a skipped value of a recursive type
can be. Each body takes four Python frames of about 1000."""
MAX_EMPTY_ITEMS = 64
"""The most items in an array whose items take no bytes, such as null."""

_MAX_LONG = (1 << 63) - 1


class One(NamedTuple):
    """A row, the element of it to fill, and the bounds of the bytes to read."""

    row: int
    element: int
    at: int
    end: int


class Walk:
    """One program on one buffer. The position after a bad value is `NOWHERE`."""

    def __init__(
        self, program: Program, data: Octets, constants: int, slots: Slots, outcome: Outcome
    ) -> None:
        self._rows, self._mapping = program.rows, program.mapping
        self._data = data.data
        self._slots, self._outcome, self._constants = slots, outcome, constants
        self.depth = 0
        """The depth of nested bodies. Waves count their bodies here, too."""
        self._end = 0

    def body(self, place: int, stop: int, one: One) -> int:
        """Run the operations from `place` to `stop` once."""
        return self._guarded(one, lambda: self._body(place, stop, one.element, one.at))

    def items(self, place: int, one: One, count: int) -> int:
        """Read `count` items of the array at `place`, beginning with this element."""
        return self._guarded(one, lambda: self._items(place, one.element, one.at, count))

    def blocks(self, place: int, one: One, empty: int) -> int:
        """Read the blocks of the array at `place`, after `empty` items without bytes."""
        return self._guarded(one, lambda: self._blocks(place, one.element, one.at, empty))

    def _guarded(self, one: One, run: Callable[[], int]) -> int:
        depth, self._end = self.depth, one.end
        try:
            return run()
        except BadPlaceError as bad:
            self._outcome.add(np.array([one.row]), bad.fault, bad.place)
            return NOWHERE
        finally:
            self.depth = depth

    def _body(self, place: int, stop: int, element: int, at: int) -> int:
        if self.depth >= MAX_NESTING:
            raise BadPlaceError(Fault.NESTING, place)
        self.depth += 1
        while place < stop:
            row = self._rows[place]
            at = _DO[row.op](self, place, row, element, at)
            place = row.end
        self.depth -= 1
        return at

    def _set(self, _: int, row: Row, element: int, at: int) -> int:
        self._keep(row.slot, element, row.argument)
        return at

    def _bytes(self, place: int, row: Row, element: int, at: int) -> int:
        length, at = self._varint(place, at)
        return self._sized(place, row, element, at, length)

    def _fixed(self, place: int, row: Row, element: int, at: int) -> int:
        return self._sized(place, row, element, at, row.argument)

    def _array(self, place: int, _: Row, element: int, at: int) -> int:
        return self._blocks(place, element, at, 0)

    def _fails(self, place: int, row: Row, element: int, at: int) -> int:
        raise BadPlaceError(Fault.UNRESOLVED, place)

    def _record(self, place: int, row: Row, element: int, at: int) -> int:
        return self._body(place + 1, row.end, element, at)

    def _varint(self, place: int, at: int) -> tuple[int, int]:
        value = 0
        for shift in range(0, 7 * VARLONG_BYTES, 7):
            self._room(place, at, 1)
            byte = self._data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                if value >> 64:
                    break
                return (value >> 1) ^ -(value & 1), at
        raise BadPlaceError(Fault.VARINT, place)

    def _boolean(self, place: int, row: Row, element: int, at: int) -> int:
        self._room(place, at, 1)
        value = self._data[at]
        if value > 1:
            raise BadPlaceError(Fault.BOOLEAN, place)
        self._keep(row.slot, element, value)
        return at + 1

    def _integer(self, place: int, row: Row, element: int, at: int) -> int:
        value, at = self._varint(place, at)
        if row.op == Op.INT and not -1 << 31 <= value < 1 << 31:
            raise BadPlaceError(Fault.INT_RANGE, place)
        match row.argument:
            case Convert.TIMES_1000:
                if abs(value) > _MAX_LONG // 1000:
                    raise BadPlaceError(Fault.TIMESTAMP, place)
                value *= 1000
            case Convert.TO_FLOAT:
                value = _bits(float(np.int64(value).astype(np.float32)))
            case Convert.TO_DOUBLE:
                value = _bits(float(value))
        self._keep(row.slot, element, value)
        return at

    def _floating(self, place: int, row: Row, element: int, at: int) -> int:
        size = 4 if row.op == Op.FLOAT else 8
        self._room(place, at, size)
        (value,) = struct.unpack_from("<f" if size == 4 else "<q", self._data, at)
        self._keep(row.slot, element, value if size == 8 else _bits(value))
        return at + size

    def _sized(self, place: int, row: Row, element: int, at: int, length: int) -> int:
        if not 0 <= length <= self._end - at:
            raise BadPlaceError(Fault.LENGTH, place)
        if row.slot >= 0:
            self._keep(row.slot, element, at)
            self._keep(row.slot + 1, element, at + length)
        return at + length

    def _enum(self, place: int, row: Row, element: int, at: int) -> int:
        index, at = self._varint(place, at)
        if not 0 <= index < row.extra:
            raise BadPlaceError(Fault.SYMBOL, place)
        symbol = int(self._mapping[row.argument + index])
        if row.slot >= 0 and symbol < 0:
            raise BadPlaceError(Fault.UNRESOLVED, place)
        self._keep(row.slot, element, symbol)
        return at

    def _union(self, place: int, row: Row, element: int, at: int) -> int:
        index, at = self._varint(place, at)
        if not 0 <= index < row.argument:
            raise BadPlaceError(Fault.BRANCH, place)
        branch = place + 1
        for _ in range(index):
            branch = self._rows[branch].end
        stop = self._rows[branch].end
        return self._body(branch + 1, stop, element, at) if stop > branch + 1 else at

    def _blocks(self, place: int, element: int, at: int, empty: int) -> int:
        row = self._rows[place]
        while True:
            count, at = self._varint(place, at)
            if count == 0:
                return at
            if count < 0:
                count = -count
                size, at = self._varint(place, at)
                if not 0 <= size <= self._end - at:
                    raise BadPlaceError(Fault.COUNT, place)
            room = (self._end - at) // row.argument if row.argument else MAX_EMPTY_ITEMS - empty
            if count > room:
                raise BadPlaceError(Fault.COUNT, place)
            first, level = 0, row.slot
            if level >= 0:
                first = int(self._slots.add(level, np.array([element]), np.array([count]))[0])
            empty += 0 if row.argument else count
            at = self._items(place, first, at, count)

    def _items(self, place: int, element: int, at: int, count: int) -> int:
        stop = self._rows[place].end
        for number in range(count):
            at = self._body(place + 1, stop, element + number, at)
        return at

    def _default(self, place: int, row: Row, element: int, at: int) -> int:
        kept, start = self._end, self._constants + row.argument
        self._end = start + row.extra
        self._body(place + 1, row.end, element, start)
        self._end = kept
        return at

    def _call(self, place: int, row: Row, element: int, at: int) -> int:
        return self._body(row.argument + 1, self._rows[row.argument].end, element, at)

    def _room(self, place: int, at: int, size: int) -> None:
        if size > self._end - at:
            raise BadPlaceError(Fault.TRUNCATED, place)

    def _keep(self, slot: int, element: int, value: int) -> None:
        if slot >= 0:
            self._slots.array(slot)[element] = value


def _bits(value: float) -> int:
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return int(bits)


_Do = Callable[[Walk, int, Row, int, int], int]
_DO: dict[int, _Do] = {
    Op.BOOLEAN: Walk._boolean,
    Op.INT: Walk._integer,
    Op.LONG: Walk._integer,
    Op.FLOAT: Walk._floating,
    Op.DOUBLE: Walk._floating,
    Op.BYTES: Walk._bytes,
    Op.FIXED: Walk._fixed,
    Op.ENUM: Walk._enum,
    Op.UNION: Walk._union,
    Op.ARRAY: Walk._array,
    Op.DEFAULT: Walk._default,
    Op.SET: Walk._set,
    Op.FAIL: Walk._fails,
    Op.RECORD: Walk._record,
    Op.CALL: Walk._call,
}
"""Runs each operation. `BRANCH` is missing: its union handles it."""
