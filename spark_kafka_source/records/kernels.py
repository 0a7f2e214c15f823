"""The loops of stage 2, which read every varint, in plain Python that numba compiles.

The loops only say whether all records are sound. Other code finds out what is wrong. Compiled loops
do not check indices, so the code checks each position before it reads a byte or writes a row.
The layout of a record is https://kafka.apache.org/documentation/#record.
"""

from spark_kafka_source.records.chunk import Segment
from spark_kafka_source.records.located import Mask, Positions
from spark_kafka_source.records.varints import Integers, Octets

START, END, RECORD_COUNT = map(Segment._fields.index, ("start", "end", "record_count"))
FIRST, BASE, LAST = map(Segment._fields.index, ("first_offset", "base_offset", "last_offset"))

MAX_POSITION = (1 << 31) - 1
MAX_LONG = (1 << 63) - 1
NO_VARINT = 1 << 62
"""The position after a varint that does not end: beyond every record."""

VARINT_SHIFT, VARLONG_SHIFT = 28, 63
"""The shift of the last septet in a varint of 5 bytes, and in a varlong of 10."""


# A record. v is a zigzag varint of at most 5 bytes, V one of at most 10, and b is one byte.
#
#   v  length             of all that follows
#   b  attributes         unused
#   V  timestamp_delta    added to the batch's base_timestamp
#   v  offset_delta       added to the batch's base_offset
#   v  key length         -1 for a null key, which has no bytes
#      key
#   v  value length       -1 for a null value
#      value
#   v  number of headers
#      for each header: v key length, key, v value length (-1 for null), value
def read_record(
    data: Octets, at: int, stop: int
) -> tuple[int, int, int, int, int, int, int, int, int]:
    """Return the end of the record that begins at `at`, and its fields; the end is -1 for none.

    The fields are the difference of the timestamp and that of the offset, the start and the length
    of the key and of the value, and the start and the number of the headers. A record is sound if
    its fields fill it, up to headers that fit in. `stop` is the end of its segment.
    """

    def varint(at: int, stop: int, last_shift: int) -> tuple[int, int]:
        # Inside the function: if the array was passed in, each call would count a reference to it.
        value, shift = 0, 0
        while at < stop and shift <= last_shift:
            byte = int(data[at])
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return ((value >> 1) & MAX_LONG) ^ -(value & 1), at
            shift += 7
        return 0, NO_VARINT

    length, body = varint(at, stop, VARINT_SHIFT)
    if length < 0 or length > stop - body:
        return -1, 0, 0, 0, 0, 0, 0, 0, 0
    end = body + length
    timestamp, after = varint(body + 1, end, VARLONG_SHIFT)  # after the unused attributes
    delta, after = varint(after, end, VARINT_SHIFT)
    key_length, key = varint(after, end, VARINT_SHIFT)
    value_length, value = varint(key + max(key_length, 0), end, VARINT_SHIFT)
    headers, headers_at = varint(value + max(value_length, 0), end, VARINT_SHIFT)
    is_sound = headers_at <= end and key_length >= -1 and value_length >= -1
    if headers < 0 or 2 * headers > end - headers_at or (headers == 0 and headers_at < end):
        is_sound = False
    return (
        end if is_sound else -1,
        *(timestamp, delta, key, key_length, value, value_length, headers_at, headers),
    )


def locate_records(  # noqa: PLR0917  # numba takes arrays, one by one
    data: Octets,
    segments: Integers,
    timestamp_delta: Integers,
    offset: Integers,
    key_bounds: Positions,
    key_null: Mask,
    value_bounds: Positions,
    value_null: Mask,
    headers_start: Integers,
    header_count: Integers,
    end: Integers,
) -> bool:
    """Fill one row per record, in the order of `segments`, whose rows have the fields of `Segment`.

    All arrays to fill have the same length, but `key_bounds` and `value_bounds` have twice that.
    Return False if the segments do not hold exactly this many records, or if a record is not sound.
    """

    row, previous = 0, -1
    if len(data) > MAX_POSITION:
        return False
    for segment in range(len(segments)):
        at, stop = int(segments[segment, START]), int(segments[segment, END])
        count = int(segments[segment, RECORD_COUNT])
        base = int(segments[segment, BASE])
        last_delta = int(segments[segment, LAST]) - base
        previous = max(previous, int(segments[segment, FIRST]) - 1)
        if at < 0 or stop > len(data) or count > len(offset) - row:
            return False
        for _ in range(count):
            fields = read_record(data, at, stop)
            at, timestamp, delta, key, key_length, value, value_length, headers_at, headers = fields
            if at < 0:
                return False
            if delta > last_delta or base + delta <= previous:
                return False
            previous = base + delta
            timestamp_delta[row], offset[row] = timestamp, previous
            key_bounds[2 * row], key_bounds[2 * row + 1] = key, key + max(key_length, 0)
            value_bounds[2 * row], value_bounds[2 * row + 1] = value, value + max(value_length, 0)
            key_null[row], value_null[row] = key_length < 0, value_length < 0
            headers_start[row], header_count[row], end[row] = headers_at, headers, at
            row += 1
        if at != stop:
            return False
    return row == len(offset)


def copy_bytes(to: Octets, at: int, data: Octets, start: int, count: int) -> None:
    """Copy `count` bytes. The compiled kernels have `memcpy` here, which is faster than a loop."""
    to[at : at + count] = data[start : start + count]


def copy_records(  # noqa: PLR0911, PLR0917
    data: Octets,
    segments: Integers,
    row: int,
    stamps: Integers,
    ends: Positions,
    null: Mask,
    keys: Octets,
    values: Octets,
) -> int:
    """Fill rows from `row` on with the records of segments. Return the next row.

    The arrays with several lines have a line for each field: `stamps` for the difference of the
    timestamp and for the offset, `ends` and `null` for key and value. `ends` has one more place: a
    key begins where the one before it ends. `keys` and `values` get the bytes. Return -1 if a
    record is not sound as in `locate_records`, or if there is no room.
    """

    if row < 0 or row > stamps.shape[1] or len(data) > MAX_POSITION:
        return -1
    key_at, value_at = int(ends[0, row]), int(ends[1, row])
    previous = int(stamps[1, row - 1]) if row else -1
    for segment in range(len(segments)):
        at, stop = int(segments[segment, START]), int(segments[segment, END])
        count = int(segments[segment, RECORD_COUNT])
        base = int(segments[segment, BASE])
        last_delta = int(segments[segment, LAST]) - base
        previous = max(previous, int(segments[segment, FIRST]) - 1)
        if at < 0 or stop > len(data) or count > stamps.shape[1] - row:
            return -1
        for _ in range(count):
            fields = read_record(data, at, stop)
            at, timestamp, delta, key, key_length, value, value_length, _, _ = fields
            if at < 0:
                return -1
            key_bytes, value_bytes = max(key_length, 0), max(value_length, 0)
            if delta > last_delta or base + delta <= previous:
                return -1
            if key_bytes > len(keys) - key_at or value_bytes > len(values) - value_at:
                return -1
            previous = base + delta
            stamps[0, row], stamps[1, row] = timestamp, previous
            null[0, row], null[1, row] = key_length < 0, value_length < 0
            copy_bytes(keys, key_at, data, key, key_bytes)
            copy_bytes(values, value_at, data, value, value_bytes)
            key_at, value_at = key_at + key_bytes, value_at + value_bytes
            row += 1
            ends[0, row], ends[1, row] = key_at, value_at
        if at != stop:
            return -1
    return row


def locate_headers(  # noqa: PLR0917
    data: Octets,
    headers_start: Integers,
    header_count: Integers,
    end: Integers,
    key_bounds: Positions,
    value_bounds: Positions,
    value_null: Mask,
) -> bool:
    """Fill one row per header, record after record, for the records that `locate_records` found.

    `value_null` has one row per header, the bounds have two. Return False if there are not exactly
    this many headers, or if a header is not sound.
    """

    def varint(at: int, stop: int) -> tuple[int, int]:
        value, shift = 0, 0
        while at < stop and shift <= VARINT_SHIFT:
            byte = int(data[at])
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return (value >> 1) ^ -(value & 1), at
            shift += 7
        return 0, NO_VARINT

    row = 0
    for record in range(len(end)):
        at, stop = int(headers_start[record]), int(end[record])
        count = int(header_count[record])
        if at < 0 or stop > min(len(data), MAX_POSITION) or count > len(value_null) - row:
            return False
        for _ in range(count):
            key_length, key = varint(at, stop)
            key_end = key + max(key_length, 0)
            value_length, value = varint(key_end, stop)
            at = value + max(value_length, 0)
            if key_length < 0 or value_length < -1 or at > stop:
                return False
            key_bounds[2 * row], key_bounds[2 * row + 1] = key, key_end
            value_bounds[2 * row], value_bounds[2 * row + 1] = value, at
            value_null[row] = value_length < 0
            row += 1
        if at != stop:
            return False
    return row == len(value_null)
