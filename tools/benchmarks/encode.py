"""Cost of encoding a record on one core: `python -m tools.benchmarks.encode [--page FILE]`.

Prints nanoseconds of the thread's CPU time per record: the median of all rounds, half the distance
between the quartiles, and in brackets the fastest round. All ways of a round run one after the
other. `columns` is `encode_columns` and `pieces`, from Arrow columns to the bytes of a request.
`partitions` is the same for 8 partitions by murmur2 of the key, grouped and gathered. `compress` is
the codec alone, for as many bytes. `records` is `encode_batch`, with ready objects. The load is the
machine's load at the end. A program that shares the core's caches can double all times. Pin this
program to a core: `taskset -c 1`.
"""

import argparse
import gc
import random
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median, quantiles

import pyarrow as pa

from spark_kafka_source.producer.partitioners import MURMUR2, group_by_partition
from spark_kafka_source.records import (
    Codec,
    Compression,
    Record,
    encode_batch,
    encode_columns,
)
from spark_kafka_source.records.freed_memory import keep_freed_memory
from tools.benchmarks.page import add_page, publish
from tools.benchmarks.page import table as lines
from tools.benchmarks.topics import json_value

PARTITIONS = 8
NOW_MS = 1_700_000_000_000
RECORDS_OF_ORACLE = 500

WAYS = ("columns", "partitions", "compress", "records")
HEAD = ("codec", *(f"{way} ns" for way in WAYS))

Ways = Mapping[str, tuple[Callable[[], object], int]]
"""By name: the function to run, and its number of records."""


def main() -> None:
    keep_freed_memory()  # Producers do this.
    options = _options()
    columns = table(options.rows, options.value_bytes, timestamps=options.timestamps)
    found = []
    for name in options.codecs.split(","):
        ways = _ways(columns, Codec[name.upper()], options.batch_bytes)
        rounds = [measured(ways) for _ in range(options.rounds + 1)][1:]
        found.append(cells(name, rounds))
    publish("encoding", "tools.benchmarks.encode", lines(HEAD, found), options.page)


def table(rows: int, value_bytes: int, *, timestamps: bool = False) -> pa.RecordBatch:
    """Return keys of ten bytes and JSON values; with `timestamps` also the times of events."""
    chance = random.Random(value_bytes)
    columns = {
        "key": pa.array([b"%010d" % chance.randrange(10**9) for _ in range(rows)], pa.binary()),
        "value": pa.array([json_value(value_bytes, n, chance) for n in range(rows)], pa.binary()),
    }
    if timestamps:
        times = [1000 * (NOW_MS + n // 10) for n in range(rows)]
        columns["timestamp"] = pa.array(times, pa.timestamp("us", "UTC"))
    return pa.RecordBatch.from_pydict(columns)


def _ways(columns: pa.RecordBatch, codec: Codec, batch_bytes: int) -> Ways:
    compression, rows = Compression(codec), columns.num_rows

    def encoded() -> None:
        for batch in encode_columns(
            columns,
            compression=compression,
            max_batch_bytes=batch_bytes,
            timestamp_ms=NOW_MS,
        ):
            batch.pieces()

    def partitioned() -> None:
        grouped = group_by_partition(MURMUR2.partitions(columns["key"], PARTITIONS))
        for batch in encode_columns(
            columns,
            grouped.rows,
            bounds=grouped.bounds,
            compression=compression,
            max_batch_bytes=batch_bytes,
            timestamp_ms=NOW_MS,
        ):
            batch.pieces()

    plain = [
        bytes(batch.payload)
        for batch in encode_columns(columns, max_batch_bytes=batch_bytes, timestamp_ms=NOW_MS)
    ]
    few = columns.slice(0, RECORDS_OF_ORACLE).to_pylist()
    records = [Record(each["key"], each["value"], (), NOW_MS) for each in few]
    return {
        "columns": (encoded, rows),
        "partitions": (partitioned, rows),
        "compress": (lambda: [compression.compress(each) for each in plain], rows),
        "records": (lambda: encode_batch(records, codec=codec), len(records)),
    }


def measured(ways: Ways) -> dict[str, float]:
    """Run one round. Return the nanoseconds per record."""
    gc.collect()
    return {name: _seconds(run) / count * 1e9 for name, (run, count) in ways.items()}


def _seconds(run: Callable[[], object]) -> float:
    started = time.thread_time()
    run()
    return time.thread_time() - started


def cells(codec: str, rounds: Sequence[Mapping[str, float]]) -> list[str]:
    """Return a row of the table, under `HEAD`."""
    return [codec, *(_cell([each[way] for each in rounds]) for way in WAYS)]


def _cell(found: Sequence[float]) -> str:
    low, _, high = quantiles(found, n=4)
    return f"{median(found):,.0f} ± {(high - low) / 2:.0f} ({min(found):,.0f})"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--codecs", default="none,lz4")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--value-bytes", type=int, default=150)
    parser.add_argument("--batch-bytes", type=int, default=1 << 20)
    parser.add_argument("--timestamps", action="store_true", help="a column of them, too")
    parser.add_argument("--rounds", type=int, default=31)
    add_page(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
