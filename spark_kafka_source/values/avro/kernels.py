"""Engine for one row after the other, in plain Python that numba compiles (see `compiled`).

It defines the operations. Compiled code does not check indices. So the engine compares each
position with the end of the row before it reads a byte, and checks the room before it writes an
element. The table is made by this package and trusted.
"""

import numpy as np
import numpy.typing as npt

from spark_kafka_source.records.varints import Integers, Octets
from spark_kafka_source.values.avro.program import MAX_EMPTY_ITEMS, MAX_NESTING, Convert, Op, Row
from spark_kafka_source.values.faults import WHOLE, Fault, Places
from spark_kafka_source.values.rows import NULL_ROW

OP, SLOT, ARGUMENT, END, EXTRA = map(Row._fields.index, ("op", "slot", "argument", "end", "extra"))
BOOLEAN, INT, LONG, FLOAT, DOUBLE = map(int, (Op.BOOLEAN, Op.INT, Op.LONG, Op.FLOAT, Op.DOUBLE))
BYTES, FIXED, ENUM, UNION = map(int, (Op.BYTES, Op.FIXED, Op.ENUM, Op.UNION))
ARRAY, DEFAULT, SET, FAIL, CALL = map(int, (Op.ARRAY, Op.DEFAULT, Op.SET, Op.FAIL, Op.CALL))
TO_FLOAT, TIMES, OVER = int(Convert.TO_FLOAT), int(Convert.TIMES), int(Convert.OVER)
TRUNCATED, TRAILING, VARINT = map(int, (Fault.TRUNCATED, Fault.TRAILING, Fault.VARINT))
INT_RANGE, NO_BOOLEAN, LENGTH = map(int, (Fault.INT_RANGE, Fault.BOOLEAN, Fault.LENGTH))
COUNT, BRANCH, SYMBOL = map(int, (Fault.COUNT, Fault.BRANCH, Fault.SYMBOL))
UNRESOLVED, TIMESTAMP = int(Fault.UNRESOLVED), int(Fault.TIMESTAMP)
NESTING, NO_PROGRAM = int(Fault.NESTING), int(Fault.NO_PROGRAM)

MAX_INT, MAX_LONG = (1 << 31) - 1, (1 << 63) - 1
LAST_SHIFT = 63
"""The shift of the last septet in a varint of 10 bytes."""

RETURN, STOP, ELEMENT, ARRAY_AT, LEFT, EMPTY, AT, LIMIT = range(8)
"""The fields of a stack frame for the surrounding body: where it goes on, where it ends, and its
element. For items of an array: the array's row in the table (else -1), the items left in the block,
and the items that took no bytes. For a default: where the row goes on, and where it ends, else -1.
"""
FRAME = 8


def run(  # noqa: PLR0912, PLR0915, PLR0917  # a row's state are numbers, not objects
    data: Octets,
    words: Integers,
    starts: Integers,
    ends: Integers,
    program_of: Integers,
    first_row: int,
    table: Integers,
    firsts: Integers,
    mapping: Integers,
    constants: int,
    memory: Integers,
    bases: Integers,
    level_of: Integers,
    rooms: Integers,
    sizes: Integers,
    before: Integers,
    stack: Integers,
    scratch: Integers,
    singles: npt.NDArray[np.float32],
    doubles: npt.NDArray[np.float64],
    status: Octets,
    places: Places,
) -> int:
    """Decode from `first_row` on. Return the row that lacks room, or the number of rows.

    The elements of a slot are in `memory` from its base on. After the bases of all slots come the
    bases of each level's parents. A level has `sizes` elements, and room for `rooms`. Level 0 has
    room for all rows. If a level lacks room, `scratch` gets the level and the size that it needs.
    `words` are the eight bytes from each position of `data` on. `constants` is where the programs'
    constants begin. `scratch`, `singles` and `doubles` share their bytes.
    """

    # Inner functions: if arrays were passed in, each call would count references to them. Each
    # function returns the position after the value, or the negative fault.

    def varint(at: int, end: int) -> tuple[int, int]:
        value, shift = 0, 0
        while shift <= LAST_SHIFT:
            if at >= end:
                return 0, -TRUNCATED
            byte = int(data[at])
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                if shift == LAST_SHIFT and byte > 1:
                    break
                return ((value >> 1) & MAX_LONG) ^ -(value & 1), at
            shift += 7
        return 0, -VARINT

    def keep(place: int, element: int, value: int) -> None:
        slot = int(table[place, SLOT])
        if slot >= 0:
            memory[bases[slot] + element] = value

    def integer(place: int, element: int, at: int, end: int) -> int:
        value, after = varint(at, end)
        if after < 0:
            return after
        if table[place, OP] == INT and (value < -MAX_INT - 1 or value > MAX_INT):
            return -INT_RANGE
        convert = int(table[place, ARGUMENT])
        if convert == TIMES:
            most = MAX_LONG // int(table[place, EXTRA])
            if value > most or value < -most:
                return -TIMESTAMP
            value *= int(table[place, EXTRA])
        elif convert == OVER:
            value //= int(table[place, EXTRA])
        elif convert != 0:
            scratch[0] = value
            if convert == TO_FLOAT:
                singles[0] = scratch[0]
                doubles[0] = singles[0]
            else:
                doubles[0] = scratch[0]
            value = int(scratch[0])
        keep(place, element, value)
        return after

    def sized(place: int, element: int, at: int, end: int) -> int:
        length = int(table[place, ARGUMENT])
        if table[place, OP] == BYTES:
            length, at = varint(at, end)
        if at < 0:
            return at
        if length < 0 or length > end - at:
            return -LENGTH
        slot = int(table[place, SLOT])
        if slot >= 0:
            memory[bases[slot] + element] = at
            memory[bases[slot + 1] + element] = at + length
        return at + length

    def boolean(place: int, element: int, at: int, end: int) -> int:
        if at >= end:
            return -TRUNCATED
        if data[at] > 1:
            return -NO_BOOLEAN
        keep(place, element, int(data[at]))
        return at + 1

    def single(place: int, element: int, at: int, end: int) -> int:
        if end - at < 4:
            return -TRUNCATED
        scratch[0] = 0
        for nth in range(4):
            scratch[0] |= int(data[at + nth]) << 8 * nth
        doubles[0] = singles[0]
        keep(place, element, int(scratch[0]))
        return at + 4

    def double(place: int, element: int, at: int, end: int) -> int:
        if end - at < 8:
            return -TRUNCATED
        keep(place, element, int(words[at]))
        return at + 8

    def symbol(place: int, element: int, at: int, end: int) -> int:
        index, after = varint(at, end)
        if after < 0:
            return after
        if index < 0 or index >= table[place, EXTRA]:
            return -SYMBOL
        kept = int(mapping[table[place, ARGUMENT] + index])
        if kept < 0 and table[place, SLOT] >= 0:
            return -UNRESOLVED
        keep(place, element, kept)
        return after

    def block(array: int, at: int, end: int, empty: int) -> tuple[int, int]:
        """Return the number of items in the next block, and where they begin."""
        count, at = varint(at, end)
        if at >= 0 and count < 0:
            count = -count
            size, at = varint(at, end)
            if at >= 0 and (size < 0 or size > end - at):
                return 0, -COUNT
        least, most = int(table[array, ARGUMENT]), MAX_EMPTY_ITEMS - empty
        if at >= 0 and least > 0:
            most = (end - at) // least
        # The smallest integer is its own negative, so `count` can still be negative here.
        return (0, -COUNT) if at >= 0 and (count < 0 or count > most) else (count, at)

    def enter(depth: int, place: int, stop: int, element: int, array: int) -> None:
        stack[depth, RETURN], stack[depth, STOP] = int(table[place, END]), stop
        stack[depth, ELEMENT], stack[depth, ARRAY_AT] = element, array
        stack[depth, EMPTY], stack[depth, LIMIT] = 0, -1

    def forget(row: int) -> None:
        """Undo a row: set its slots to 0, and drop its elements from all levels."""
        for slot in range(len(level_of)):
            level = int(level_of[slot])
            if level == 0:
                memory[bases[slot] + row] = 0
            else:
                for element in range(before[level], sizes[level]):
                    memory[bases[slot] + element] = 0
        for level in range(len(sizes)):
            sizes[level] = before[level]

    for row in range(first_row, len(starts)):
        number = int(program_of[row])
        if number < 0:
            if number != NULL_ROW:
                status[row], places[row] = NO_PROGRAM, WHOLE
            continue
        for level in range(len(sizes)):
            before[level] = sizes[level]
        place, stop = int(firsts[number]), int(firsts[number + 1])
        at, end = int(starts[row]), int(ends[row])
        element, depth, needed = row, 0, 0
        if at < 0 or end > len(data) or at > end:
            at, place = -TRUNCATED, place + WHOLE
        while at >= 0:
            array = -1
            if place < stop:
                op = int(table[place, OP])
                if op in (INT, LONG):
                    at = integer(place, element, at, end)
                elif op in (BYTES, FIXED):
                    at = sized(place, element, at, end)
                elif op == DOUBLE:
                    at = double(place, element, at, end)
                elif op == SET:
                    keep(place, element, int(table[place, ARGUMENT]))
                elif op == BOOLEAN:
                    at = boolean(place, element, at, end)
                elif op == ENUM:
                    at = symbol(place, element, at, end)
                elif op == FLOAT:
                    at = single(place, element, at, end)
                elif op == FAIL:
                    at = -UNRESOLVED
                elif op == ARRAY:
                    enter(depth, place, stop, element, place)
                    array = place
                    depth += 1
                else:
                    body = place
                    enter(depth, place, stop, element, -1)
                    if op == UNION:
                        index, at = varint(at, end)
                        if at >= 0 and (index < 0 or index >= table[place, ARGUMENT]):
                            at = -BRANCH
                        if at < 0:
                            break
                        body = place + 1
                        for _ in range(index):
                            body = int(table[body, END])
                    elif op == CALL:
                        body = int(table[place, ARGUMENT])
                    elif op == DEFAULT:
                        stack[depth, AT], stack[depth, LIMIT] = at, end
                        at = constants + int(table[place, ARGUMENT])
                        end = at + int(table[place, EXTRA])
                    if op == UNION and table[body, END] == body + 1:
                        place = int(table[place, END])
                        continue
                    place, stop = body + 1, int(table[body, END])
                    depth += 1
                    if depth >= MAX_NESTING:
                        at = -NESTING
                    continue
                if array < 0:
                    if at >= 0:
                        place += 1
                    continue
            elif depth == 0:
                if at != end:
                    at, place = -TRAILING, int(firsts[number]) + WHOLE
                break
            else:
                # The body has ended.
                frame = depth - 1
                array = int(stack[frame, ARRAY_AT])
                if array >= 0 and stack[frame, LEFT] > 1:
                    stack[frame, LEFT] -= 1
                    element += 1
                    place = array + 1
                    continue
            frame = depth - 1
            count = 0
            if array >= 0:
                place = array
                count, at = block(array, at, end, int(stack[frame, EMPTY]))
                if at < 0:
                    break
            if count == 0:
                if stack[frame, LIMIT] >= 0:
                    at, end = int(stack[frame, AT]), int(stack[frame, LIMIT])
                place, stop = int(stack[frame, RETURN]), int(stack[frame, STOP])
                element, depth = int(stack[frame, ELEMENT]), frame
                continue
            if table[array, ARGUMENT] == 0:
                stack[frame, EMPTY] += count
            level = int(table[array, SLOT])
            element = 0
            if level >= 0:
                element = int(sizes[level])
                if count > rooms[level] - element:
                    needed = element + count
                    break
                parents = int(bases[len(level_of) + level]) + element
                owner = int(stack[frame, ELEMENT])
                for nth in range(count):
                    memory[parents + nth] = owner
                sizes[level] = element + count
            stack[frame, LEFT] = count
            place, stop = array + 1, int(table[array, END])
            if depth >= MAX_NESTING:
                at = -NESTING
        if at < 0:
            forget(row)
            status[row], places[row] = -at, place - int(firsts[number])
        elif needed:
            forget(row)
            scratch[0], scratch[1] = int(table[place, SLOT]), needed
            return row
    return len(starts)
