"""Engine for one message at a time, in plain Python. It defines the meaning of the bytes.

It takes over where waves stop: at fields that are out of order, unknown or bad. If a field comes
twice, the last value counts, messages are merged, and items are added.
"""

import struct
from collections.abc import Callable

import numpy as np

from spark_kafka_source.records.varints import Octets
from spark_kafka_source.values.faults import BadPlaceError, Fault
from spark_kafka_source.values.outcome import Outcome
from spark_kafka_source.values.protobuf.program import Op, Program, Row
from spark_kafka_source.values.protobuf.room import Room
from spark_kafka_source.values.protobuf.schema import Wire
from spark_kafka_source.values.slots import Slots
from spark_kafka_source.values.walk import One

MAX_NESTING = 100
"""The deepest nesting of messages and groups, as in other implementations."""
MAX_VARINT_BYTES = 10
MAX_SIZE_BYTES = 5
"""The most bytes of a tag or a length, which have 32 bits."""
_LOW = (1 << 32) - 1
_ALL = (1 << 64) - 1
_WIDTHS = {Wire.FIXED32: 4, Wire.FIXED64: 8}


class Walk:
    """One program on one buffer."""

    def __init__(
        self, program: Program, data: Octets, slots: Slots, outcome: Outcome, room: Room
    ) -> None:
        table = program.table
        self._nodes, self._rows = table.nodes, table.rows
        self._places = table.places
        self._closed = [frozenset(numbers.tolist()) for numbers in table.closed]
        self._data = data.data
        self._slots, self._outcome, self._room = slots, outcome, room
        self._row = self._depth = 0
        self._lost = False
        """Whether an entry's enum had a number that counts as not written."""

    def message(self, node: int, one: One) -> None:
        """Read the fields of a message, from the position on."""
        self._row, self._depth = one.row, self._nodes[node].depth
        try:
            self._whole(node, one.element, one.at, one.end)
        except BadPlaceError as bad:
            self._outcome.add(np.array([one.row]), bad.fault, bad.place)

    def _fields(self, node: int, element: int, at: int, end: int, group: int = 0) -> int:
        """Read fields up to the end, or up to the end of the group."""
        place = len(self._rows) + node
        if self._depth > MAX_NESTING:
            raise BadPlaceError(Fault.NESTING, place)
        places = self._places[node]
        while at < end:
            number, wire, at = self._tag(place, at, end)
            if wire == Wire.END_GROUP:
                if number != group:
                    raise BadPlaceError(Fault.GROUP, place)
                return at
            found = places.get(number, -1)
            if found < 0:
                at = self._skip(place, number, wire, at, end)
            else:
                at = self._field(found, wire, element, at, end)
        if group:
            raise BadPlaceError(Fault.GROUP, place)
        return at

    def _field(self, place: int, wire: int, element: int, at: int, end: int) -> int:
        row = self._rows[place]
        if wire == row.wire:
            return _DO[wire](self, place, row, element, at, end)
        if wire == Wire.SIZED and row.may_be_packed:
            size, at = self._size(place, at, end)
            stop = at + size
            while at < stop:
                at = _DO[row.wire](self, place, row, element, at, stop)
            return stop
        return self._skip(place, row.number, wire, at, end)

    def _varint(self, place: int, row: Row, element: int, at: int, end: int) -> int:
        value, at = self._number(place, at, end)
        match row.op:
            case Op.UINT32:
                value &= _LOW
            case Op.SINT32:
                value &= _LOW
                value = (value >> 1) ^ -(value & 1)
            case Op.SINT64:
                value = (value >> 1) ^ -(value & 1)
        if row.closed >= 0 and _signed32(value) not in self._closed[row.closed]:
            self._lost = True
            return at
        self._keep(row, element, value - (1 << 64) if value >> 63 == 1 else value)
        return at

    def _fixed32(self, place: int, row: Row, element: int, at: int, end: int) -> int:
        self._has(place, at, end, 4)
        if row.op == Op.FLOAT:
            (number,) = struct.unpack_from("<f", self._data, at)
            (value,) = struct.unpack("<q", struct.pack("<d", number))
        else:
            (value,) = struct.unpack_from("<I", self._data, at)
        self._keep(row, element, value)
        return at + 4

    def _fixed64(self, place: int, row: Row, element: int, at: int, end: int) -> int:
        self._has(place, at, end, 8)
        (value,) = struct.unpack_from("<q", self._data, at)
        self._keep(row, element, value)
        return at + 8

    def _sized(self, place: int, row: Row, element: int, at: int, end: int) -> int:
        size, at = self._size(place, at, end)
        stop = at + size
        if row.op == Op.MESSAGE:
            self._enter(row, element, at, stop)
            return stop
        element = self._target(row, element)
        self._slots.array(row.slot)[element] = at
        self._slots.array(row.slot + 1)[element] = stop
        return stop

    def _group(self, _: int, row: Row, element: int, at: int, end: int) -> int:
        return self._enter(row, element, at, end, row.number)

    def _enter(self, row: Row, element: int, at: int, end: int, group: int = 0) -> int:
        if row.case >= 0 and self._slots.array(row.case)[element] != row.number:
            self._forget(row.child, element)
        element = self._target(row, element)
        self._depth += 1
        at = self._whole(row.child, element, at, end, group)
        self._depth -= 1
        return at

    def _whole(self, node: int, element: int, at: int, end: int, group: int = 0) -> int:
        """Read a message. Drop a map's entry if its closed enum lacks the number."""
        self._lost = False
        at = self._fields(node, element, at, end, group)
        level = self._nodes[node].entry_level
        if self._lost and level >= 0:
            self._slots.parents[level][element] = -1
        self._lost = False
        return at

    def _forget(self, node: int, element: int) -> None:
        """Reset a message of a oneof that begins anew, after another member was set."""
        first, stop, _, _ = self._nodes[node]
        for row in self._rows[first:stop]:
            if row.level >= 0:
                self._slots.forget(row.level, element)
                continue
            slots = {row.slot, row.presence, row.case} | (
                {row.slot + 1} if row.op == Op.BYTES else set()
            )
            for slot in slots - {-1}:
                self._slots.array(slot)[element] = 0
            if row.child >= 0:
                self._forget(row.child, element)

    def _target(self, row: Row, element: int) -> int:
        """Return the element to fill, a new one for a repeated field."""
        if row.level >= 0:
            if self._room.wide and not self._room.has_one(row.level, self._row):
                raise BadPlaceError(Fault.COUNT, self._places[row.node][row.number])
            return self._slots.append(row.level, element)
        if row.case >= 0:
            self._slots.array(row.case)[element] = row.number
        elif row.presence >= 0:
            self._slots.array(row.presence)[element] |= row.bit
        return element

    def _keep(self, row: Row, element: int, value: int) -> None:
        element = self._target(row, element)
        self._slots.array(row.slot)[element] = value

    def _skip(self, place: int, number: int, wire: int, at: int, end: int) -> int:
        """Skip one field, with all groups in it."""
        groups: list[int] = []
        while True:
            match wire:
                case Wire.VARINT:
                    _, at = self._number(place, at, end)
                case Wire.SIZED:
                    size, at = self._size(place, at, end)
                    at += size
                case Wire.GROUP:
                    groups.append(number)
                    if self._depth + len(groups) > MAX_NESTING:
                        raise BadPlaceError(Fault.NESTING, place)
                case Wire.END_GROUP:
                    if groups.pop() != number:
                        raise BadPlaceError(Fault.GROUP, place)
                case _:
                    width = _WIDTHS[Wire(wire)]
                    self._has(place, at, end, width)
                    at += width
            if not groups:
                return at
            if at >= end:
                raise BadPlaceError(Fault.GROUP, place)
            number, wire, at = self._tag(place, at, end)

    def _tag(self, place: int, at: int, end: int) -> tuple[int, int, int]:
        start = at
        tag, at = self._number(place, at, end)
        if tag > _LOW or at - start > MAX_SIZE_BYTES or tag < 8 or tag & 7 > Wire.FIXED32:
            raise BadPlaceError(Fault.TAG, place)
        return tag >> 3, tag & 7, at

    def _size(self, place: int, at: int, end: int) -> tuple[int, int]:
        size, after = self._number(place, at, end)
        if size > end - after or after - at > MAX_SIZE_BYTES:
            raise BadPlaceError(Fault.LENGTH, place)
        return size, after

    def _number(self, place: int, at: int, end: int) -> tuple[int, int]:
        """Read a varint, of which the lower 64 bits count."""
        data = self._data
        if at < end and data[at] < 128:
            return data[at], at + 1
        value = shift = 0
        while at < end and shift < 7 * MAX_VARINT_BYTES:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value & _ALL, at
            shift += 7
        raise BadPlaceError(Fault.TRUNCATED if at >= end else Fault.VARINT, place)

    def _has(self, place: int, at: int, end: int, size: int) -> None:
        if size > end - at:
            raise BadPlaceError(Fault.TRUNCATED, place)


def _signed32(value: int) -> int:
    low = value & _LOW
    return low - (1 << 32) if low >> 31 else low


_Do = Callable[[Walk, int, Row, int, int, int], int]
_DO: dict[int, _Do] = {
    Wire.VARINT: Walk._varint,
    Wire.FIXED64: Walk._fixed64,
    Wire.SIZED: Walk._sized,
    Wire.GROUP: Walk._group,
    Wire.FIXED32: Walk._fixed32,
}
