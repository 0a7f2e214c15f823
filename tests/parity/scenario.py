"""Helpers of scenarios: a source and a sink in either format, and streams that can restart."""

from collections.abc import Callable, Mapping
from threading import Thread
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameWriter
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tests.spark_session import Start
from tools import traffic
from tools.traffic import TIMEOUT_SECONDS, Batches

PEER = "kafka"
OURS = "pykafka"


class Source:
    """Source in one of the two formats. Options with the value None are left out."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self.spark, self.name = spark, name

    @property
    def is_ours(self) -> bool:
        """For the few scenarios in which the formats differ on purpose."""
        return self.name == OURS

    def batch(self, options: Mapping[str, Any]) -> DataFrame:
        """Return a batch. `Events.options` has the options of a topic."""
        return traffic.batch(self.spark, options, self.name)

    def stream(self, options: Mapping[str, Any]) -> DataFrame:
        """A stream that is to be started."""
        return traffic.stream(self.spark, options, self.name)


class Sink:
    """Sink in one of the two formats. Options with the value None are left out."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def is_ours(self) -> bool:
        """For the few scenarios in which the formats differ on purpose."""
        return self.name == OURS

    def batch(self, frame: DataFrame, options: Mapping[str, Any]) -> DataFrameWriter:
        """Return a writer that appends the frame when `save` is called."""
        return frame.write.format(self.name).options(**_given(options)).mode("append")

    def stream(self, frame: DataFrame, options: Mapping[str, Any]) -> DataStreamWriter:
        """A stream that is to be started."""
        return frame.writeStream.format(self.name).options(**_given(options))


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


class Stream:
    """A stream that keeps its values. After a stop and a start it continues.

    `trigger` is Spark's trigger. Without one, the next micro-batch follows at once.
    """

    def __init__(self, frame: DataFrame, start: Start, trigger: Mapping[str, Any]) -> None:
        self._frame, self._start, self._trigger = frame, start, trigger
        self.sink = Batches()
        self.query = self.start()

    @property
    def batches(self) -> list[list[str]]:
        """Values of each micro-batch so far."""
        return [values for _, values in sorted(dict(self.sink.seen).items())]

    def start(self) -> StreamingQuery:
        """Start the stream on its checkpoint."""
        writer = self._frame.writeStream.foreachBatch(self.sink)
        self.query = self._start(writer.trigger(**self._trigger) if self._trigger else writer)
        return self.query

    def stop(self) -> None:
        """Stop the stream."""
        self.query.stop()

    def read(self) -> list[str]:
        """Wait until the stream has read everything. Return all its values so far, sorted."""
        process_all_available(self.query)
        return self.sink.values

    def numbers(self) -> list[int]:
        """Do the same as `read`. Return the values as numbers."""
        return sorted(map(int, self.read()))


Follow = Callable[..., Stream]
"""`follow(frame, **trigger)` starts a stream that keeps its values."""


def process_all_available(query: StreamingQuery) -> None:
    """Wait until the query has read everything. Raise the query's error, or fail after a minute.

    Spark's own method waits for ever.
    """
    raised: list[Exception] = []

    def process() -> None:
        try:
            query.processAllAvailable()
        except Exception as error:
            raised.append(error)

    thread = Thread(target=process, daemon=True)
    thread.start()
    thread.join(TIMEOUT_SECONDS)
    assert not thread.is_alive(), f"not all was read within {TIMEOUT_SECONDS} s"
    for error in raised:
        raise error
