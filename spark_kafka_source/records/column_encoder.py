"""Encoder from columns to record batches, without a Python object per record.

numpy makes the varints of all records. Arrow joins them with the keys and values. The joined bytes
are the records of one batch after the other. `encode` does the same for one record at a time, in
plain Python; the tests compare this encoder with it. The format is
https://kafka.apache.org/documentation/#recordbatch.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from spark_kafka_source.records.batch import HEADER_BYTES
from spark_kafka_source.records.byte_columns import ByteColumn, GatheredColumn
from spark_kafka_source.records.compression import NO_COMPRESSION, Compression
from spark_kafka_source.records.encode import NO_TIMESTAMP
from spark_kafka_source.records.encode_headers import join
from spark_kafka_source.records.encoded_batch import MAX_BATCH_BYTES, EncodedBatch
from spark_kafka_source.records.packing import (
    OFFSET_TYPES,
    PackedColumn,
    Varints,
    pack,
    varint_width,
)
from spark_kafka_source.records.record_columns import RecordColumns, given_rows, record_columns
from spark_kafka_source.records.types import RowTooLargeError
from spark_kafka_source.records.varints import Integers

BATCH_BYTES = 1 << 20
REQUEST_BYTES = 1 << 20
JOINED_BYTES = 1 << 20
"""Batches are joined together up to this size, since the overhead is per join, not per batch."""

SPAN_ROWS = 1 << 16
"""Varints are made for this many records at once, or for more if one batch is larger."""

MAX_RECORD_OVERHEAD = 21
"""The most bytes of a record besides its key, value and headers, as Kafka's producer counts it."""

ATTRIBUTES = Varints.of(0)
"""A record's attributes: one byte of 0, which is also the varint of 0."""
NO_HEADERS = Varints.of(0)
NO_HEADERS_BYTES = b"\0"
NULL = Varints.of(-1)

Bytes = ByteColumn | GatheredColumn
Column = Bytes | PackedColumn
"""A column to join. Its `part` returns a range of rows, and one row more."""


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
    """Encode the records in `columns`, and yield batches in the order of `rows`.

    The columns are `key` and `value` (string or binary, large or not), `headers` (a list of structs
    of `key` and `value`) and `timestamp` (of ms, us or ns, or int64 of milliseconds). Each may be
    missing. Other columns are ignored. A null timestamp becomes `timestamp_ms`. `rows` are distinct
    row indices, by default all rows. `bounds` cut `rows` into groups, for instance by partition:
    group n is `rows[bounds[n]:bounds[n + 1]]`. No batch has records of two groups. A batch takes at
    most `max_batch_bytes` before compression, but always holds at least one record.

    All errors are raised before the first batch: `ColumnTypeError` for a column of another type,
    `RowTooLargeError` for a record that might take more than `max_request_bytes` as Kafka's
    producer estimates it, and `UnencodableRowError` for a timestamp before -1 or a header without a
    key.
    """
    records = record_columns(columns, rows, timestamp_ms)
    layout = _layout(records)
    _check_sizes(layout, rows, min(max_request_bytes, MAX_BATCH_BYTES))
    groups = np.asarray([0, records.count] if bounds is None else bounds, np.int64)
    _check_groups(groups, records.count)
    if records.count == 0:
        return iter(())
    cuts = _cuts(layout.ends, groups, min(max_batch_bytes, MAX_BATCH_BYTES))
    return _encoded(records, layout, cuts, groups, compression)


def record_sizes(columns: pa.RecordBatch, *, max_request_bytes: int = REQUEST_BYTES) -> Integers:
    """Return the most bytes that each record may take, without batch header or compression.

    Raises as `encode_columns` does: records that pass here can be encoded later.
    """
    records = record_columns(columns, None, NO_TIMESTAMP)
    layout = _layout(records)
    _check_sizes(layout, None, min(max_request_bytes, MAX_BATCH_BYTES))
    return layout.content_bytes + MAX_RECORD_OVERHEAD


@dataclass(frozen=True, slots=True)
class _Layout:
    """Sizes of each record's parts that do not depend on the other records of its batch."""

    key_length: Varints
    value_length: Varints
    header_count: Varints
    content_bytes: Integers
    """The size in bytes of the key, the value and the headers, with their lengths and count."""
    ends: Integers
    """The end of each record if all records have their largest size. The first element is 0."""


def _layout(records: RecordColumns) -> _Layout:
    content = np.zeros(records.count, np.int64)
    if records.count == 0:
        return _Layout(NULL, NULL, NO_HEADERS, content, np.zeros(1, np.int64))
    key_length, value_length = (
        NULL if column is None else Varints.of(column.lengths)
        for column in (records.key, records.value)
    )
    headers = records.headers
    header_count = NO_HEADERS if headers is None else Varints.of(headers.counts)
    for lengths in (key_length, value_length, header_count):
        content += lengths.widths
    for column in (records.key, records.value, None if headers is None else headers.encoded):
        if column is not None:
            content += np.maximum(column.lengths, 0)
    times = records.timestamp_ms
    longest_delta = 2 * (int(times.max()) - int(times.min())) + 1
    overhead = ATTRIBUTES.most + varint_width(longest_delta) + varint_width(2 * records.count)
    overhead += varint_width(2 * (int(content.max()) + overhead))
    ends = np.arange(records.count + 1, dtype=np.int64) * overhead
    ends[1:] += np.cumsum(content)
    return _Layout(key_length, value_length, header_count, content, ends)


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


def _cuts(ends: Integers, groups: Integers, max_batch_bytes: int) -> list[int]:
    """Return the start of each batch, and the end of the last. `ends` has 0, then record ends."""
    cuts = [0]
    for group_end in groups[1:].tolist():
        while cuts[-1] < group_end:
            room = int(ends[cuts[-1]]) + max_batch_bytes - HEADER_BYTES
            fitting = int(np.searchsorted(ends, room, side="right")) - 1
            cuts.append(min(max(fitting, cuts[-1] + 1), group_end))
    return cuts


def _encoded(
    records: RecordColumns,
    layout: _Layout,
    cuts: list[int],
    groups: Integers,
    compression: Compression,
) -> Iterator[EncodedBatch]:
    starts = cuts[:-1]
    of_group = (np.searchsorted(groups, starts, side="right") - 1).tolist()
    first_ms = records.timestamp_ms[starts].tolist()
    last_ms = np.maximum.reduceat(records.timestamp_ms, starts).tolist()
    pieces = _pieces(records, layout, cuts)
    facts = zip(pairwise(cuts), of_group, first_ms, last_ms, pieces, strict=True)
    for (start, stop), group, base_ms, most_ms, piece in facts:
        yield EncodedBatch(
            group=group,
            start=start,
            record_count=stop - start,
            base_timestamp_ms=base_ms,
            max_timestamp_ms=most_ms,
            codec=compression.codec,
            uncompressed_bytes=HEADER_BYTES + len(piece),
            payload=compression.compress(piece),
        )


def _pieces(records: RecordColumns, layout: _Layout, cuts: list[int]) -> Iterator[memoryview]:
    """Yield the records of each batch, encoded."""
    for span in _runs(cuts, np.array(cuts), SPAN_ROWS):
        columns = list(_columns(records, layout, span))
        for joined in _runs(span, layout.ends[span], JOINED_BYTES):
            yield from _joined(columns, records, joined)


def _runs(cuts: list[int], ends: Integers, most: int) -> Iterator[list[int]]:
    """Yield runs of cuts: of one batch, or of as many batches as take `most` together.

    `ends` holds for each cut the total of all batches before it.
    """
    first = 0
    while first < len(cuts) - 1:
        fitting = int(np.searchsorted(ends, ends[first] + most, side="right")) - 1
        last = max(fitting, first + 1)
        yield cuts[first : last + 1]
        first = last


def _columns(records: RecordColumns, layout: _Layout, cuts: list[int]) -> Iterator[Column]:
    """Yield the columns to join into these batches, side by side.

    Joining one more column costs more than most varints. So the byte 0 that ends a record without
    headers is put before the next record. After the last record it is in a row of its own.
    """
    start, stop = cuts[0], cuts[-1]
    first = np.repeat(np.array(cuts[:-1], np.int32) - start, np.diff(cuts))
    times = records.timestamp_ms[start:stop]
    timestamp_delta = Varints.of(times - times[first] if times.min() < times.max() else 0)
    offset_delta = Varints.of(np.arange(stop - start, dtype=np.int32) - first)
    body_bytes = layout.content_bytes[start:stop] + ATTRIBUTES.most
    body_bytes += timestamp_delta.widths
    body_bytes += offset_delta.widths
    fields = [
        Varints.of(body_bytes),
        ATTRIBUTES,
        timestamp_delta,
        offset_delta,
        layout.key_length.rows(start, stop),
        records.key,
        layout.value_length.rows(start, stop),
        records.value,
    ]
    if records.headers is None:
        return _packed([NO_HEADERS, *fields], records.binary, start, stop, NO_HEADERS_BYTES)
    fields += (layout.header_count.rows(start, stop), records.headers.encoded)
    return _packed(fields, records.binary, start, stop)


def _packed(
    fields: Iterable[Varints | Bytes | None],
    binary: pa.DataType,
    start: int,
    stop: int,
    ending: bytes = b"",
) -> Iterator[Column]:
    """Pack neighbouring varints into one column, with `ending` after the rows of the first."""
    varints: list[Varints] = []
    for field in fields:
        if isinstance(field, Varints):
            varints.append(field)
        elif field is not None:
            yield PackedColumn(pack(varints, stop - start, binary, ending), start)
            yield field
            varints, ending = [], b""
    if varints:
        yield PackedColumn(pack(varints, stop - start, binary, ending), start)


def _joined(
    columns: Iterable[Column], records: RecordColumns, cuts: list[int]
) -> Iterator[memoryview]:
    """Join these batches in one go, and yield the records of each."""
    start, stop = cuts[0], cuts[-1]
    whole = join(*(column.part(start, stop) for column in columns))
    ends = np.frombuffer(whole.buffers()[1], OFFSET_TYPES[records.binary])
    before = 0 if records.headers else len(NO_HEADERS_BYTES)
    bounds = ends[np.array(cuts) - start] + before
    data = memoryview(whole.buffers()[2]).cast("B")  # Arrow's own view has signed bytes
    for begin, end in pairwise(bounds.tolist()):
        yield data[begin:end]
