"""Engine of numpy: it does each operation for all rows at once.

It never reads outside the bytes, and checks lengths and counts before it allocates memory. An
operation must end within its row. Otherwise the row is bad: its position becomes `NOWHERE`, and
later operations leave the row out. So are the few rows with a very long list: they are left to the
engine for one row after the other, which reads them from their beginning.
"""

from collections.abc import Callable

import numpy as np

from spark_kafka_source.records.varints import NOWHERE, VARLONG_BYTES, Integers
from spark_kafka_source.values import rows
from spark_kafka_source.values.avro.program import (
    MAX_EMPTY_ITEMS,
    MAX_NESTING,
    Convert,
    Op,
    Program,
    Row,
)
from spark_kafka_source.values.faults import WHOLE, Fault, Mask, Outcome
from spark_kafka_source.values.octets import OctetReader
from spark_kafka_source.values.rows import Wave
from spark_kafka_source.values.slots import Slots

PATIENCE = 16
"""The rounds of a list that are read although few rows still have items. A round of few rows takes
ten times as long as their items one by one."""
_NONE = np.zeros(0, np.int64)
_MOST = (1 << 63) - 1
_WIDTHS: dict[int, int] = {Op.FLOAT: 4, Op.DOUBLE: 8}


class Waves:
    """One program on one buffer."""

    def __init__(
        self, program: Program, source: OctetReader, constants: int, slots: Slots, outcome: Outcome
    ) -> None:
        self._program, self._source, self._slots = program, source, slots
        self._constants, self._outcome = constants, outcome
        self._depth = 0
        """The depth of nested bodies."""
        self._failed = False
        """Whether a position has become `NOWHERE`."""
        self._left: list[Integers] = [_NONE]

    def run(
        self, rows: Integers, elements: Integers | None, at: Integers, end: Integers
    ) -> Integers:
        """Decode these rows, from `at` to `end`, and return the rows that are left.

        `elements` is as in `Wave`.
        """
        wave = Wave(rows, elements, end)
        after = self._body(0, len(self._program.rows), wave, at)
        self._failed = False
        if not np.array_equal(after, end):
            self._fail(wave, after, after < end, Fault.TRAILING, WHOLE)
        return np.concatenate(self._left)

    def _body(self, place: int, stop: int, wave: Wave, at: Integers) -> Integers:
        if self._depth >= MAX_NESTING:
            return self._fail(wave, at, np.ones(len(at), np.bool_), Fault.NESTING, place)
        self._depth += 1
        operations = self._program.rows
        whole, left = at, None
        failed, self._failed = self._failed, False
        while place < stop:
            row = operations[place]
            at = _DO[row.op](self, place, row, wave, at)
            if self._failed:
                sound = np.flatnonzero(at < NOWHERE)
                left = sound if left is None else left[sound]
                wave, at, self._failed = wave.of(sound), at[sound], False
                if not len(sound):
                    break
            place = row.end
        self._depth -= 1
        self._failed = failed or left is not None
        if left is not None:
            whole = np.full(len(whole), NOWHERE)
            whole[left], at = at, whole
        return at

    def _varints(self, place: int, wave: Wave, at: Integers) -> tuple[Integers, Integers]:
        """Return the numbers, and the positions after them. 0 and `NOWHERE` for a bad varint."""
        value, after = self._source.varints(at)
        bad = after > wave.end
        if np.count_nonzero(bad):
            # Ten bytes without an end are a bad varint, even if the row ends there too.
            endless = (after >= NOWHERE) & (wave.end - at >= VARLONG_BYTES)
            self._fail(wave, at, bad & endless, Fault.VARINT, place)
            after = self._fail(wave, after, bad, Fault.TRUNCATED, place)
            value = np.where(bad, 0, value)
        return value, after

    def _room(self, place: int, wave: Wave, at: Integers, size: int) -> Integers:
        """Return the positions after `size` bytes."""
        after = at + size
        bad = after > wave.end
        if np.count_nonzero(bad):
            after = self._fail(wave, after, bad, Fault.TRUNCATED, place)
        return after

    def _boolean(self, place: int, row: Row, wave: Wave, at: Integers) -> Integers:
        value = self._source.octets(at)
        after = self._room(place, wave, at, 1)
        bad = value > 1
        if np.count_nonzero(bad):
            after = self._fail(wave, after, bad, Fault.BOOLEAN, place)
        self._keep(row.slot, wave, value.astype(np.int64))
        return after

    def _int(self, place: int, row: Row, wave: Wave, at: Integers) -> Integers:
        value, after = self._varints(place, wave, at)
        beyond = value.astype(np.int32) != value
        if np.count_nonzero(beyond):
            after = self._fail(wave, after, beyond, Fault.INT_RANGE, place)
        return self._number(place, row, wave, value, after)

    def _long(self, place: int, row: Row, wave: Wave, at: Integers) -> Integers:
        value, after = self._varints(place, wave, at)
        return self._number(place, row, wave, value, after)

    def _number(
        self, place: int, row: Row, wave: Wave, value: Integers, after: Integers
    ) -> Integers:
        match row.argument:
            case Convert.TO_FLOAT:
                value = value.astype(np.float32).astype(np.float64).view(np.int64)
            case Convert.TO_DOUBLE:
                value = value.astype(np.float64).view(np.int64)
            case Convert.TIMES:
                most = _MOST // row.extra
                beyond = (value > most) | (value < -most)
                if np.count_nonzero(beyond):
                    after = self._fail(wave, after, beyond, Fault.TIMESTAMP, place)
                    value = np.where(beyond, 0, value)
                value = value * row.extra
            case Convert.OVER:
                value = value // row.extra
        self._keep(row.slot, wave, value)
        return after

    def _float(self, place: int, row: Row, wave: Wave, at: Integers) -> Integers:
        after = self._room(place, wave, at, 4)
        if row.slot >= 0:
            bits = self._source.words(at).astype(np.uint32)
            with np.errstate(invalid="ignore"):  # a signaling NaN
                value = bits.view(np.float32).astype(np.float64)
            self._keep(row.slot, wave, value.view(np.int64))
        return after

    def _double(self, place: int, row: Row, wave: Wave, at: Integers) -> Integers:
        after = self._room(place, wave, at, 8)
        if row.slot >= 0:
            self._keep(row.slot, wave, self._source.words(at).view(np.int64))
        return after

    def _bytes(self, place: int, row: Row, wave: Wave, at: Integers) -> Integers:
        length, start = self._varints(place, wave, at)
        return self._sized(place, row, wave, start, length)

    def _fixed(self, place: int, row: Row, wave: Wave, at: Integers) -> Integers:
        return self._sized(place, row, wave, at, np.full(len(at), row.argument))

    def _sized(
        self, place: int, row: Row, wave: Wave, start: Integers, length: Integers
    ) -> Integers:
        # start + length is avoided: it could overflow 64 bits.
        bad = _outside(length, wave.end - start)
        if np.count_nonzero(bad):
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
        index, after = self._varints(place, wave, at)
        bad = _outside(index, row.extra - 1)
        if np.count_nonzero(bad):
            after = self._fail(wave, after, bad, Fault.SYMBOL, place)
            index = np.where(bad, 0, index)
        if row.extra and row.slot >= 0:
            symbol = self._program.mapping[row.argument + index]
            bad = symbol < 0
            if np.count_nonzero(bad):
                after = self._fail(wave, after, bad, Fault.UNRESOLVED, place)
                symbol = np.where(bad, 0, symbol)
            self._keep(row.slot, wave, symbol)
        return after

    def _union(self, place: int, row: Row, wave: Wave, at: Integers) -> Integers:
        index, at = self._varints(place, wave, at)
        bad = _outside(index, row.argument - 1)
        if np.count_nonzero(bad):
            at = self._fail(wave, at, bad, Fault.BRANCH, place)
        if self._failed:
            index = np.where(at < NOWHERE, index, -1)
        branch, operations = place + 1, self._program.rows
        for number in range(row.argument):
            stop = operations[branch].end
            if stop > branch + 1:
                at = self._branch(branch + 1, stop, wave, at, index == number)
            branch = stop
        return at

    def _branch(self, place: int, stop: int, wave: Wave, at: Integers, chosen: Mask) -> Integers:
        places = chosen.nonzero()[0]
        if len(places) == len(at):
            return self._body(place, stop, wave, at)
        if len(places):
            at = at.copy()
            at[places] = self._body(place, stop, wave.of(places), at[places])
        return at

    def _array(self, place: int, row: Row, wave: Wave, at: Integers) -> Integers:
        """Read blocks until all rows are done."""
        at = at.copy()
        left, rounds = np.arange(len(at)), 0
        empty = np.zeros(len(at), np.int64)
        while len(left):
            if self._is_tail(left, rounds):
                return self._leave(wave, at, left)
            rounds += 1
            some = wave.of(left)
            count, after = self._count(place, row, some, at[left], empty[left])
            at[left] = after
            going = count.nonzero()[0]
            if not len(going):
                return at
            left, count = left[going], count[going]
            if not row.argument:
                empty[left] += count
            at[left] = after = self._items(place, row, wave.of(left), at[left], count)
            if self._failed:
                left = left[after < NOWHERE]
        return at

    def _count(
        self, place: int, row: Row, wave: Wave, at: Integers, empty: Integers
    ) -> tuple[Integers, Integers]:
        """Return how many items each block has (0 if bad), and where they begin."""
        count, after = self._varints(place, wave, at)
        bad = np.zeros(len(at), np.bool_)
        if count.min(initial=0) < 0:
            sized = np.flatnonzero(count < 0)
            count[sized] = -count[sized]
            size, after[sized] = self._varints(place, wave.of(sized), after[sized])
            bad[sized] = _outside(size, wave.end[sized] - after[sized])
        most = (wave.end - after) // row.argument if row.argument else MAX_EMPTY_ITEMS - empty
        bad |= (count < 0) | (count > most)
        if np.count_nonzero(bad):
            after = self._fail(wave, after, bad, Fault.COUNT, place)
            count = np.where(bad, 0, count)
        return count, after

    def _items(self, place: int, row: Row, wave: Wave, at: Integers, count: Integers) -> Integers:
        """Read a block's items: the first of all rows, then the second of rows that have one."""
        level = row.slot
        first = self._slots.add(level, wave.ids(), count) if level >= 0 else np.zeros_like(count)
        width = _WIDTHS.get(self._program.rows[place + 1].op, 0) if row.end == place + 2 else 0
        if width:
            return self._numbers(place + 1, wave, at, (first, count), width)
        at = at.copy()
        left, number = np.arange(len(at)), 0
        while len(left):
            if self._is_tail(left, number):
                return self._leave(wave, at, left)
            items = Wave(wave.rows[left], first[left] + number, wave.end[left])
            at[left] = self._body(place + 1, row.end, items, at[left])
            number += 1
            going = count[left] > number
            if self._failed:
                going &= at[left] < NOWHERE
            left = left[going]
        return at

    def _is_tail(self, left: Integers, rounds: int) -> bool:
        """Whether, after so many rounds of a list, only few rows still have items."""
        return len(left) <= rows.FEW and rounds >= PATIENCE

    def _leave(self, wave: Wave, at: Integers, left: Integers) -> Integers:
        """Leave some rows to the other engine, and return the positions of all."""
        self._left.append(wave.rows[left])
        self._failed = True
        at[left] = NOWHERE
        return at

    def _numbers(
        self, place: int, wave: Wave, at: Integers, items: tuple[Integers, Integers], width: int
    ) -> Integers:
        """Read items of constant width, all at once. Each block has room for its items.

        `items` are the first item of each row, and the number of items.
        """
        first, count = items
        owner = np.repeat(np.arange(len(at)), count)
        number = np.arange(len(owner)) - (np.cumsum(count) - count)[owner]
        each = Wave(wave.rows[owner], first[owner] + number, wave.end[owner])
        self._body(place, place + 1, each, at[owner] + width * number)
        return at + width * count

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
        """Mark bad rows, and return the positions with `NOWHERE` for them. A first fault stays."""
        self._outcome.add(wave.rows[bad], fault, place)
        self._failed = True
        return np.where(bad, NOWHERE, at)


def _outside(value: Integers, most: Integers | int) -> Mask:
    """Return which values are negative or above `most`. `most` is -1 if nothing is allowed."""
    return (value < 0) | (value > most)


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
"""Runs each operation. `BRANCH` is missing: its union handles it."""
