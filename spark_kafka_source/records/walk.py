"""The one loop over records that is interpreted: the chain of their lengths."""

from collections.abc import Iterable, Iterator

from spark_kafka_source.errors import ProtocolError
from spark_kafka_source.records.compression import TooLargeError
from spark_kafka_source.records.types import Bytes
from spark_kafka_source.records.varints import varint

STEP = [1 + (low >> 1) for low in range(128)] + [2 + (low >> 1) for low in range(128)]
HIGH_STEP = [high << 6 for high in range(128)]
"""How far the first byte of a length takes us, and its second: septets, shifted by the sign bit."""


def walk(data: Bytes, position: int, end: int) -> list[int]:
    """The positions of the records from `position` to `end`, then where the walk came out.

    That is `end`, where all is well; beyond it, where the last record is longer than what is left;
    or before it, where not even the last record's length could be read. A negative length is
    walked over as if it were not: the caller sees to the sign bits, all at once.
    """
    positions: list[int] = []
    append, step, high_step = positions.append, STEP, HIGH_STEP
    try:
        while position < end:
            append(position)
            low = data[position]
            if low < 128:
                position += step[low]
            elif (high := data[position + 1]) < 128:
                position += step[low] + high_step[high]
            else:
                position = _after_long(data, position)
    except (IndexError, ProtocolError):
        return positions
    append(position)
    return positions


def _after_long(data: Bytes, position: int) -> int:
    length, body = varint(data, position)
    return body + max(length, ~length)


def runs(
    buffers: Iterable[tuple[Bytes, int, int]], target_bytes: int, max_record_bytes: int
) -> Iterator[tuple[Bytes, list[int]]]:
    """The records in `buffers` (each a buffer, start and end), in runs of about `target_bytes`.

    Each run is a buffer and the positions in it of its records and of their end. Records may
    straddle buffers. Raises `TooLargeError` for one larger than `max_record_bytes`, and
    `ProtocolError` where the last is cut.
    """
    cut = bytearray()
    whole: Bytes
    for buffer, start, end in buffers:
        if cut:
            cut += memoryview(buffer)[start:end]
            whole, at, stop = cut, 0, len(cut)
        else:
            whole, at, stop = buffer, start, end
        while len(positions := _whole_records(whole, at, stop, target_bytes)) > 1:
            # Only the last of a run can reach beyond `target_bytes`.
            _check_size(positions[-1] - positions[-2], max_record_bytes)
            yield whole, positions
            at = positions[-1]
        if whole is not cut or at > 0:
            cut = bytearray(memoryview(whole)[at:stop])
        _check_size(len(cut), max_record_bytes)
    if cut:
        raise ProtocolError(f"its last {len(cut)} bytes are no whole record")


def _check_size(size: int, max_record_bytes: int) -> None:
    if size > max_record_bytes:
        raise TooLargeError(f"a record larger than {max_record_bytes} bytes (maxRecordBytes)")


def _whole_records(data: Bytes, position: int, end: int, target_bytes: int) -> list[int]:
    """As `walk`, but whole records only, and none from `target_bytes` on."""
    positions = walk(data, position, min(end, position + target_bytes))
    return positions if positions[-1] <= end else positions[:-1]
