"""Engine of numpy: it reads each field for all rows at once, in the order of field numbers.

A row whose next field is another one waits at its position. After each pass it skips the fields
that the columns lack. Unfinished rows get another pass, as long as they are many and advance. The
engine for one row after the other reads the rest, from their beginning. So this engine marks no row
as bad, except for too many items.

A pass costs about as much as the other engine takes for a field of each of its steps. So a pass
that read fewer fields, in all rows together, was the last one.
"""

import numpy as np

from spark_kafka_source.records.varints import NOWHERE, Integers, Octets
from spark_kafka_source.values import rows
from spark_kafka_source.values.columns import Layout
from spark_kafka_source.values.faults import COLUMNS, Fault, Mask, Outcome
from spark_kafka_source.values.octets import OctetReader, Uint64s, unzigzag
from spark_kafka_source.values.protobuf.program import (
    MAX_SIZE_BYTES,
    SKIPPING,
    SLOTS_OF_A_BYTE,
    SLOTS_OF_A_ROW,
    MessageProgram,
    Op,
    Row,
    Step,
    kept_numbers,
    wide_levels,
)
from spark_kafka_source.values.protobuf.schema import Wire
from spark_kafka_source.values.rows import Wave
from spark_kafka_source.values.slots import Slots

_AGAIN = 8
"""More passes need this many times the rows that count as few."""
_FIELDS_OF_A_STEP = 1
"""The least fields that a pass must read for each of its steps, if there is to be another one."""
_LOW = (1 << 32) - 1
_NONE, _FIRST = np.zeros(0, np.int64), np.zeros(1, np.int64)
_WIDTHS = {Wire.FIXED32: 4, Wire.FIXED64: 8}
_WIRE_BITS, _LEAST_TAG = 3, 8


class Room:
    """Count of the items of wide levels, as `wide_levels` explains."""

    def __init__(self, layout: Layout, outcome: Outcome) -> None:
        self._widths = wide_levels(layout)
        self.wide = bool(self._widths.any())
        self._layout, self._outcome = layout, outcome
        self._left = np.zeros(len(outcome.status) if self.wide else 0, np.int64)

    def begin(self, rows: Integers, sizes: Integers) -> None:
        """Begin with rows of these sizes in bytes."""
        if self.wide:
            self._left[rows] = SLOTS_OF_A_ROW + SLOTS_OF_A_BYTE * sizes

    def kept(self, level: int, rows: Integers) -> Integers | None:
        """Return the items that have room, each of one of `rows`. None for all. Others are bad."""
        if not self._widths[level] or not len(rows):
            return None
        counts = np.bincount(rows, minlength=len(self._left))
        self._left -= counts * self._widths[level]
        over = np.flatnonzero(self._left < 0)
        if not len(over):
            return None
        self._outcome.add(over, Fault.COUNT, COLUMNS - self._layout.slot_levels.index(level))
        return np.flatnonzero(self._left[rows] >= 0)


class MessageWaves:
    """One program on one buffer."""

    def __init__(
        self, program: MessageProgram, source: OctetReader, _: int, slots: Slots, outcome: Outcome
    ) -> None:
        self._steps, self._closed = program.steps, program.table.closed
        self._kept = kept_numbers(program.table)
        self._source, self._slots = source, slots
        self._room = Room(program.table.layout, outcome)
        self._left: list[Integers] = [_NONE]

    def run(
        self, rows: Integers, elements: Integers | None, at: Integers, end: Integers
    ) -> Integers:
        """Decode these rows, from `at` to `end`, and return the rows that are left.

        `elements` is as in `Wave`.
        """
        self._room.begin(rows, end - at)
        self._message(0, Wave(rows, elements, end), at, True)
        return np.concatenate(self._left)

    def _message(self, node: int, wave: Wave, at: Integers, new: bool) -> None:
        """Read messages to their end. `new` if nothing of them has been read before."""
        few = 0
        while len(at) > few:
            after, fields = self._pass(node, wave, at, new)
            left = np.flatnonzero(after != wave.end)
            if not len(left):
                return
            if fields < _FIELDS_OF_A_STEP * len(self._steps[node]):
                self._left.append(wave.rows[left])
                return
            stuck = after[left] == at[left]
            if np.count_nonzero(stuck):
                self._left.append(wave.rows[left[stuck]])
                left = left[~stuck]
            wave, at = wave.of(left), after[left]
            few, new = _AGAIN * rows.FEW, False
        self._left.append(wave.rows)

    def _pass(self, node: int, wave: Wave, at: Integers, new: bool) -> tuple[Integers, int]:
        """Try every field once. Return each row's new position, and the number of fields read."""
        steps, fields = self._steps[node], 0
        wide = any(step.size > 1 for step in steps)
        tags = self._tags(at, wave.end, wide)
        for step in steps:
            hit = (tags & step.mask if wide else tags) == step.tag
            if step.row.op == Op.MESSAGE and step.row.case >= 0 and not new:
                # A message begins anew after another member of its oneof: the other engine does it.
                hit &= self._slots.array(step.row.case)[wave.ids()] == 0
            count = int(np.count_nonzero(hit))
            fields += count
            if count == len(hit):
                at = self._step(step, wave, at, new)
                tags = self._tags(at, wave.end, wide)
            elif count:
                places = hit.nonzero()[0]
                some = wave.of(places)
                after = self._step(step, some, at[places], new)
                at = at.copy()
                at[places] = after
                tags[places] = self._tags(after, some.end, wide)
        at, others = self._after_others(node, at, wave.end)
        return at, fields + others

    def _after_others(self, node: int, at: Integers, end: Integers) -> tuple[Integers, int]:
        """Return the position of each row after the next fields that the columns lack, and a count.

        Where few rows are left, they stay where they are: each may hold very many such fields.
        """
        left, few, kept = np.flatnonzero(at < end), _AGAIN * rows.FEW, self._kept[node]
        fields = 0
        if len(left) > few:
            at = at.copy()
        while len(left) > few:
            begin, stop = at[left], end[left]
            tag, after = self._source.unsigned(begin)
            other = (after - begin <= MAX_SIZE_BYTES) & (tag >= _LEAST_TAG) & (tag <= _LOW)
            number = tag >> _WIRE_BITS
            other &= kept.take(np.searchsorted(kept, number), mode="clip") != number
            wire = tag & (1 << _WIRE_BITS) - 1
            after = self._after_value(wire, np.minimum(after, stop), stop)
            other &= after <= stop
            left = left[other]
            at[left] = after[other]
            fields += len(left)
            left = left[at[left] < end[left]]
        return at, fields

    def _after_value(self, wire: Integers, at: Integers, end: Integers) -> Integers:
        """Return the position after values of these wire types, or `NOWHERE` if they do not fit."""
        after = np.full(len(at), NOWHERE, np.int64)
        for step in SKIPPING:
            places = np.flatnonzero(wire == step.wire)
            if len(places):
                _, past, fits = self._measured(step, at[places], end[places])
                after[places] = past if fits is None else np.where(fits, past, NOWHERE)
        return after

    def _tags(self, at: Integers, end: Integers, wide: bool) -> "Octets | Uint64s":
        """Return the next bytes, or 0 at the end: no tag begins with 0."""
        tags: Octets | Uint64s = self._source.octets(at)
        if wide:
            tags = self._source.words(at)
        tags[at >= end] = 0
        return tags

    def _step(self, step: Step, wave: Wave, at: Integers, new: bool) -> Integers:
        if step.repeated:
            return self._repeated(step, wave, at)
        value, after, fits = self._measured(step, at, wave.end)
        if fits is None:
            self._keep(step.row, Wave(wave.rows, wave.elements, after), value, new)
            return after
        places = np.flatnonzero(fits)
        at = at.copy()
        at[places] = after[places]
        if len(places):
            some = wave.of(places)
            self._keep(step.row, Wave(some.rows, some.elements, at[places]), value[places], new)
        return at

    def _measured(
        self, step: Step, at: Integers, end: Integers
    ) -> tuple[Integers, Integers, Mask | None]:
        """Return values (or starts, if sized), ends, and which values fit, None for all."""
        at = at + step.size
        match step.wire:
            case Wire.VARINT:
                value, after = self._source.unsigned(at)
                fits = after <= end
                if step.row.closed >= 0:
                    fits &= np.isin(value.astype(np.int32), self._closed[step.row.closed])
            case Wire.SIZED:
                value, after, fits = self._sized(at, end)
            case wire:
                width = _WIDTHS[Wire(wire)]
                word = self._source.words(at)
                value, after = (word & _LOW if width == 4 else word).view(np.int64), at + width
                fits = after <= end
        return value, after, None if np.count_nonzero(fits) == len(fits) else fits

    def _sized(self, at: Integers, end: Integers) -> tuple[Integers, Integers, Mask]:
        """Return the start and end of sized values, and which fit."""
        low = self._source.octets(at)
        if not np.count_nonzero(low >= 128):
            start = at + 1
            after = start + low
            return start, after, after <= end
        size, start = self._source.unsigned(at)
        # start + size is avoided: it could overflow 64 bits.
        fits = (size >= 0) & (size <= end - start) & (start - at <= MAX_SIZE_BYTES)
        return start, start + size, fits

    def _keep(self, row: Row, wave: Wave, value: Integers, new: bool) -> None:
        """Store the values in the slots. Sized values end at the end of the wave."""
        if row.op == Op.SKIP:
            return
        if row.case >= 0:
            self._fill(row.case, wave, np.full(len(value), row.number))
        elif row.presence >= 0:
            slot = self._slots.array(row.presence)
            slot[slice(None) if wave.elements is None else wave.elements] |= row.bit
        if row.op == Op.MESSAGE:
            self._message(row.child, wave, value, new)
            return
        self._fill(row.slot, wave, _converted(row.op, value))
        if row.op == Op.BYTES:
            self._fill(row.slot + 1, wave, wave.end)

    def _fill(self, slot: int, wave: Wave, values: Integers) -> None:
        if wave.elements is None:
            self._slots.fill(slot, values)
        else:
            self._slots.array(slot)[wave.elements] = values

    def _repeated(self, step: Step, wave: Wave, at: Integers) -> Integers:
        """Read consecutive values: the first of all rows, then the second of rows with one."""
        at = at.copy()
        left, rounds = np.arange(len(at)), []
        while len(left):
            value, after, fits = self._measured(step, at[left], wave.end[left])
            if fits is not None:
                left, value, after = left[fits], value[fits], after[fits]
            items, sound = left, None
            if step.wire != step.row.wire:
                which, items_at, sound = self._packed(step.row, value, after)
                items, value, ends = left[which], items_at, items_at
                if sound is not None:
                    left, after = left[sound], after[sound]
            else:
                ends = after
            at[left] = after
            rounds.append((items, value, ends))
            if len(left) <= rows.FEW:
                break
            left = left[self._tags(after, wave.end[left], step.size > 1) & step.mask == step.tag]
        if step.row.op != Op.SKIP:
            self._items(step.row, wave, rounds)
        return at

    def _packed(
        self, row: Row, start: Integers, stop: Integers
    ) -> tuple[Integers, Integers, Mask | None]:
        """Return the owner and value of each item, and which places are sound, None for all."""
        if row.wire == Wire.VARINT:
            owner, value, sound = self._packed_varints(row, start, stop)
        else:
            owner, value, sound = self._packed_fixed(_WIDTHS[Wire(row.wire)], start, stop)
        if sound.all():
            return owner, value, None
        places = np.flatnonzero(sound)
        owner, value, inner = self._packed(row, start[places], stop[places])
        if inner is not None:
            sound[places] = inner
        return places[owner], value, sound

    def _packed_fixed(
        self, width: int, start: Integers, stop: Integers
    ) -> tuple[Integers, Integers, Mask]:
        counts, rest = np.divmod(stop - start, width)
        owner, number = _counted(counts)
        word = self._source.words(start[owner] + width * number)
        return owner, (word & _LOW if width == 4 else word).view(np.int64), rest == 0

    def _packed_varints(
        self, row: Row, start: Integers, stop: Integers
    ) -> tuple[Integers, Integers, Mask]:
        owner, number = _counted(stop - start)
        at = start[owner] + number
        ends = np.flatnonzero(self._source.octets(at) < 128)
        sound = (stop == start) | (self._source.octets(stop - 1) < 128)
        if not sound.all() or not len(ends):
            return owner[:0], at[:0], sound
        first = np.concatenate((_FIRST, ends[:-1] + 1))
        value, after = self._source.unsigned(at[first])
        owner, fits = owner[ends], after == at[ends] + 1
        if row.closed >= 0:
            fits &= np.isin(value.astype(np.int32), self._closed[row.closed])
        sound[owner[~fits]] = False
        return owner, value, sound

    def _items(
        self, row: Row, wave: Wave, parts: list[tuple[Integers, Integers, Integers]]
    ) -> None:
        """Turn the values of all rounds into items, row by row."""
        owner, value, end = (np.concatenate(each) for each in zip(*parts, strict=True))
        if len(parts) > 1:
            order = np.argsort(owner, kind="stable")
            owner, value, end = owner[order], value[order], end[order]
        kept = self._room.kept(row.level, wave.rows[owner])
        if kept is not None:
            owner, value, end = owner[kept], value[kept], end[kept]
        if not len(owner):
            return
        first = self._slots.sizes[row.level]
        counts = np.bincount(owner, minlength=len(wave.rows))
        self._slots.add(row.level, wave.ids(), counts)
        elements = np.arange(first, first + len(owner))
        self._keep(row, Wave(wave.rows[owner], elements, end), value, True)


def _counted(counts: Integers) -> tuple[Integers, Integers]:
    """Return, for `counts` elements of each owner, their owners, and their numbers there."""
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner, np.arange(len(owner)) - (np.cumsum(counts) - counts)[owner]


def _converted(op: int, value: Integers) -> Integers:
    match op:
        case Op.UINT32:
            return value & _LOW
        case Op.SINT32:
            return unzigzag((value & _LOW).view(np.uint64))
        case Op.SINT64:
            return unzigzag(value.view(np.uint64))
        case Op.FLOAT:
            with np.errstate(invalid="ignore"):  # a signaling NaN
                return value.astype(np.uint32).view(np.float32).astype(np.float64).view(np.int64)
    return value
