"""Records of lines in flight to a topic, and the number of written records."""

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from spark_kafka_source.command_line.input_lines import LineError
from spark_kafka_source.command_line.line_columns import Parsed
from spark_kafka_source.command_line.stop_signals import StopSignals
from spark_kafka_source.errors import KafkaError, KafkaTimeoutError
from spark_kafka_source.producer.delivery import ColumnsFuture
from spark_kafka_source.producer.kafka_producer import KafkaProducer
from spark_kafka_source.records import UnencodableRowError


@dataclass(frozen=True, slots=True)
class _OnTheWay:
    lines: Sequence[int]
    size: int
    future: ColumnsFuture


class Sending:
    """Records that are sent to a topic, with a limit for bytes in flight. Waits can be stopped.

    `failure` is the first line that could not be sent, or was not written.
    """

    def __init__(
        self, producer: KafkaProducer, topic: str, stops: StopSignals, most_bytes: int
    ) -> None:
        self.failure: LineError | None = None
        self._producer, self._topic, self._stops = producer, topic, stops
        self._most_bytes = most_bytes
        self._on_the_way: deque[_OnTheWay] = deque()
        self._written = self._unknown = 0

    @property
    def written(self) -> str:
        """The number of records written so far, in words."""
        count = self._written
        return f"{count:,} {'record is' if count == 1 else 'records are'} written"

    @property
    def outcome(self) -> str:
        """The numbers of written records and of records with an unknown outcome, in words."""
        unknown = self._unknown + sum(len(sent.lines) for sent in self._on_the_way)
        return f"{self.written}, {unknown:,} more may be" if unknown else self.written

    def send(self, parsed: Parsed) -> None:
        """Send the records, once there is room.

        Sets `failure` if some cannot be sent.
        """
        size = parsed.columns.nbytes
        while self._on_the_way and self._bytes() + size > self._most_bytes:
            self._settle_oldest()
        while self._on_the_way and self._on_the_way[0].future.done():
            self._settle_oldest()
        self._send(parsed.columns, parsed.lines)
        if parsed.error is not None:
            self.fails(parsed.error)

    def wait(self) -> None:
        """Wait until each record is written or has failed."""
        while self._on_the_way:
            self._settle_oldest()

    def wait_for_seconds(self, timeout_seconds: float) -> None:
        """Wait like `wait`, but at most for the timeout. This wait cannot be stopped."""
        end_seconds = time.monotonic() + timeout_seconds
        for _ in range(len(self._on_the_way)):
            left_seconds = max(end_seconds - time.monotonic(), 0)
            try:
                error = self._on_the_way[0].future.exception(left_seconds)
            except KafkaTimeoutError as on_its_way:
                error = on_its_way
            self._settled(error)

    def _bytes(self) -> int:
        return sum(sent.size for sent in self._on_the_way)

    def _send(self, rows: pa.RecordBatch, lines: Sequence[int]) -> None:
        if not lines:
            return
        try:
            future = self._producer.send_columns(self._topic, rows)
        except UnencodableRowError as error:
            self._send(rows.slice(0, error.row), lines[: error.row])
            self.fails(LineError(lines[error.row], lines[error.row], error.reason))
        except KafkaError as error:  # Some of the records may be in flight.
            self._unknown += len(lines)
            self.fails(LineError(lines[0], lines[-1], str(error)))
        else:
            self._on_the_way.append(_OnTheWay(lines, rows.nbytes, future))

    def _settle_oldest(self) -> None:
        with self._stops.allowed():
            error = self._on_the_way[0].future.exception()
        self._settled(error)

    def _settled(self, error: KafkaError | None) -> None:
        oldest = self._on_the_way.popleft()
        if error is None:
            self._written += len(oldest.lines)
        else:
            self._unknown += len(oldest.lines)
            self.fails(LineError(oldest.lines[0], oldest.lines[-1], str(error)))

    def fails(self, failure: LineError) -> None:
        """Note a failure. The one with the first line becomes `failure`."""
        if self.failure is None or failure.first < self.failure.first:
            self.failure = failure
