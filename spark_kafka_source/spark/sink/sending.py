"""An attempt's rows on their way to the brokers."""

import re
from collections import deque

import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.options.kinds import TOPIC_NAME, TOPIC_NAMES
from spark_kafka_source.producer import ColumnsFuture, KafkaProducer, RefusedRowsError
from spark_kafka_source.records import UnencodableRowError
from spark_kafka_source.records.fingerprint import FINGERPRINTS, fingerprint_of, size_of
from spark_kafka_source.secret import shown
from spark_kafka_source.spark.conditions import null_topic
from spark_kafka_source.spark.sink.guarantee import Attempt
from spark_kafka_source.spark.sink.options import DeliveryGuarantee, SinkOptions

# The producer fails records after `delivery.timeout.ms`. This ends a wait if it does not.
_GRACE_SECONDS = 30.0


class Sending:
    """Give rows to a producer, and raise as soon as one is known not to be written."""

    def __init__(self, producer: KafkaProducer, options: SinkOptions, attempt: Attempt) -> None:
        """`attempt` is the attempt of the task that has the rows."""
        self._producer, self._topic, self._partition = producer, options.topic, attempt.partition
        self._patience_seconds = options.producer.delivery_timeout_ms / 1000 + _GRACE_SECONDS
        self._on_their_way: deque[tuple[int, ColumnsFuture]] = deque()
        """Each future follows the number of its first row."""
        self.row_count = 0
        self.byte_count = 0
        self.fingerprint = 0
        """Of all rows, if a replay of them is compared. A plain batch has no replay."""
        is_exact = options.guarantee is DeliveryGuarantee.EXACTLY_ONCE
        self._takes_fingerprint = is_exact and attempt.query_id is not None

    def send(self, columns: pa.RecordBatch) -> None:
        """Give rows to the producer, and wait for room if it has none.

        Raises the errors of earlier rows, `NullTopicError`, `UnencodableRowError` for a text that
        cannot be a topic's name, and the errors of `send_columns`. An error names a row by its
        place in this partition of the DataFrame.
        """
        if self._topic is None:
            self._check_topics(columns["topic"])
        try:
            future = self._producer.send_columns(self._topic, columns)
        except UnencodableRowError as error:
            rows = [self.row_count + row for row in error.rows]
            reason = f"{error.reason} (counted within {self._part})"
            raise type(error)(rows, reason) from None
        self._on_their_way.append((self.row_count, future))
        self.row_count += columns.num_rows
        self.byte_count += size_of(columns)
        if self._takes_fingerprint:
            self.fingerprint = (self.fingerprint + fingerprint_of(columns)) % FINGERPRINTS
        self._raise_failures()

    def finish(self) -> None:
        """Wait until the brokers have all rows. Raises the first error of a row."""
        self._producer.flush(self._patience_seconds)
        for first_row, future in self._on_their_way:
            self._raise(first_row, future.exception(0))

    def _check_topics(self, names: pa.Array) -> None:
        if names.null_count:
            row = pc.index(names.is_null(), True).as_py()
            raise null_topic(self._place(self.row_count + row))
        bad = [name for name in pc.unique(names).to_pylist() if not re.fullmatch(TOPIC_NAME, name)]
        if bad:
            among = pc.is_in(names, value_set=pa.array(bad, names.type))
            rows = pc.indices_nonzero(among).to_pylist()
            reason = f"its topic {shown(bad[0])} cannot be a topic's name. {TOPIC_NAMES}"
            rows = [self.row_count + row for row in rows]
            raise UnencodableRowError(rows, f"{reason} (counted within {self._part})")

    def _raise_failures(self) -> None:
        for first_row, future in self._on_their_way:
            self._raise(first_row, future.failure())
        while self._on_their_way and self._on_their_way[0][1].done():
            self._on_their_way.popleft()

    def _raise(self, first_row: int, error: KafkaError | None) -> None:
        if isinstance(error, RefusedRowsError):
            refused = error.counted_from(first_row)
            detail = f"{error.detail or ''} (counted within {self._part})".strip()
            raise RefusedRowsError(refused.error, refused.what, detail, refused.rows)
        if error is not None:
            raise error

    @property
    def _part(self) -> str:
        return f"partition {self._partition} of the DataFrame"

    def _place(self, row: int) -> str:
        return f"Row {row} of {self._part}"
