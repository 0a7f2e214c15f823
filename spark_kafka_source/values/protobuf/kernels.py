"""Engine for one message after the other, in plain Python that numba compiles (see `compiled`).

It defines the meaning of the bytes. If a field comes twice, the last value counts, messages are
merged, and items are added. Compiled code does not check indices. So the engine compares each
position with the end of the message before it reads a byte, and checks the room before it writes an
element. The table is made by this package and trusted.

    a field of a message             its value
    tag, a varint                    VARINT   up to 10 bytes, of 7 bits each
    ┌───────────────┬───────────┐    FIXED64  8 bytes
    │ number        │ wire type │    SIZED    a varint with the size, and so many bytes
    └───────────────┴───────────┘    GROUP    fields, up to a tag END_GROUP of the same number
      all but 3 bits  3 bits         FIXED32  4 bytes

A packed list is one SIZED value, whose bytes are the items without tags.

The module is long because the loop over a message is one function: numba compiles it as a whole.

Most of this module is one function: numba compiles its inner functions with it, and arrays that
were passed to a function of their own would be counted as references at each call.
"""

import numpy as np
import numpy.typing as npt

from spark_kafka_source.records.varints import Integers, Octets
from spark_kafka_source.values.faults import WHOLE, Fault, Places
from spark_kafka_source.values.protobuf.program import (
    MAX_NESTING,
    MAX_SIZE_BYTES,
    SLOTS_OF_A_BYTE,
    SLOTS_OF_A_ROW,
    Node,
    Op,
    Row,
)
from spark_kafka_source.values.protobuf.schema import Wire
from spark_kafka_source.values.rows import NULL_ROW

NUMBER, WIRE, OP, SLOT, LEVEL, PRESENCE, BIT, CASE, CHILD, CLOSED = map(
    Row._fields.index,
    (
        "number", "wire", "op", "slot", "level", "presence", "bit", "case", "child", "closed",
    ),
)  # fmt: skip
FIRST, STOP, OF_LEVEL, LAST, IS_ENTRY = range(len(Node._fields))
UINT32, SINT32, SINT64, FLOAT, BYTES, MESSAGE = map(
    int, (Op.UINT32, Op.SINT32, Op.SINT64, Op.FLOAT, Op.BYTES, Op.MESSAGE)
)
VARINT, FIXED64, SIZED, FIXED32 = map(int, (Wire.VARINT, Wire.FIXED64, Wire.SIZED, Wire.FIXED32))
START_GROUP, END_GROUP = int(Wire.GROUP), int(Wire.END_GROUP)
TRUNCATED, BAD_VARINT, LENGTH, COUNT, NESTING, BAD_TAG, BAD_GROUP, NO_PROGRAM = map(
    int,
    (
        Fault.TRUNCATED, Fault.VARINT, Fault.LENGTH, Fault.COUNT, Fault.NESTING, Fault.TAG,
        Fault.GROUP, Fault.NO_PROGRAM,
    ),
)  # fmt: skip
LOW, MAX_LONG = (1 << 32) - 1, (1 << 63) - 1
LOWEST = -MAX_LONG - 1
LAST_SHIFT = 63
"""The shift of the last septet in a varint of 10 bytes."""

NODE, ELEMENT, END, NEXT, GROUP = range(5)
"""The fields of a stack frame for the surrounding message: its node, its element, its end, the
table row that is likely to come next, and its number if it is a group, else 0."""
FRAME = 5
MAX_DEPTH = MAX_NESTING - 1
"""The most messages around a message."""
WITHOUT_ROOM, TOO_MANY = -1, -2
"""In place of an element: its level is full, or the row has too many items for its bytes."""


def run(  # noqa: PLR0912, PLR0915, PLR0917  # a message's state are numbers, not objects
    data: Octets,
    words: Integers,
    starts: Integers,
    ends: Integers,
    program_of: Integers,
    first_row: int,
    table: Integers,
    nodes: Integers,
    closed: Integers,
    closed_firsts: Integers,
    widths: Integers,
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

    `closed` has the sorted numbers of each closed enum, from `closed_firsts` on. `widths` has the
    slots of each level that is wide, and 0 for other levels. The other arguments are as
    in `avro.kernels`.
    """

    # Each function returns the position after the value, or the negative fault.

    def varint(at: int, end: int) -> tuple[int, int]:
        if at < end and data[at] < 128:
            return int(data[at]), at + 1
        value, shift = 0, 0
        while shift < LAST_SHIFT:
            if at >= end:
                return 0, -TRUNCATED
            byte = int(data[at])
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value, at
            shift += 7
        if at >= end:
            return 0, -TRUNCATED
        byte = int(data[at])
        if byte > 127:
            return 0, -TRUNCATED if at + 1 == end else -BAD_VARINT
        return (value | LOWEST if byte & 1 else value), at + 1

    def is_tag(tag: int, size: int) -> bool:
        return size <= MAX_SIZE_BYTES and 8 <= tag <= LOW and tag & 7 <= FIXED32

    def size_of(at: int, end: int) -> tuple[int, int]:
        """Return a length that fits into the message, and the position after it."""
        size, after = varint(at, end)
        if after < 0:
            return 0, after
        if after - at > MAX_SIZE_BYTES or size < 0 or size > end - after:
            return 0, -LENGTH
        return size, after

    def passed(wire: int, at: int, end: int) -> int:
        """Return the position after a value that is not kept, and is no group."""
        if wire == VARINT:
            return varint(at, end)[1]
        if wire == SIZED:
            size, after = size_of(at, end)
            return after + size
        width = 8 if wire == FIXED64 else 4
        return at + width if width <= end - at else -TRUNCATED

    def passed_group(number: int, depth: int, at: int, end: int) -> int:
        """Return the position after a group that is not kept, with all groups in it."""
        groups, wire = 0, START_GROUP
        while True:
            if wire == START_GROUP:
                if depth + groups >= MAX_DEPTH:
                    return -NESTING
                stack[depth + groups, GROUP] = number
                groups += 1
            elif wire == END_GROUP:
                groups -= 1
                if stack[depth + groups, GROUP] != number:
                    return -BAD_GROUP
            else:
                at = passed(wire, at, end)
            if groups == 0 or at < 0:
                return at
            if at >= end:
                return -BAD_GROUP
            tag, after = varint(at, end)
            if after >= 0 and not is_tag(tag, after - at):
                return -BAD_TAG
            if after < 0:
                return after
            number, wire, at = tag >> 3, tag & 7, after

    def place_of(node: int, number: int, likely: int) -> int:
        """Return the table row of a field, or -1."""
        low, high = int(nodes[node, FIRST]), int(nodes[node, STOP])
        if likely < high and table[likely, NUMBER] == number:
            return likely
        stop = high
        while low < high:
            middle = (low + high) // 2
            if table[middle, NUMBER] < number:
                low = middle + 1
            else:
                high = middle
        return low if low < stop and table[low, NUMBER] == number else -1

    def is_closed_to(place: int, value: int) -> bool:
        """Whether the field's closed enum lacks this number."""
        which = int(table[place, CLOSED])
        number = value & LOW
        if number > LOW >> 1:
            number -= LOW + 1
        low, stop = int(closed_firsts[which]), int(closed_firsts[which + 1])
        high = stop
        while low < high:
            middle = (low + high) // 2
            if closed[middle] < number:
                low = middle + 1
            else:
                high = middle
        return not (low < stop and closed[low] == number)

    def value_at(place: int, at: int, end: int) -> tuple[int, int]:
        """Return a value, of any kind without a size, and the position after it."""
        wire, op = int(table[place, WIRE]), int(table[place, OP])
        if wire == VARINT:
            value, at = varint(at, end)
            if op == UINT32:
                value &= LOW
            elif op == SINT32:
                value &= LOW
                value = (value >> 1) ^ -(value & 1)
            elif op == SINT64:
                value = ((value >> 1) & MAX_LONG) ^ -(value & 1)
            return value, at
        if wire == FIXED64:
            return (int(words[at]), at + 8) if end - at >= 8 else (0, -TRUNCATED)
        if end - at < 4:
            return 0, -TRUNCATED
        value = 0
        for nth in range(4):
            value |= int(data[at + nth]) << 8 * nth
        if op == FLOAT:
            scratch[0] = value
            doubles[0] = singles[0]
            value = int(scratch[0])
        return value, at + 4

    def target(place: int, element: int) -> int:
        """Return the element to fill, a new one for a repeated field."""
        level = int(table[place, LEVEL])
        if level >= 0:
            size = int(sizes[level])
            if size >= rooms[level]:
                return WITHOUT_ROOM
            if widths[level] > 0:
                scratch[1] -= widths[level]
                if scratch[1] < 0:
                    return TOO_MANY
            memory[bases[len(level_of) + level] + size] = element
            sizes[level] = size + 1
            return size
        if table[place, CASE] >= 0:
            memory[bases[table[place, CASE]] + element] = int(table[place, NUMBER])
        elif table[place, PRESENCE] >= 0:
            memory[bases[table[place, PRESENCE]] + element] |= int(table[place, BIT])
        return element

    def clear(slot: int, element: int) -> None:
        if slot >= 0:
            memory[bases[slot] + element] = 0

    def cut(level: int, size: int) -> None:
        """Drop the elements of a level from `size` on, and set their slots to 0."""
        for slot in range(len(level_of)):
            if level_of[slot] == level:
                for element in range(size, sizes[level]):
                    memory[bases[slot] + element] = 0
        sizes[level] = size

    def restart(node: int, element: int) -> None:
        """Forget a message of a oneof, which begins anew after another member was set.

        Its items are the last ones of their levels, perhaps with dropped entries before them.
        """
        level = int(nodes[node, OF_LEVEL])
        for inner in range(node, int(nodes[node, LAST])):
            above = int(nodes[inner, OF_LEVEL])
            for place in range(int(nodes[inner, FIRST]), int(nodes[inner, STOP])):
                of = int(table[place, LEVEL])
                if of >= 0:
                    parents, size = int(bases[len(level_of) + of]), int(sizes[of])
                    least = element if above == level else int(sizes[above])
                    while size > before[of] and (
                        memory[parents + size - 1] >= least or memory[parents + size - 1] < 0
                    ):
                        size -= 1
                    if size < sizes[of]:
                        cut(of, size)
                elif above == level:
                    clear(int(table[place, SLOT]), element)
                    clear(int(table[place, PRESENCE]), element)
                    clear(int(table[place, CASE]), element)
                    if table[place, OP] == BYTES:
                        clear(int(table[place, SLOT]) + 1, element)

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
        if program_of[row] < 0:
            if program_of[row] != NULL_ROW:
                status[row], places[row] = NO_PROGRAM, WHOLE
            continue
        for level in range(len(sizes)):
            before[level] = sizes[level]
        at, end, packed_end = int(starts[row]), int(ends[row]), -1
        node, element, likely, depth, group = 0, row, int(nodes[0, FIRST]), 0, 0
        place, without_room, where = -1, -1, WHOLE
        scratch[1] = SLOTS_OF_A_ROW + SLOTS_OF_A_BYTE * (end - at)
        if at < 0 or end > len(data) or at > end:
            at = -TRUNCATED
        while at >= 0:
            if packed_end >= 0:
                if at == packed_end:
                    packed_end = -1
                    continue
                value, at = value_at(place, at, packed_end)
            elif at == end:
                if group > 0:
                    at, where = -BAD_GROUP, len(table) + node
                if depth == 0 or group > 0:
                    break
                depth -= 1
                node, element = int(stack[depth, NODE]), int(stack[depth, ELEMENT])
                end, likely = int(stack[depth, END]), int(stack[depth, NEXT])
                group = int(stack[depth, GROUP])
                continue
            else:
                tag, after = varint(at, end)
                if after < 0 or not is_tag(tag, after - at):
                    at, where = after if after < 0 else -BAD_TAG, len(table) + node
                    break
                number, wire, at = tag >> 3, tag & 7, after
                place = place_of(node, number, likely)
                if place >= 0:
                    likely = place if table[place, LEVEL] >= 0 else place + 1
                if place < 0 or wire != table[place, WIRE]:
                    where = len(table) + node
                    if wire == END_GROUP:
                        if number != group:
                            at = -BAD_GROUP
                            break
                        depth -= 1
                        node, element = int(stack[depth, NODE]), int(stack[depth, ELEMENT])
                        end, likely = int(stack[depth, END]), int(stack[depth, NEXT])
                        group = int(stack[depth, GROUP])
                        continue
                    where = place if place >= 0 else where
                    if wire == START_GROUP:
                        at = passed_group(number, depth, at, end)
                    elif (
                        wire != SIZED
                        or place < 0
                        or table[place, LEVEL] < 0
                        or table[place, OP] >= BYTES
                    ):
                        at = passed(wire, at, end)
                    else:
                        size, at = size_of(at, end)
                        packed_end = at + size
                    continue
                if wire == SIZED:
                    size, at = size_of(at, end)
                    value = at + size
                elif wire == START_GROUP:
                    value = end
                else:
                    value, at = value_at(place, at, end)
            if at < 0:
                where = place
                break
            if table[place, CLOSED] >= 0 and is_closed_to(place, value):
                if nodes[node, IS_ENTRY] == 1:
                    memory[bases[len(level_of) + nodes[node, OF_LEVEL]] + element] = -1
                continue
            slot, case = int(table[place, SLOT]), int(table[place, CASE])
            if table[place, OP] == MESSAGE and case >= 0:
                known = int(memory[bases[case] + element])
                if known != 0 and known != table[place, NUMBER]:
                    restart(int(table[place, CHILD]), element)
            filled = target(place, element)
            if filled == TOO_MANY:
                at, where = -COUNT, place
                break
            if filled < 0:
                without_room = int(table[place, LEVEL])
                break
            if table[place, OP] == MESSAGE:
                if depth == MAX_DEPTH:
                    at, where = -NESTING, len(table) + int(table[place, CHILD])
                    break
                stack[depth, NODE], stack[depth, ELEMENT] = node, element
                stack[depth, END], stack[depth, NEXT] = end, likely
                stack[depth, GROUP] = group
                group = int(table[place, NUMBER]) if table[place, WIRE] == START_GROUP else 0
                depth += 1
                node, element, end = int(table[place, CHILD]), filled, value
                likely = int(nodes[node, FIRST])
            elif packed_end < 0 and table[place, WIRE] == SIZED:
                memory[bases[slot] + filled] = at
                memory[bases[slot + 1] + filled] = value
                at = value
            else:
                memory[bases[slot] + filled] = value
        if at < 0:
            forget(row)
            status[row], places[row] = -at, where
        elif without_room >= 0:
            size = int(sizes[without_room])
            forget(row)
            scratch[0], scratch[1] = without_room, size + 1
            return row
    return len(starts)
