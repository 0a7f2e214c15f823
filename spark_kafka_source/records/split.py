"""A batch made two: what a producer does when a broker finds it too large."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from spark_kafka_source.records.chunk import MAX_CHUNK_BYTES, Chunk, chunks
from spark_kafka_source.records.column_encoder import encode_columns
from spark_kafka_source.records.columns import column, gather
from spark_kafka_source.records.compression import Compression
from spark_kafka_source.records.encoded_batch import MAX_BATCH_BYTES, EncodedBatch
from spark_kafka_source.records.headers import locate_headers
from spark_kafka_source.records.locate import locate
from spark_kafka_source.records.located import Located
from spark_kafka_source.records.types import RecordLimit
from spark_kafka_source.records.varints import Integers
from spark_kafka_source.topic_partition import TopicPartition

_OURS = TopicPartition("(a batch to be split)", 0)
"""The decoder's errors name a partition, and have none to tell of here."""


def split_batch(batch: EncodedBatch, compression: Compression) -> tuple[EncodedBatch, EncodedBatch]:
    """The records of `batch` in their order, as two batches of about as many bytes each.

    They are of its group, and begin where its records do in the order that was asked for.
    Raises `ValueError` for a batch of one record.
    """
    if batch.record_count < 2:
        raise ValueError("a batch of one record cannot be split")
    tables, sizes = zip(*map(_decoded, _chunks(batch)), strict=True)
    records = pa.Table.from_batches(tables).combine_chunks().to_batches()[0]
    ends = np.cumsum(np.concatenate(sizes))
    middle = 1 + int(np.abs(2 * ends[:-1] - ends[-1]).argmin())
    first, second = encode_columns(
        records,
        bounds=[0, middle, batch.record_count],
        compression=compression,
        max_batch_bytes=MAX_BATCH_BYTES,
        max_request_bytes=MAX_BATCH_BYTES,
    )
    return (
        replace(first, group=batch.group, start=batch.start),
        replace(second, group=batch.group, start=batch.start + middle),
    )


def _chunks(batch: EncodedBatch) -> list[Chunk]:
    """All but the last of a batch's chunks are full."""
    found = chunks(
        batch.to_bytes(),
        topic_partition=_OURS,
        check_crcs=False,
        chunk_bytes=MAX_CHUNK_BYTES,
        limit=RecordLimit(MAX_BATCH_BYTES),
    )
    return [chunk for chunk in found if chunk.segments]


def _decoded(chunk: Chunk) -> tuple[pa.RecordBatch, Integers]:
    """The chunk's records as `encode_columns` takes them, and the bytes of each."""
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
    """With keys of bytes: those of a producer need not be UTF-8."""
    found = locate_headers(chunk, located)
    key, value = (gather(chunk.data, each) for each in (found.key, found.value))
    bounds = np.zeros(len(located.end) + 1, np.int32)
    np.cumsum(located.header_count, out=bounds[1:])
    pairs = pa.StructArray.from_arrays([key, value], ["key", "value"])
    return pa.ListArray.from_arrays(pa.array(bounds), pairs)
