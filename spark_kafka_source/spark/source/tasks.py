"""The reading of a task in an executor's Python worker: ranges of offsets in, Arrow batches out.

Spark reuses its Python workers, so connections are kept from one task to the next. See "In a
task" in docs/contributors/architecture.md.
"""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

# The first task with typed values imports what these modules need.
from spark_kafka_source import registry, typed
from spark_kafka_source.client import ClientConfig, KafkaClient
from spark_kafka_source.fetch import (
    OffsetRange,
    RangeReader,
    RecordsLostError,
)
from spark_kafka_source.records import Chunk, record_batch
from spark_kafka_source.spark.conditions import cannot_read_range
from spark_kafka_source.spark.pool import MOST_KEPT, Pool
from spark_kafka_source.spark.python_worker import frozen_imports, in_this_rack, log_with_query
from spark_kafka_source.spark.redaction import hiding
from spark_kafka_source.spark.source.offset_arithmetic import (
    LogEnds,
    gather_ranges,
    offset_ranges,
    split_ranges,
)
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.spark.source.options import SourceOptions
from spark_kafka_source.spark.source.progress import Progress
from spark_kafka_source.spark.source.task_letters import TaskLetters, task_letters


class KafkaInputPartition(InputPartition):
    """The ranges of one task, the `number`th of `count`. Spark pickles it into the task."""

    def __init__(self, ranges: tuple[OffsetRange, ...], number: int, count: int) -> None:
        super().__init__(", ".join(map(str, ranges)))
        self.ranges, self.number, self.count = ranges, number, count


def plan_tasks(starts: Offsets, ends: LogEnds, options: SourceOptions) -> list[InputPartition]:
    """Return one task for each partition with anything to read, or more or fewer by options."""
    ranges = split_ranges(
        offset_ranges(starts, ends, options.only_offsets),
        max_records_per_partition=options.max_records_per_partition,
        min_partitions=options.min_partitions,
    )
    least = options.min_records_per_partition
    groups = (
        [(only,) for only in ranges]
        if least is None
        else gather_ranges(ranges, least, options.min_partitions)
    )
    return [
        KafkaInputPartition(group, number, len(groups)) for number, group in enumerate(groups, 1)
    ]


def _of_planned(config: ClientConfig) -> KafkaClient:
    """Return a client of brokers that the driver has reached."""
    client = KafkaClient(config)
    client.history.was_reached = True
    return client


_kept_clients: Pool[ClientConfig, KafkaClient] = Pool(_of_planned, KafkaClient.close, math.inf)
"""Clients of this worker. Spark itself ends a worker that has no task for a minute."""
_registries: (
    "dict[registry.RegistryConfig | registry.GlueConfig, "
    "registry.RegistryClient | registry.GlueClient]"
) = {}
"""Clients of registries, which any number of tasks may share."""
# The child of a fork makes its own connections.
os.register_at_fork(after_in_child=_registries.clear)


def read_ranges(
    task: KafkaInputPartition, options: SourceOptions, progress: Progress | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task's ranges, in record batches of a few MiB.

    Raises `DataLossError` if a log no longer has them, unless `failOnDataLoss` is false, the errors
    of `RangeReader.chunks`, and `DeadLetterError`.
    """
    frozen_imports.freeze()
    log_with_query()
    client = _kept_clients.take(options.client)
    try:
        # Leaving the block waits until the letters are written.
        with hiding(options.hidden), task_letters(options) as letters:
            record_batch = _record_batches(options, letters)
            for chunk in _chunks(client, task.ranges, options):
                batch = record_batch(chunk)
                if progress:
                    progress.read(chunk, batch.num_rows)
                del chunk  # A record may be large: its memory is free from here on.
                if batch.num_rows:
                    yield batch
                del batch
        if progress:
            progress.finished()
    finally:
        if not client.closed:
            _kept_clients.put(options.client, client)


def _record_batches(
    options: SourceOptions, letters: TaskLetters | None
) -> Callable[[Chunk], pa.RecordBatch]:
    """Return the function from a chunk to its record batch."""
    columns = options.typed_columns
    if columns is None:
        return partial(record_batch, columns=options.columns)
    sources = {name: _schemas(part) for name, part in columns.parts.items()}
    records = typed.TypedRecords(columns, sources)
    if letters is None:
        return records.record_batch
    return partial(records.record_batch, send=letters.send)


def _schemas(part: "typed.TypedPart") -> "registry.SchemaSource":
    """Return the writers' schemas of a part."""
    if part.registry is None:
        return part.source()
    if part.registry not in _registries:
        if len(_registries) >= MOST_KEPT:
            _registries.popitem()[1].close()
        _registries[part.registry] = registry.client_of(part.registry)
    return part.source(_registries[part.registry])


def _chunks(
    client: KafkaClient, ranges: Sequence[OffsetRange], options: SourceOptions
) -> Iterator[Chunk]:
    reader = RangeReader(
        client,
        ranges,
        replace(in_this_rack(options.fetch), chunk_bytes=options.typed.chunk_bytes),
        poll_timeout_ms=options.poll_timeout_ms,
        skip_lost=not options.data_loss.fails,
        max_record_bytes=options.max_record_bytes,
    )
    try:
        yield from reader.chunks()
    except RecordsLostError as error:
        lost = next((planned for planned in ranges if _is_in(error, planned)), ranges[0])
        raise cannot_read_range(f"Cannot read {lost}: {error}") from error


def _is_in(error: RecordsLostError, planned: OffsetRange) -> bool:
    return error.topic_partition == planned.topic_partition and error.offset < planned.end
