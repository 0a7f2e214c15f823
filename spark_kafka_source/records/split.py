"""Split of a batch that a broker finds too large, or in which it finds invalid records."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from spark_kafka_source.records.batch import HEADER_BYTES
from spark_kafka_source.records.chunk import Chunk
from spark_kafka_source.records.column_encoder import encode_columns
from spark_kafka_source.records.columns import column, gather
from spark_kafka_source.records.compression import Compression
from spark_kafka_source.records.encoded_batch import MAX_BATCH_BYTES, EncodedBatch
from spark_kafka_source.records.headers import locate_headers
from spark_kafka_source.records.locate import locate
from spark_kafka_source.records.located import Located
from spark_kafka_source.records.types import Codec, RecordLimit
from spark_kafka_source.records.unpacking import MAX_CHUNK_BYTES, chunks
from spark_kafka_source.records.varints import Integers
from spark_kafka_source.topic_partition import TopicPartition

_OURS = TopicPartition("(a batch to be split)", 0)
"""The partition in the decoder's errors. A batch that is split has none."""

COMPRESSED_ROOM = 0.9
"""The part of a limit that is filled if records are compressed: parts of a batch compress worse."""


def split_batch(
    batch: EncodedBatch, most_bytes: int, compression: Compression
) -> list[EncodedBatch]:
    """Split a batch into batches of about `most_bytes`, none much smaller than another.

    The records keep their order, and a larger record is alone. All have the group of `batch`. The
    `start` of each is the place of its first record in the requested order of rows. There are at
    least two. Raises `ValueError` for a batch of one record.
    """
    if batch.record_count < 2:
        raise ValueError("a batch of one record cannot be split")
    records, sizes = _decoded(batch)
    ends = np.cumsum(sizes)
    room = 1 if compression.codec is Codec.NONE else COMPRESSED_ROOM
    part = (most_bytes - HEADER_BYTES) / max(batch.size - HEADER_BYTES, 1) * room
    return _cut(batch, records, list(_even_runs(ends, part * int(ends[-1]))), compression)


def _even_runs(ends: Integers, most: float) -> Iterator[tuple[int, int]]:
    """Yield the first record and the end of each part. `ends` are the ends of records in bytes."""
    start, before, total = 0, 0, int(ends[-1])
    while start < len(ends):
        left = total - before
        parts = max(math.ceil(left / max(most, 1)), 1 if start else 2)
        fitting = int(np.searchsorted(ends, before + left / parts, side="right"))
        stop = min(max(fitting, start + 1), len(ends) if start else len(ends) - 1)
        yield start, stop
        start, before = stop, int(ends[stop - 1])


def cut_batch(
    batch: EncodedBatch, runs: Sequence[tuple[int, int]], compression: Compression
) -> list[EncodedBatch]:
    """Return a batch for each run of records. A run is its first record's number and its end."""
    return _cut(batch, _decoded(batch)[0], runs, compression)


def _cut(
    batch: EncodedBatch,
    records: pa.RecordBatch,
    runs: Sequence[tuple[int, int]],
    compression: Compression,
) -> list[EncodedBatch]:
    parts = []
    for start, stop in runs:
        (encoded,) = encode_columns(
            records.slice(start, stop - start),
            compression=compression,
            max_batch_bytes=MAX_BATCH_BYTES,
            max_request_bytes=MAX_BATCH_BYTES,
        )
        parts.append(replace(encoded, group=batch.group, start=batch.start + start))
    return parts


def _decoded(batch: EncodedBatch) -> tuple[pa.RecordBatch, Integers]:
    """Return the batch's records as `encode_columns` takes them, and each record's bytes."""
    tables, sizes = zip(*map(_chunk_decoded, _chunks(batch)), strict=True)
    return pa.Table.from_batches(tables).combine_chunks().to_batches()[0], np.concatenate(sizes)


def _chunks(batch: EncodedBatch) -> list[Chunk]:
    """Return the batch's chunks. All but the last one are full."""
    decoded = chunks(
        batch.to_bytes(),
        topic_partition=_OURS,
        check_crcs=False,
        chunk_bytes=MAX_CHUNK_BYTES,
        limit=RecordLimit(MAX_BATCH_BYTES),
    )
    return [chunk for chunk in decoded if chunk.segments]


def _chunk_decoded(chunk: Chunk) -> tuple[pa.RecordBatch, Integers]:
    """Return the records of one chunk, and each record's bytes."""
    located = locate(chunk)
    columns = {
        "key": column("key", chunk, located),
        "value": column("value", chunk, located),
        "headers": _headers(chunk, located),
        "timestamp": pa.array(located.timestamp_ms),
    }
    sizes = np.diff(located.end, prepend=chunk.segments[0].start)
    return pa.RecordBatch.from_pydict(columns), sizes


def _headers(chunk: Chunk, located: Located) -> pa.Array:
    """Return the headers. Their keys are bytes, since a producer's keys need not be UTF-8."""
    headers = locate_headers(chunk, located)
    key, value = (gather(chunk.data, slices) for slices in (headers.key, headers.value))
    bounds = np.zeros(len(located.end) + 1, np.int32)
    np.cumsum(located.header_count, out=bounds[1:])
    pairs = pa.StructArray.from_arrays([key, value], ["key", "value"])
    return pa.ListArray.from_arrays(pa.array(bounds), pairs)
