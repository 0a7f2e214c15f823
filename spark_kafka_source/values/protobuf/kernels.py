"""Engine for one message after the other, in plain Python that numba compiles (see `compiled`).

`walk` defines the meaning of the bytes. This engine leaves rare rows to `walk`: bad rows, and rows
with groups, with a oneof message that begins anew, or with a number that a closed enum lacks.
Compiled code does not check indices. So the engine compares each position with the end of the
message before it reads a byte, and checks the room before it writes an element. The table is made
by this package and trusted.
"""

import numpy as np
import numpy.typing as npt

from spark_kafka_source.records.varints import Integers, Octets
from spark_kafka_source.values.protobuf.program import Op, Row
from spark_kafka_source.values.protobuf.schema import Wire
from spark_kafka_source.values.protobuf.walk import MAX_NESTING, MAX_SIZE_BYTES

NUMBER, WIRE, OP, SLOT, LEVEL, PRESENCE, BIT, CASE, CHILD, CLOSED = map(
    Row._fields.index,
    (
        "number", "wire", "op", "slot", "level", "presence", "bit", "case", "child", "closed",
    ),
)  # fmt: skip
UINT32, SINT32, SINT64, FLOAT, MESSAGE = map(
    int, (Op.UINT32, Op.SINT32, Op.SINT64, Op.FLOAT, Op.MESSAGE)
)
VARINT, FIXED64, SIZED, FIXED32 = map(int, (Wire.VARINT, Wire.FIXED64, Wire.SIZED, Wire.FIXED32))
LOW, MAX_LONG = (1 << 32) - 1, (1 << 63) - 1
LOWEST = -MAX_LONG - 1
LAST_SHIFT = 63
"""The shift of the last septet in a varint of 10 bytes."""

NODE, ELEMENT, END, NEXT = range(4)
"""The fields of a stack frame for the surrounding message: its node, its element, its end, and the
table row that is likely to come next."""
FRAME = 4
MAX_DEPTH = MAX_NESTING - 1
"""The most messages around a message."""


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
    left: Octets,
) -> int:
    """Decode from `first_row` on. Return the row that lacks room, or the number of rows.

    `left` becomes 1 for each row that is left to `walk`; nothing of such a row is kept. `nodes` has
    for each node its first row of the table, and the one after its last. `closed` has the sorted
    numbers of each closed enum, from `closed_firsts` on. The other arguments are as in
    `values.kernels`.
    """

    # Each function returns the position after the value, or -1 to leave the row to `walk`.

    def varint(at: int, end: int) -> tuple[int, int]:
        value, shift = 0, 0
        while shift < LAST_SHIFT:
            if at >= end:
                return 0, -1
            byte = int(data[at])
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value, at
            shift += 7
        if at >= end or data[at] > 127:
            return 0, -1
        return (value | LOWEST if data[at] & 1 else value), at + 1

    def size_of(at: int, end: int) -> tuple[int, int]:
        """Return a length that fits into the message, and the position after it."""
        size, after = varint(at, end)
        if after < 0 or after - at > MAX_SIZE_BYTES or size < 0 or size > end - after:
            return 0, -1
        return size, after

    def passed(wire: int, at: int, end: int) -> int:
        """Return the position after a value that is not kept."""
        if wire == VARINT:
            return varint(at, end)[1]
        if wire == SIZED:
            size, after = size_of(at, end)
            return after + size if after >= 0 else -1
        width = 8 if wire == FIXED64 else 4 if wire == FIXED32 else MAX_LONG
        return at + width if width <= end - at else -1

    def place_of(node: int, number: int, likely: int) -> int:
        """Return the table row of a field, or -1."""
        low, high = int(nodes[node, 0]), int(nodes[node, 1])
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
        if which < 0:
            return False
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
            return (0, -1) if is_closed_to(place, value) else (value, at)
        if wire == FIXED64:
            return (int(words[at]), at + 8) if end - at >= 8 else (0, -1)
        if wire != FIXED32 or end - at < 4:
            return 0, -1
        value = 0
        for nth in range(4):
            value |= int(data[at + nth]) << 8 * nth
        if op == FLOAT:
            scratch[0] = value
            doubles[0] = singles[0]
            value = int(scratch[0])
        return value, at + 4

    def target(place: int, element: int) -> int:
        """Return the element to fill, a new one for a repeated field. -1 if there is no room."""
        level = int(table[place, LEVEL])
        if level >= 0:
            size = int(sizes[level])
            if size >= rooms[level]:
                return -1
            memory[bases[len(level_of) + level] + size] = element
            sizes[level] = size + 1
            return size
        if table[place, CASE] >= 0:
            memory[bases[table[place, CASE]] + element] = int(table[place, NUMBER])
        elif table[place, PRESENCE] >= 0:
            memory[bases[table[place, PRESENCE]] + element] |= int(table[place, BIT])
        return element

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
            continue
        for level in range(len(sizes)):
            before[level] = sizes[level]
        at, end, packed_end = int(starts[row]), int(ends[row]), -1
        node, element, likely, depth, place, without_room = 0, row, int(nodes[0, 0]), 0, -1, -1
        if at < 0 or end > len(data) or at > end:
            at = -1
        while at >= 0:
            if packed_end >= 0:
                if at == packed_end:
                    packed_end = -1
                    continue
                value, at = value_at(place, at, packed_end)
            elif at == end:
                if depth == 0:
                    break
                depth -= 1
                node, element = int(stack[depth, NODE]), int(stack[depth, ELEMENT])
                end, likely = int(stack[depth, END]), int(stack[depth, NEXT])
                continue
            else:
                tag, after = varint(at, end)
                wire = tag & 7
                if after < 0 or after - at > MAX_SIZE_BYTES or tag > LOW or tag < 8:
                    at = -1
                    break
                at = after
                place = place_of(node, tag >> 3, likely)
                if place < 0:
                    at = passed(wire, at, end)
                    continue
                likely = place if table[place, LEVEL] >= 0 else place + 1
                if wire != table[place, WIRE]:
                    if wire != SIZED or table[place, LEVEL] < 0 or table[place, OP] == MESSAGE:
                        at = passed(wire, at, end)
                    else:
                        size, at = size_of(at, end)
                        packed_end = at + size
                    continue
                if wire == SIZED:
                    size, at = size_of(at, end)
                    value = at + size
                else:
                    value, at = value_at(place, at, end)
            if at < 0:
                break
            slot, case = int(table[place, SLOT]), int(table[place, CASE])
            if table[place, OP] == MESSAGE and case >= 0:
                known = int(memory[bases[case] + element])
                if known != 0 and known != table[place, NUMBER]:
                    at = -1
                    break
            filled = target(place, element)
            if filled < 0:
                without_room = int(table[place, LEVEL])
                break
            if table[place, OP] == MESSAGE:
                if depth == MAX_DEPTH:
                    at = -1
                    break
                stack[depth, NODE], stack[depth, ELEMENT] = node, element
                stack[depth, END], stack[depth, NEXT] = end, likely
                depth += 1
                node, element, end = int(table[place, CHILD]), filled, value
                likely = int(nodes[node, 0])
            elif packed_end < 0 and table[place, WIRE] == SIZED:
                memory[bases[slot] + filled] = at
                memory[bases[slot + 1] + filled] = value
                at = value
            else:
                memory[bases[slot] + filled] = value
        if at < 0:
            forget(row)
            left[row] = 1
        elif without_room >= 0:
            size = int(sizes[without_room])
            forget(row)
            scratch[0], scratch[1] = without_room, size + 1
            return row
    return len(starts)
