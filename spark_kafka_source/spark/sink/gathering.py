"""Spark's record batches made into larger and smaller ones: what is sent at a time."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

GATHERED_BYTES = 8 << 20
"""How many bytes of rows are handed to the producer at a time.

Enough that rows for a few dozen partitions still make batches of thousands, which is what makes
them cheap; Spark's own have 10,000 rows together. Few enough that a task stays small: the producer
holds as much again, and what `buffer.memory` lets wait.
"""


def gathered(batches: Iterable[pa.RecordBatch], most_bytes: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of about `most_bytes`: small ones joined, large ones cut.

    A row that has more is alone in its batch. None is empty.
    """
    waiting: list[pa.RecordBatch] = []
    waiting_bytes = 0
    for batch in batches:
        for piece in _pieces(batch, most_bytes):
            if waiting and waiting_bytes + piece.nbytes > most_bytes:
                yield _joined(waiting)
                waiting_bytes = 0
            waiting.append(piece)
            waiting_bytes += piece.nbytes
    if waiting:
        yield _joined(waiting)


def _joined(waiting: list[pa.RecordBatch]) -> pa.RecordBatch:
    """All of them as one; none is held on to while the caller has that one."""
    joined = pa.concat_batches(waiting)
    waiting.clear()
    return joined


def _pieces(batch: pa.RecordBatch, most_bytes: int) -> Iterator[pa.RecordBatch]:
    if batch.num_rows <= 1 or batch.nbytes <= most_bytes:
        if batch.num_rows:
            yield batch
        return
    half = batch.num_rows // 2
    yield from _pieces(batch.slice(0, half), most_bytes)
    yield from _pieces(batch.slice(half), most_bytes)
