"""The writer of batches and of streams: the methods that Spark calls in tasks and on the driver."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.spark.redaction import hiding
from spark_kafka_source.spark.sink.attempt import Attempt, Written
from spark_kafka_source.spark.sink.columns import SinkColumns
from spark_kafka_source.spark.sink.gathering import GATHERED_BYTES, gathered
from spark_kafka_source.spark.sink.guarantee import Begun, Guarantee, Messages
from spark_kafka_source.spark.sink.options import SinkOptions
from spark_kafka_source.spark.sink.sending import Sending
from spark_kafka_source.spark.worker import frozen_imports


class KafkaWriter(DataSourceStreamWriter, DataSourceArrowWriter):
    """Write record batches to Kafka. Pickled into every task, and into the process that commits.

    Spark 4.0 has an Arrow writer only for batches. But it gives record batches to a stream's writer
    that is such a writer, too. So this class is both, for all versions.
    """

    def __init__(
        self, options: SinkOptions, columns: SinkColumns, guarantee: Guarantee[Any]
    ) -> None:
        self._options, self._columns, self._guarantee = options, columns, guarantee

    # -- in a task -------------------------------------------------------------------------------

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write the rows of one partition. Return once the brokers have all of them."""
        frozen_imports.freeze()
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
        except BaseException:
            self._guarantee.give_up(begun)
            raise
        written = Written(
            attempt,
            sending.row_count,
            sending.byte_count,
            sending.topic,
            fingerprint=sending.fingerprint,
        )
        return self._guarantee.end(begun, written)

    def _first_sent(self, begun: Begun, attempt: Attempt, first: pa.RecordBatch) -> Sending:
        """Send the first rows. If it is a guess where to, wait until brokers agree."""
        while True:
            sending = Sending(begun.producer, self._options, attempt.partition)
            try:
                sending.send(first)
                if begun.is_guess:
                    sending.finish()
            except KafkaError as error:
                if not begun.is_guess:
                    raise
                self._guarantee.begin_anew(begun, error)
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
