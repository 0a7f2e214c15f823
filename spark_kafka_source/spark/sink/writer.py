"""The writer of batches and of streams: the methods that Spark calls in tasks and on the driver."""

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)

from spark_kafka_source.errors import BootstrapError, KafkaError
from spark_kafka_source.net import Deadline
from spark_kafka_source.spark.python_worker import frozen_imports, log_with_query
from spark_kafka_source.spark.redaction import hiding
from spark_kafka_source.spark.sink.columns import SinkColumns
from spark_kafka_source.spark.sink.guarantee import AtLeastOnce, Attempt, Begun, Messages, Written
from spark_kafka_source.spark.sink.options import SinkOptions
from spark_kafka_source.spark.sink.sending import Sending

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


class KafkaWriter(DataSourceStreamWriter, DataSourceArrowWriter):
    """Write record batches to Kafka. Pickled into every task, and into the process that commits.

    Spark 4.0 has an Arrow writer only for batches. But it gives record batches to a stream's writer
    that is such a writer, too. So this class is both, for all versions.
    """

    def __init__(self, options: SinkOptions, columns: SinkColumns, guarantee: AtLeastOnce) -> None:
        self._options, self._columns, self._guarantee = options, columns, guarantee

    # -- in a task -------------------------------------------------------------------------------

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write the rows of one partition. Return once the brokers have all of them."""
        frozen_imports.freeze()
        log_with_query()
        attempt = Attempt.current()
        with hiding(self._options.hidden):
            self._guarantee.settle(attempt)
            selected = map(self._columns.select, iterator)
            batches = gathered(selected, GATHERED_BYTES)
            first = next(batches, None)
            if first is None:
                return Written(attempt, 0, 0)
            return self._write(attempt, first, batches)

    def _write(
        self, attempt: Attempt, first: pa.RecordBatch, batches: Iterator[pa.RecordBatch]
    ) -> Written:
        begun = self._guarantee.begin(attempt)
        try:
            sending = self._first_sent(begun, attempt, first)
            for batch in batches:
                sending.send(batch)
            sending.finish()
            rows, size = sending.row_count, sending.byte_count
            return begun.end(Written(attempt, rows, size, fingerprint=sending.fingerprint))
        except BaseException:
            begun.give_up()
            raise

    def _first_sent(self, begun: Begun, attempt: Attempt, first: pa.RecordBatch) -> Sending:
        """Send the first rows. If it is a guess where to, wait until brokers agree.

        In an outage, a process that has met no broker yet waits as long as rows that are sent.
        """
        patience = Deadline.after_ms(self._options.producer.delivery_timeout_ms)
        while True:
            sending = Sending(begun.producer, self._options, attempt)
            try:
                sending.send(first)
                if begun.is_guess:
                    sending.finish()
            except BootstrapError:
                if not attempt.goes_on or patience.expired:
                    raise
            except KafkaError as error:
                if not begun.is_guess:
                    raise
                begun.begin_anew(error)
            else:
                return sending

    # -- on the driver ---------------------------------------------------------------------------

    def commit(
        self, messages: Sequence[WriterCommitMessage | None], batchId: int | None = None
    ) -> None:
        """End a write after all tasks have written. Spark makes a new stream writer for this."""
        with hiding(self._options.hidden):
            self._guarantee.commit(cast(Messages, messages), batchId)

    def abort(
        self, messages: Sequence[WriterCommitMessage | None], batchId: int | None = None
    ) -> None:
        """End a write after a task failed for good, `commit` raised, or the query was stopped."""
        with hiding(self._options.hidden):
            self._guarantee.abort(cast(Messages, messages), batchId)
