"""One version of this source in its own process, for `tools.benchmarks.versions`.

The process runs this file by its path. `PYTHONPATH` names the checkout of the version, so `tests`
and `spark_kafka_source` are of that version. A line of JSON on standard input is an order. A line
of JSON on standard output answers it, with seconds.
"""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tools.benchmarks.session import session
from tools.benchmarks.sink import events
from tools.benchmarks.sources import CEILING

_WARM_UP = 3  # Micro-batches that run code for the first time.
_PATIENCE_SECONDS = 300


def scan(spark: SparkSession, source: str, options: Mapping[str, str]) -> float:
    """Read a topic into the sink `noop`. Return the seconds."""
    started = time.perf_counter()
    rows = spark.read.format(source).options(**options).load()
    rows.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - started


def stream(spark: SparkSession, source: str, options: Mapping[str, str], batches: int) -> float:
    """Run micro-batches into the sink `noop`. Return the median seconds of `addBatch`."""
    rows = spark.readStream.format(source).options(**options).load()
    return _median_seconds(rows.writeStream.format("noop"), batches)


def write(
    spark: SparkSession, rows: Mapping[str, str], sink: str, options: Mapping[str, str]
) -> float:
    """Write micro-batches of ready rows. Return the median seconds of `addBatch`."""
    ready = spark.readStream.format(CEILING).options(**rows).load().select("key", "value")
    return _median_seconds(ready.writeStream.format(sink).options(**options), 20)


def write_frame(spark: SparkSession, count: int, sink: str, options: Mapping[str, str]) -> float:
    """Write a DataFrame that is in memory. Return the seconds."""
    frame = _events(spark, count)
    started = time.perf_counter()
    frame.write.format(sink).options(**options).mode("append").save()
    return time.perf_counter() - started


@cache
def _events(spark: SparkSession, count: int) -> DataFrame:
    return events(spark, count)


def _median_seconds(writing: DataStreamWriter, batches: int) -> float:
    with tempfile.TemporaryDirectory() as checkpoint:
        query = writing.option("checkpointLocation", checkpoint).start()
        deadline = time.monotonic() + _PATIENCE_SECONDS
        try:
            while len(took := _with_rows(query.recentProgress)) < _WARM_UP + batches:
                assert query.isActive, query.exception()
                assert time.monotonic() < deadline, f"only {len(took)} micro-batches"
                time.sleep(0.1)
        finally:
            query.stop()
    return statistics.median(took[_WARM_UP:]) / 1000


def _with_rows(progress: Iterable[StreamingQueryProgress]) -> list[int]:
    return [each["durationMs"]["addBatch"] for each in progress if each["numInputRows"]]


_RUNS: Mapping[str, Callable[..., float]] = {
    each.__name__: each for each in (scan, stream, write, write_frame)
}


def main() -> None:
    spark = session()
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        run = _RUNS[order.pop("run")]
        print(json.dumps(run(spark, **order)), flush=True)


if __name__ == "__main__":
    main()
