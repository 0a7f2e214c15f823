"""Spark's record batches joined and cut into batches of the size that is sent at once."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

GATHERED_BYTES = 8 << 20
"""The bytes of rows that the producer gets at once.

So many that rows for a few dozen partitions still make batches of thousands of rows, which keeps
them cheap; Spark's own batches have 10,000 rows in all. So few that a task stays small: the
producer holds as much again, plus the records that wait in `buffer.memory`.
"""


def gathered(batches: Iterable[pa.RecordBatch], most_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches of about `most_bytes`: small ones joined, large ones cut.

    A larger row is alone in its batch. No batch is empty.
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
    """Return all batches as one. No reference to them stays while the caller uses it."""
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
