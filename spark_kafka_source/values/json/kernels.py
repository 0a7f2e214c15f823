"""Reader of JSON byte by byte, in plain Python that numba compiles (see `compiled`).

A row is sure if the result is the same as `meaning` gives. Otherwise it is unsure: bad, or only
unusual. Compiled code does not check indices, so the code never looks at bytes of another row.

The module is long because most of it is one function: numba compiles its inner functions with it,
and arrays that were passed to a function of their own would be counted as references at each call.
"""

import numpy as np
import numpy.typing as npt

from spark_kafka_source.records.varints import Integers, Octets

Doubles = npt.NDArray[np.float64]
Offsets = npt.NDArray[np.int32]

KIND, COLUMN, LEVEL, FIRST, COUNT, EXTRA = range(6)
"""Columns of `nodes`.

A struct's fields are rows of `fields` from FIRST on. EXTRA: see the kinds.
"""
NAME, NAME_END, NODE = range(3)
"""Columns of `fields`."""
SKIP, BOOLEAN, INTEGER, DOUBLE, TEXT, STRUCT, LIST, MAP = range(8)
"""Kinds of nodes. INTEGER: EXTRA is the largest value. TEXT: EXTRA says whether any value is taken
as its text. LIST, MAP: FIRST is the node of items, or of keys, and the node of values comes after
it. EXTRA is their level."""
ABSENT, THERE, ESCAPED, LONG = range(4)
"""States of an element: null, present, a text with escapes, or a number that must be read again."""
DONE = -1

OF_NODE, OF_ELEMENT, OF_FIELD, OF_START, OF_KIND, OF_COUNT = range(6)
"""Columns of the stack of open objects and arrays."""
OPENED_SIZE = 6
MAX_KEYS = 32
"""The most keys of a map that are compared with each other."""
MOST_LOOKS = 64
"""The most fields compared per byte of a row, in the search for fields by name."""
_QUOTE, _ESCAPE, _COMMA, _COLON, _MINUS, _POINT = 34, 92, 44, 58, 45, 46
_ESCAPES = (34, 92, 47, 98, 102, 110, 114, 116)
_OBJECT, _OBJECT_END, _ARRAY, _ARRAY_END, _ZERO, _NINE = 123, 125, 91, 93, 48, 57
_BAD = -1
_DIGITS = 18
"""The most digits that always fit into 64 bits."""
_EXACT, _MOST_POWER = 1 << 53, 22
"""Doubles hold integers up to this, and powers of ten up to this, exactly. So their product is
rounded only once."""
_FAR = 300
_TENTH = ((1 << 63) - 1) // 10
_MOST_DIGITS = 100


def tokenize(  # noqa: PLR0912, PLR0915, PLR0917  # numba takes arrays, one by one
    data: Octets,
    starts: Integers,
    ends: Integers,
    nodes: Integers,
    fields: Integers,
    names: Octets,
    bases: Integers,
    columns: Integers,
    capacity: Integers,
    sizes: Integers,
    kept: Integers,
    state: Octets,
    first: Integers,
    last: Integers,
    doubles: Doubles,
    powers: Doubles,
    opened: Integers,
    sure: Octets,
) -> int:
    """Read all rows. Return DONE, or a level that needs more room than its capacity.

    The value of a column for an element is at `bases[column] + element`. The columns of a level are
    `columns[level]` to `columns[level + 1]`. `doubles` shares its bytes with `first`. Elements of
    level 0 are rows. Their states must be ABSENT before.
    """

    def blank_end(at: int, end: int) -> int:
        while at < end and (data[at] == 32 or data[at] == 10 or data[at] == 13 or data[at] == 9):
            at += 1
        return at

    def hex_of(at: int) -> int:
        value = 0
        for place in range(at, at + 4):
            byte = int(data[place])
            if 48 <= byte <= 57:
                value = value * 16 + byte - 48
            elif 65 <= byte <= 70 or 97 <= byte <= 102:
                value = value * 16 + (byte & 7) + 9
            else:
                return _BAD
        return value

    def text_end(at: int, end: int) -> tuple[int, bool]:  # noqa: PLR0911, PLR0912
        """Return the end of a text from after its quote on, and whether it has escapes."""
        escaped = False
        while at < end:
            byte = int(data[at])
            if byte == _QUOTE:
                return at, escaped
            if byte == _ESCAPE:
                escaped = True
                if at + 1 >= end:
                    return _BAD, False
                byte = int(data[at + 1])
                at += 2
                if byte == 117:
                    if end - at < 4:
                        return _BAD, False
                    code = hex_of(at)
                    at += 4
                    if code < 0 or 0xDC00 <= code < 0xE000:
                        return _BAD, False
                    if 0xD800 <= code < 0xDC00:
                        if end - at < 6 or data[at] != _ESCAPE or data[at + 1] != 117:
                            return _BAD, False
                        code = hex_of(at + 2)
                        at += 6
                        if code < 0xDC00 or code >= 0xE000:
                            return _BAD, False
                elif byte not in _ESCAPES:
                    return _BAD, False
            elif byte < 32:
                return _BAD, False
            elif byte < 128:
                at += 1
            else:
                more, least, most = 0, 128, 191
                if 0xC2 <= byte < 0xE0:
                    more = 1
                elif 0xE0 <= byte < 0xF0:
                    more = 2
                    if byte == 0xE0:
                        least = 0xA0
                    elif byte == 0xED:
                        most = 0x9F
                elif 0xF0 <= byte < 0xF5:
                    more = 3
                    if byte == 0xF0:
                        least = 0x90
                    elif byte == 0xF4:
                        most = 0x8F
                else:
                    return _BAD, False
                if end - at <= more or data[at + 1] < least or data[at + 1] > most:
                    return _BAD, False
                for place in range(at + 2, at + 1 + more):
                    if data[place] < 128 or data[place] > 191:
                        return _BAD, False
                at += 1 + more
        return _BAD, False

    def digits_end(at: int, end: int) -> int:
        while at < end and _ZERO <= data[at] <= _NINE:
            at += 1
        return at

    def number_end(at: int, end: int) -> tuple[int, int, int]:
        """Return the end of a number, its whole digits, and all digits before its exponent."""
        if data[at] == _MINUS:
            at += 1
        after = digits_end(at, end)
        if after == at or (data[at] == _ZERO and after > at + 1):
            return _BAD, 0, 0
        whole = at = after
        if at < end and data[at] == _POINT:
            after = digits_end(at + 1, end)
            if after == at + 1:
                return _BAD, 0, 0
            at = after
        power = at
        if at < end and (data[at] == 101 or data[at] == 69):
            at += 1
            if at < end and (data[at] == 43 or data[at] == _MINUS):
                at += 1
            after = digits_end(at, end)
            if after == at:
                return _BAD, 0, 0
            at = after
        return at, whole, power

    def word_end(at: int, end: int) -> int:
        """Return the end of true, false or null."""
        if end - at >= 4:
            if (
                data[at] == 116
                and data[at + 1] == 114
                and data[at + 2] == 117
                and data[at + 3] == 101
            ):
                return at + 4
            if (
                data[at] == 110
                and data[at + 1] == 117
                and data[at + 2] == 108
                and data[at + 3] == 108
            ):
                return at + 4
            if (
                end - at >= 5 and data[at] == 102 and data[at + 1] == 97 and data[at + 2] == 108
                and data[at + 3] == 115 and data[at + 4] == 101
            ):  # fmt: skip
                return at + 5
        return _BAD

    def same_name(at: int, size: int, field: int) -> bool:
        name = int(fields[field, NAME])
        if int(fields[field, NAME_END]) - name != size:
            return False
        place = 0
        while place < size and data[at + place] == names[name + place]:
            place += 1
        return place == size

    levels = len(capacity)
    for row in range(len(starts)):
        at, end = int(starts[row]), int(ends[row])
        if at < 0 or end > len(data):
            continue
        for level in range(levels):
            kept[level] = sizes[level]
        depth, node, element, item, sound = 0, 0, row, 0, False
        looks = MOST_LOOKS * (end - at + MOST_LOOKS)
        at = blank_end(at, end)
        while True:
            # A value of `node` begins at `at`.
            if at >= end:
                break
            kind = int(nodes[node, KIND])
            column = int(nodes[node, COLUMN])
            place = int(bases[column]) + element
            byte = int(data[at])
            if kind != SKIP and state[place] != ABSENT:
                break
            if byte == _QUOTE:
                start = at + 1
                at, escaped = text_end(start, end)
                if at < 0:
                    break
                if kind == TEXT:
                    state[place] = ESCAPED if escaped else THERE
                    first[place], last[place] = start, at
                elif kind != SKIP:
                    break
                at += 1
            elif byte in (_OBJECT, _ARRAY):
                is_object = byte == _OBJECT
                if depth >= len(opened):
                    break
                if kind == TEXT:
                    if nodes[node, EXTRA] == 0:
                        break
                elif kind == LIST:
                    if is_object:
                        break
                elif kind in (STRUCT, MAP):
                    if not is_object:
                        break
                elif kind != SKIP:
                    break
                opened[depth, OF_NODE], opened[depth, OF_ELEMENT] = node, element
                opened[depth, OF_FIELD], opened[depth, OF_START] = 0, at
                opened[depth, OF_KIND], opened[depth, OF_COUNT] = byte, 0
                if kind in (LIST, MAP):
                    first[place] = last[place] = sizes[int(nodes[node, EXTRA])]
                if kind != SKIP:
                    state[place] = THERE
                depth += 1
                at += 1
            elif byte == _MINUS or _ZERO <= byte <= _NINE:
                start = at
                at, whole, power = number_end(start, end)
                if at < 0:
                    break
                if kind == INTEGER:
                    value, from_ = 0, start + (1 if byte == _MINUS else 0)
                    if whole != at or at - from_ > _DIGITS + 1:
                        break
                    for digit in range(from_, min(at, from_ + _DIGITS)):
                        value = value * 10 + int(data[digit]) - _ZERO
                    if at - from_ > _DIGITS:
                        unit = int(data[at - 1]) - _ZERO
                        if value > _TENTH or (value == _TENTH and unit > 7):
                            break
                        value = value * 10 + unit
                    if byte == _MINUS:
                        value = -value
                    most = int(nodes[node, EXTRA])
                    if value > most or value < -most - 1:
                        break
                    state[place], first[place] = THERE, value
                elif kind == DOUBLE:
                    value, count, exponent = 0, 0, 0
                    for digit in range(start + (1 if byte == _MINUS else 0), power):
                        if digit == whole:
                            continue
                        if count or data[digit] != _ZERO:
                            count += 1
                            if count <= _DIGITS:
                                value = value * 10 + int(data[digit]) - _ZERO
                    if power < at:
                        below = data[power + 1] == _MINUS
                        for digit in range(power + (2 if data[power + 1] < _ZERO else 1), at):
                            exponent = min(exponent * 10 + int(data[digit]) - _ZERO, 1 << 20)
                        if below:
                            exponent = -exponent
                    fraction = max(power - whole - 1, 0)
                    exponent -= fraction
                    if (
                        count <= _DIGITS
                        and value <= _EXACT
                        and -_MOST_POWER <= exponent <= _MOST_POWER
                    ):
                        number = float(value)
                        number = (
                            number * powers[exponent]
                            if exponent > 0
                            else number / powers[-exponent]
                        )
                        state[place] = THERE
                        doubles[place] = -number if byte == _MINUS else number
                    elif at - start <= _MOST_DIGITS and -_FAR <= exponent + count <= _FAR:
                        state[place], first[place], last[place] = LONG, start, at
                    else:
                        break
                elif kind == TEXT and nodes[node, EXTRA]:
                    state[place], first[place], last[place] = THERE, start, at
                elif kind != SKIP:
                    break
            else:
                start = at
                at = word_end(start, end)
                if at < 0:
                    break
                if byte != 110 and kind != SKIP:
                    if kind == BOOLEAN:
                        state[place], first[place] = THERE, 1 if byte == 116 else 0
                    elif kind == TEXT and nodes[node, EXTRA]:
                        state[place], first[place], last[place] = THERE, start, at
                    else:
                        break

            # After a value: close what it ends, or go on to the next value.
            going = True
            while depth:
                top = depth - 1
                at = blank_end(at, end)
                if at >= end:
                    going = False
                    break
                byte, is_object = int(data[at]), opened[top, OF_KIND] == _OBJECT
                parent = int(opened[top, OF_NODE])
                element = int(opened[top, OF_ELEMENT])
                parent_kind = int(nodes[parent, KIND])
                if byte == (_OBJECT_END if is_object else _ARRAY_END):
                    at += 1
                    depth -= 1
                    place = int(bases[int(nodes[parent, COLUMN])]) + element
                    if parent_kind == TEXT:
                        first[place], last[place] = opened[top, OF_START], at
                    elif parent_kind in (LIST, MAP):
                        last[place] = sizes[int(nodes[parent, EXTRA])]
                    continue
                if opened[top, OF_COUNT]:
                    if byte != _COMMA:
                        going = False
                        break
                    at = blank_end(at + 1, end)
                opened[top, OF_COUNT] = 1
                node = 0
                if parent_kind in (LIST, MAP):
                    level = int(nodes[parent, EXTRA])
                    if sizes[level] >= capacity[level]:
                        return level
                    item = int(sizes[level])
                    sizes[level] += 1
                    for column in range(int(columns[level]), int(columns[level + 1])):
                        state[int(bases[column]) + item] = ABSENT
                    node = int(nodes[parent, FIRST])
                if is_object:
                    if at >= end or data[at] != _QUOTE:
                        going = False
                        break
                    start = at + 1
                    at, escaped = text_end(start, end)
                    if at < 0 or (escaped and parent_kind not in (SKIP, TEXT)):
                        going = False
                        break
                    if parent_kind == STRUCT:
                        node, count = -1, int(nodes[parent, COUNT])
                        field = int(opened[top, OF_FIELD])
                        for _ in range(count):
                            if same_name(start, at - start, int(nodes[parent, FIRST]) + field):
                                node = int(fields[int(nodes[parent, FIRST]) + field, NODE])
                                break
                            field = field + 1 if field + 1 < count else 0
                            looks -= 1
                        if looks < 0:
                            going = False
                            break
                        if node >= 0:
                            opened[top, OF_FIELD] = field + 1 if field + 1 < count else 0
                    elif parent_kind == MAP:
                        keys = int(bases[int(nodes[node, COLUMN])])
                        mine = int(first[int(bases[int(nodes[parent, COLUMN])]) + element])
                        if item - mine >= MAX_KEYS:
                            going = False
                            break
                        for other in range(mine, item):
                            if int(last[keys + other]) - int(first[keys + other]) == at - start:
                                same = True
                                for byte_place in range(at - start):
                                    if (
                                        data[int(first[keys + other]) + byte_place]
                                        != data[start + byte_place]
                                    ):
                                        same = False
                                        break
                                if same:
                                    going = False
                                    break
                        if not going:
                            break
                        state[keys + item] = THERE
                        first[keys + item], last[keys + item] = start, at
                        node += 1
                    at = blank_end(at + 1, end)
                    if at >= end or data[at] != _COLON:
                        going = False
                        break
                    at = blank_end(at + 1, end)
                if parent_kind in (LIST, MAP):
                    element = item
                elif parent_kind != STRUCT:
                    node = -1
                break
            if not going:
                break
            if not depth:
                sound = blank_end(at, end) == end
                break
            if node < 0:
                node = len(nodes) - 1
        if sound:
            sure[row] = 1
        else:
            for level in range(1, levels):
                sizes[level] = kept[level]
            for column in range(int(columns[0]), int(columns[1])):
                state[int(bases[column]) + row] = ABSENT
    return DONE


def copy_texts(  # noqa: PLR0912, PLR0915, PLR0917
    data: Octets, state: Octets, first: Integers, last: Integers, offsets: Offsets, out: Octets
) -> int:
    """Write the texts of a column one after the other, and their offsets. Return their total size.

    `out` must have room for the texts with their escapes.
    """

    def hex_of(at: int) -> int:
        value = 0
        for place in range(at, at + 4):
            byte = int(data[place])
            value = value * 16 + (byte - 48 if byte <= 57 else (byte & 7) + 9)
        return value

    to = 0
    offsets[0] = 0
    for element in range(len(state)):
        at, end = int(first[element]), int(last[element])
        if state[element] == THERE:
            for place in range(at, end):
                out[to] = data[place]
                to += 1
        elif state[element] == ESCAPED:
            while at < end:
                byte = int(data[at])
                at += 1
                if byte != _ESCAPE:
                    out[to] = byte
                    to += 1
                    continue
                byte = int(data[at])
                at += 1
                if byte != 117:
                    if byte == 98:
                        byte = 8
                    elif byte == 102:
                        byte = 12
                    elif byte == 110:
                        byte = 10
                    elif byte == 114:
                        byte = 13
                    elif byte == 116:
                        byte = 9
                    out[to] = byte
                    to += 1
                    continue
                code = hex_of(at)
                at += 4
                if code < 128:
                    out[to] = code
                    to += 1
                    continue
                if code < 0x800:
                    out[to] = 0xC0 | code >> 6
                    to += 1
                else:
                    if 0xD800 <= code < 0xDC00:
                        code = 0x10000 + ((code & 0x3FF) << 10) + (hex_of(at + 2) & 0x3FF)
                        at += 6
                        out[to] = 0xF0 | code >> 18
                        out[to + 1] = 0x80 | code >> 12 & 63
                        to += 2
                    else:
                        out[to] = 0xE0 | code >> 12
                        to += 1
                    out[to] = 0x80 | code >> 6 & 63
                    to += 1
                out[to] = 0x80 | code & 63
                to += 1
        offsets[element + 1] = to
    return to
