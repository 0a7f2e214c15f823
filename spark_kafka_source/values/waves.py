"""The engine of numpy: each operation is done for all rows at once.

It never reads outside the bytes, and checks lengths and counts before it makes room. A row that
turns out bad goes on from `NOWHERE`, where nothing fits any more: it reads rubbish that is not
kept, and the others do not notice. What only a few rows go on with, `walk` does.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spark_kafka_source.records.varints import NOWHERE, Integers
from spark_kafka_source.values.faults import Fault
from spark_kafka_source.values.octets import OctetReader
from spark_kafka_source.values.outcome import Outcome
from spark_kafka_source.values.program import Convert, Op, Program, Row
from spark_kafka_source.values.slots import Slots
from spark_kafka_source.values.walk import MAX_EMPTY_ITEMS, MAX_NESTING, One, Walk

FEW = 16
"""So many rows or fewer are done sooner one by one."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Wave:
    """The rows that do the same: which, and where in them a value ends.

    `elements` are those of the level that is filled, None for all of it in their order.
    """

    rows: Integers
    elements: Integers | None
    end: Integers

    def of(self, places: Integers) -> "Wave":
        """Some of them."""
        elements = places if self.elements is None else self.elements[places]
        return Wave(self.rows[places], elements, self.end[places])

    def ids(self) -> Integers:
        """The elements, by their numbers."""
        return self.rows if self.elements is None else self.elements


class Waves:
    """One program at work on one buffer."""

    def __init__(
        self, program: Program, source: OctetReader, constants: int, slots: Slots, outcome: Outcome
    ) -> None:
        self._program, self._source, self._slots = program, source, slots
        self._constants, self._outcome = constants, outcome
        self._walk = Walk(program, source.data, constants, slots, outcome)

    def run(self, rows: Integers, elements: Integers | None, at: Integers, end: Integers) -> None:
        """Decodes these rows, from `at` to `end`; `elements` as in `Wave`."""
        wave = Wave(rows, elements, end)
        after = self._body(0, len(self._program.rows), wave, at)
        if not np.array_equal(after, end):
            self._fail(wave, after, after != end, Fault.TRAILING, -1)

    def _body(self, place: int, stop: int, wave: Wave, at: Integers) -> Integers:
        if self._walk.depth >= MAX_NESTING:
            return self._fail(wave, at, np.ones(len(at), np.bool_), Fault.NESTING, place)
        self._walk.depth += 1
        rows = self._program.rows
        while place < stop:
            row = rows[place]
            at = _DO[row.op](self, place, row, wave, at)
            place = row.end
        self._walk.depth -= 1
        return at

    def _boolean(self, place: int, row: Row, wave: Wave, at: Integers) -> Integers:
        value = self._source.octets(at)
        if value.max(initial=0) > 1:
            at = self._fail(wave, at, value > 1, Fault.BOOLEAN, place)
        self._keep(row.slot, wave, value.astype(np.int64))
        return at + 1

    def _int(self, place: int, row: Row, wave: Wave, at: Integers) -> Integers:
        value, after = self._source.varints(at)
        if value.min(initial=0) < -1 << 31 or value.max(initial=0) >= 1 << 31:
            beyond = (value < -1 << 31) | (value >= 1 << 31)
            after = self._fail(wave, after, beyond, Fault.INT_RANGE, place)
        self._keep_number(place, row, wave, value)
        return after

    def _long(self, place: int, row: Row, wave: Wave, at: Integers) -> Integers:
        value, after = self._source.varints(at)
        if row.argument == Convert.TIMES_1000:
            beyond = np.abs(value) > ((1 << 63) - 1) // 1000
            beyond |= value == -1 << 63
            if beyond.any():
                after = self._fail(wave, after, beyond, Fault.TIMESTAMP, place)
                value = np.where(beyond, 0, value)
        self._keep_number(place, row, wave, value)
        return after

    def _keep_number(self, place: int, row: Row, wave: Wave, value: Integers) -> None:
        match row.argument:
            case Convert.TO_FLOAT:
                value = value.astype(np.float32).astype(np.float64).view(np.int64)
            case Convert.TO_DOUBLE:
                value = value.astype(np.float64).view(np.int64)
            case Convert.TIMES_1000:
                value = value * 1000
        self._keep(row.slot, wave, value)

    def _float(self, place: int, row: Row, wave: Wave, at: Integers) -> Integers:
        if row.slot >= 0:
            bits = self._source.words(at).astype(np.uint32)
            with np.errstate(invalid="ignore"):  # a NaN that signals
                value = bits.view(np.float32).astype(np.float64)
            self._keep(row.slot, wave, value.view(np.int64))
        return at + 4

    def _double(self, place: int, row: Row, wave: Wave, at: Integers) -> Integers:
        if row.slot >= 0:
            self._keep(row.slot, wave, self._source.words(at).view(np.int64))
        return at + 8

    def _bytes(self, place: int, row: Row, wave: Wave, at: Integers) -> Integers:
        length, start = self._source.varints(at)
        return self._sized(place, row, wave, start, length)

    def _fixed(self, place: int, row: Row, wave: Wave, at: Integers) -> Integers:
        return self._sized(place, row, wave, at, np.full(len(at), row.argument))

    def _sized(
        self, place: int, row: Row, wave: Wave, start: Integers, length: Integers
    ) -> Integers:
        # Never start + length, which could be too large for its 64 bits.
        bad = (length < 0) | (length > wave.end - start)
        if bad.any():
            after = self._fail(wave, start, bad, Fault.LENGTH, place)
            start, length = np.where(bad, 0, start), np.where(bad, 0, length)
            end = start + length
            after = np.where(bad, after, end)
        else:
            after = end = start + length
        self._keep(row.slot, wave, start)
        self._keep(row.slot + 1 if row.slot >= 0 else -1, wave, end)
        return after

    def _enum(self, place: int, row: Row, wave: Wave, at: Integers) -> Integers:
        index, after = self._source.varints(at)
        bad = (index < 0) | (index >= row.extra)
        if bad.any():
            after = self._fail(wave, after, bad, Fault.SYMBOL, place)
            index = np.where(bad, 0, index)
        if row.extra and row.slot >= 0:
            symbol = self._program.mapping[row.argument + index]
            if symbol.min(initial=0) < 0:
                after = self._fail(wave, after, symbol < 0, Fault.UNRESOLVED, place)
                symbol = np.where(symbol < 0, 0, symbol)
            self._keep(row.slot, wave, symbol)
        return after

    def _union(self, place: int, row: Row, wave: Wave, at: Integers) -> Integers:
        index, at = self._source.varints(at)
        bad = (index < 0) | (index >= row.argument)
        # Those that are bad already go no further.
        lost = bad | (at > wave.end)
        if lost.any():
            at = self._fail(wave, at, lost, Fault.BRANCH, place)
            index = np.where(lost, -1, index)
        branch, rows = place + 1, self._program.rows
        for number in range(row.argument):
            stop = rows[branch].end
            if stop > branch + 1:
                at = self._branch(branch + 1, stop, wave, at, index == number)
            branch = stop
        return at

    def _branch(self, place: int, stop: int, wave: Wave, at: Integers, chosen: Mask) -> Integers:
        if chosen.all():
            return self._body(place, stop, wave, at)
        found = np.flatnonzero(chosen)
        if len(found):
            at = at.copy()
            at[found] = self._some(place, stop, wave.of(found), at[found])
        return at

    def _some(self, place: int, stop: int, wave: Wave, at: Integers) -> Integers:
        if len(at) > FEW:
            return self._body(place, stop, wave, at)
        walked = [
            self._walk.body(place, stop, One(row, element, start, end))
            for row, element, start, end in zip(
                wave.rows.tolist(), wave.ids().tolist(), at.tolist(), wave.end.tolist(), strict=True
            )
        ]
        return np.array(walked, np.int64)

    def _array(self, place: int, row: Row, wave: Wave, at: Integers) -> Integers:
        """Blocks, until none goes on."""
        at = at.copy()
        left = np.arange(len(at))
        empty = np.zeros(len(at), np.int64)
        while len(left) > FEW:
            some = wave.of(left)
            count, after = self._count(place, row, some, at[left], empty[left])
            going = np.flatnonzero(count)
            at[left] = after
            if not len(going):
                return at
            left, count = left[going], count[going]
            if not row.argument:
                empty[left] += count
            at[left] = self._items(place, row, wave.of(left), at[left], count)
        elements = wave.ids()
        for nth in left.tolist():
            one = One(*(int(each[nth]) for each in (wave.rows, elements, at, wave.end)))
            at[nth] = self._walk.blocks(place, one, int(empty[nth]))
        return at

    def _count(
        self, place: int, row: Row, wave: Wave, at: Integers, empty: Integers
    ) -> tuple[Integers, Integers]:
        """How many items a block has, 0 for those that are bad, and where they begin."""
        count, after = self._source.varints(at)
        bad = np.zeros(len(at), np.bool_)
        if count.min(initial=0) < 0:
            sized = np.flatnonzero(count < 0)
            count[sized] = -count[sized]
            size, after[sized] = self._source.varints(after[sized])
            bad[sized] = (size < 0) | (size > wave.end[sized] - after[sized])
        room = wave.end - after
        most = room // row.argument if row.argument else MAX_EMPTY_ITEMS - empty
        bad |= (count < 0) | (count > most) | (room < 0)
        if bad.any():
            after = self._fail(wave, after, bad, Fault.COUNT, place)
            count = np.where(bad, 0, count)
        return count, after

    def _items(self, place: int, row: Row, wave: Wave, at: Integers, count: Integers) -> Integers:
        """The items of a block: the first of all rows, then the second of those that have one."""
        level = row.slot
        first = self._slots.add(level, wave.ids(), count) if level >= 0 else np.zeros_like(count)
        at = at.copy()
        left, number = np.arange(len(at)), 0
        while len(left) > FEW:
            items = Wave(wave.rows[left], first[left] + number, wave.end[left])
            at[left] = self._body(place + 1, row.end, items, at[left])
            number += 1
            left = left[count[left] > number]
        elements = first + number
        for nth in left.tolist():
            one = One(*(int(each[nth]) for each in (wave.rows, elements, at, wave.end)))
            at[nth] = self._walk.items(place, one, int(count[nth]) - number)
        return at

    def _default(self, place: int, row: Row, wave: Wave, at: Integers) -> Integers:
        start = self._constants + row.argument
        constant = Wave(wave.rows, wave.elements, np.full(len(at), start + row.extra))
        self._body(place + 1, row.end, constant, np.full(len(at), start))
        return at

    def _set(self, place: int, row: Row, wave: Wave, at: Integers) -> Integers:
        self._keep(row.slot, wave, np.full(len(at), row.argument))
        return at

    def _fails(self, place: int, row: Row, wave: Wave, at: Integers) -> Integers:
        return self._fail(wave, at, np.ones(len(at), np.bool_), Fault.UNRESOLVED, place)

    def _record(self, place: int, row: Row, wave: Wave, at: Integers) -> Integers:
        return self._body(place + 1, row.end, wave, at)

    def _call(self, place: int, row: Row, wave: Wave, at: Integers) -> Integers:
        return self._body(row.argument + 1, self._program.rows[row.argument].end, wave, at)

    def _keep(self, slot: int, wave: Wave, values: Integers) -> None:
        if slot < 0:
            return
        if wave.elements is None:
            self._slots.fill(slot, values)
        else:
            self._slots.array(slot)[wave.elements] = values

    def _fail(self, wave: Wave, at: Integers, bad: Mask, fault: Fault, place: int) -> Integers:
        """The positions after that: `NOWHERE` for what is bad."""
        found = np.flatnonzero(bad)
        beyond = at[found] > wave.end[found]
        varint = at[found] >= NOWHERE
        faults = np.where(varint, Fault.VARINT, np.where(beyond, Fault.TRUNCATED, fault))
        self._outcome.add(wave.rows[found], faults.astype(np.uint8), place)
        return np.where(bad, NOWHERE, at)


_Do = Callable[[Waves, int, Row, Wave, Integers], Integers]
_DO: dict[int, _Do] = {
    Op.BOOLEAN: Waves._boolean,
    Op.INT: Waves._int,
    Op.LONG: Waves._long,
    Op.FLOAT: Waves._float,
    Op.DOUBLE: Waves._double,
    Op.BYTES: Waves._bytes,
    Op.FIXED: Waves._fixed,
    Op.ENUM: Waves._enum,
    Op.UNION: Waves._union,
    Op.ARRAY: Waves._array,
    Op.DEFAULT: Waves._default,
    Op.SET: Waves._set,
    Op.FAIL: Waves._fails,
    Op.RECORD: Waves._record,
    Op.CALL: Waves._call,
}
"""A `BRANCH` is its union's."""
