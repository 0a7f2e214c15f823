"""The encoder of record batches for columns: no Python object per record.

numpy makes the varints of all records, Arrow joins them with keys and values, and the bytes that it
joined are the records of one batch after the other. `encode` says the same one record at a time, in
plain words: it is what the tests hold this one against. The format is
https://kafka.apache.org/documentation/#recordbatch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from spark_kafka_source.records.batch import HEADER_BYTES
from spark_kafka_source.records.byte_columns import ByteColumn
from spark_kafka_source.records.compression import NO_COMPRESSION, Compression
from spark_kafka_source.records.encode import NO_TIMESTAMP
from spark_kafka_source.records.encode_headers import join
from spark_kafka_source.records.encoded_batch import MAX_BATCH_BYTES, EncodedBatch
from spark_kafka_source.records.packing import OFFSET_TYPES, Varints, pack, varint_width
from spark_kafka_source.records.record_columns import RecordColumns, given_rows, record_columns
from spark_kafka_source.records.types import RowTooLargeError
from spark_kafka_source.records.varints import Integers

BATCH_BYTES = 1 << 20
REQUEST_BYTES = 1 << 20
JOINED_BYTES = 1 << 20
"""Batches that are smaller are joined together: the overhead is that of a join, not of a batch."""

MAX_RECORD_OVERHEAD = 21
"""The most that a record takes beside its key, value and headers, as Kafka's producer has it."""

ATTRIBUTES = Varints.of(0)
"""A record's attributes are no varint, but a byte of 0, which is the varint of 0."""
NO_HEADERS = Varints.of(0)
NULL = Varints.of(-1)


def encode_columns(
    columns: pa.RecordBatch,
    rows: Integers | None = None,
    *,
    bounds: Sequence[int] | Integers | None = None,
    compression: Compression = NO_COMPRESSION,
    max_batch_bytes: int = BATCH_BYTES,
    max_request_bytes: int = REQUEST_BYTES,
    timestamp_ms: int = NO_TIMESTAMP,
) -> Iterator[EncodedBatch]:
    """Batches of the records that `columns` hold, one after the other in the order of `rows`.

    Its columns are `key` and `value` (string or binary, large or not), `headers` (a list of structs
    of `key` and `value`) and `timestamp` (of ms, us or ns, or int64 of milliseconds); each may be
    missing, and any others are passed over. A null timestamp becomes `timestamp_ms`. `rows` are
    distinct indices into them, by default all rows. `bounds` cut `rows` into groups, those of one
    partition for instance: group n is `rows[bounds[n]:bounds[n + 1]]`, and no batch has records of
    two. A batch takes at most `max_batch_bytes` before its compression, but one record it always
    has.

    Before there is any batch it raises `ColumnTypeError` for a column of another type,
    `RowTooLargeError` for a record that might take more than `max_request_bytes`, reckoned as by
    Kafka's producer, and `UnencodableRowError` for a timestamp before -1 or a header without a key.
    """
    records = record_columns(columns, rows, timestamp_ms)
    layout = _layout(records)
    _check_sizes(layout, rows, min(max_request_bytes, MAX_BATCH_BYTES))
    groups = np.asarray([0, records.count] if bounds is None else bounds, np.int64)
    _check_groups(groups, records.count)
    cuts = _cuts(layout.most_bytes, groups, min(max_batch_bytes, MAX_BATCH_BYTES))
    return _encoded(records, layout, cuts, groups, compression)


def record_sizes(columns: pa.RecordBatch, *, max_request_bytes: int = REQUEST_BYTES) -> Integers:
    """The most bytes that each record may take, without its batch's header or a compression.

    Raises as `encode_columns` does, so that what was checked here can be encoded later.
    """
    records = record_columns(columns, None, NO_TIMESTAMP)
    layout = _layout(records)
    _check_sizes(layout, None, min(max_request_bytes, MAX_BATCH_BYTES))
    return layout.content_bytes + MAX_RECORD_OVERHEAD


@dataclass(frozen=True, slots=True)
class _Layout:
    """What each record takes, as far as it does not depend on which records share its batch."""

    content_bytes: Integers
    """The key, the value and the headers, each with its length or count."""
    most_bytes: Integers
    """The record's size, or a little more."""


def _layout(records: RecordColumns) -> _Layout:
    content = np.zeros(records.count, np.int64)
    if records.count == 0:
        return _Layout(content, content)
    for column in (records.key, records.value):
        if column is None:
            content += NULL.most
        else:
            content += Varints.of(column.lengths).widths
            content += np.maximum(column.lengths, 0)
    if records.headers is None:
        content += NO_HEADERS.most
    else:
        content += Varints.of(records.headers.counts).widths
        content += records.headers.encoded.lengths
    times = records.timestamp_ms
    longest_delta = 2 * (int(times.max()) - int(times.min())) + 1
    overhead = ATTRIBUTES.most + varint_width(longest_delta) + varint_width(2 * records.count)
    most_bytes = content + overhead
    most_bytes += varint_width(2 * int(most_bytes.max()))
    return _Layout(content, most_bytes)


def _check_sizes(layout: _Layout, rows: Integers | None, most: int) -> None:
    reckoned = layout.content_bytes + (MAX_RECORD_OVERHEAD + HEADER_BYTES)
    if reckoned.max(initial=0) > most:
        places = np.flatnonzero(reckoned > most)
        reason = (
            f"its record may take {reckoned[places[0]]} bytes in a request; "
            f"'kafka.max.request.size' is {most}"
        )
        raise RowTooLargeError(given_rows(places, rows), reason)


def _check_groups(bounds: Integers, count: int) -> None:
    if not len(bounds) or bounds[0] != 0 or bounds[-1] != count or (np.diff(bounds) < 0).any():
        raise ValueError(f"bounds {bounds.tolist()}: they must ascend from 0 to {count}")


def _cuts(most_bytes: Integers, groups: Integers, max_batch_bytes: int) -> list[int]:
    """Where batches begin, and the end of the last."""
    ends = np.cumsum(most_bytes)
    cuts = [0]
    for group_end in np.unique(groups[1:]).tolist():
        while cuts[-1] < group_end:
            before = int(ends[cuts[-1] - 1]) if cuts[-1] else 0
            room = before + max_batch_bytes - HEADER_BYTES
            fitting = int(np.searchsorted(ends, room, side="right"))
            cuts.append(min(max(fitting, cuts[-1] + 1), group_end))
    return cuts


def _encoded(
    records: RecordColumns,
    layout: _Layout,
    cuts: list[int],
    groups: Integers,
    compression: Compression,
) -> Iterator[EncodedBatch]:
    of_group = (np.searchsorted(groups, cuts, side="right") - 1).tolist()
    number = 0
    for joined in _joins(layout.most_bytes, cuts):
        pieces = _pieces(records, layout.content_bytes, joined)
        times = records.timestamp_ms[joined[0] : joined[-1]]
        last_ms = np.maximum.reduceat(times, np.array(joined[:-1]) - joined[0]).tolist()
        for (start, stop), piece, most_ms in zip(pairwise(joined), pieces, last_ms, strict=True):
            yield EncodedBatch(
                group=of_group[number],
                start=start,
                record_count=stop - start,
                base_timestamp_ms=int(records.timestamp_ms[start]),
                max_timestamp_ms=most_ms,
                codec=compression.codec,
                uncompressed_bytes=HEADER_BYTES + len(piece),
                payload=compression.compress(piece),
            )
            number += 1


def _joins(most_bytes: Integers, cuts: list[int]) -> Iterator[list[int]]:
    """The cuts of the batches that are joined at once, each time from the last one's end on."""
    ends = np.concatenate(([0], np.cumsum(most_bytes)))[cuts]
    first = 0
    while first < len(cuts) - 1:
        fitting = int(np.searchsorted(ends, ends[first] + JOINED_BYTES, side="right")) - 1
        last = max(fitting, first + 1)
        yield cuts[first : last + 1]
        first = last


def _pieces(
    records: RecordColumns, content_bytes: Integers, cuts: list[int]
) -> Iterator[memoryview]:
    """The records of each batch between two cuts, all of them joined at once.

    Another column to join costs more than most varints. So the byte 0 at a record's end, where it
    has no headers, stands before the next record; after the last, in a row of its own.
    """
    start, stop = cuts[0], cuts[-1]
    count, firsts = stop - start, np.array(cuts[:-1]) - start
    first = np.repeat(firsts.astype(np.int32), np.diff(cuts))
    times = records.timestamp_ms[start:stop]
    timestamp_delta = Varints.of(times - times[first])
    offset_delta = Varints.of(np.arange(count, dtype=np.int32) - first)
    body_bytes = content_bytes[start:stop] + (
        ATTRIBUTES.most + timestamp_delta.widths + offset_delta.widths
    )
    fields: list[Varints | ByteColumn] = [
        Varints.of(body_bytes),
        ATTRIBUTES,
        timestamp_delta,
        offset_delta,
        *_nullable(records.key, start, stop),
        *_nullable(records.value, start, stop),
    ]
    ending = b""
    if records.headers is None:
        fields.insert(0, NO_HEADERS)
        ending = b"\0"
    else:
        fields += (Varints.of(records.headers.counts[start:stop]), records.headers.encoded)
    whole = join(*_arrays(fields, start, stop, records.binary, ending))
    ends = np.frombuffer(whole.buffers()[1], OFFSET_TYPES[records.binary])
    bounds = ends[np.array(cuts) - start] + len(ending)
    data = memoryview(whole.buffers()[2]).cast("B")  # Arrow's own is of signed bytes
    for begin, end in pairwise(bounds.tolist()):
        yield data[begin:end]


def _nullable(column: ByteColumn | None, start: int, stop: int) -> list[Varints | ByteColumn]:
    return [NULL] if column is None else [Varints.of(column.lengths[start:stop]), column]


def _arrays(
    fields: Sequence[Varints | ByteColumn],
    start: int,
    stop: int,
    binary: pa.DataType,
    ending: bytes,
) -> Iterator[pa.Array]:
    """What is to be joined: neighbouring varints in one array, and `ending` after the first's."""
    varints: list[Varints] = []
    for field in [*fields, None]:
        if isinstance(field, Varints):
            varints.append(field)
            continue
        if varints:
            yield pack(varints, stop - start, binary, ending)
            varints, ending = [], b""
        if field is not None:
            yield field.with_empty_row(start, stop)
