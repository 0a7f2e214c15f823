"""The reading of a task in an executor's Python worker: ranges of offsets in, Arrow batches out.

Spark reuses its Python workers, so `_kept` has connections from one task to the next. See "In a
task" in docs/architecture.md.
"""

import os
from collections.abc import Callable, Iterator, Sequence
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
from spark_kafka_source.spark.redaction import hiding
from spark_kafka_source.spark.source.log_ends import LogEnds
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.spark.source.options import SourceOptions
from spark_kafka_source.spark.source.planning import offset_ranges
from spark_kafka_source.spark.source.progress import Progress
from spark_kafka_source.spark.source.splitting import gather_ranges, split_ranges
from spark_kafka_source.spark.source.task_letters import TaskLetters, task_letters
from spark_kafka_source.spark.worker import frozen_imports, in_this_rack

# A worker that reads from more clusters than this by turns connects anew.
_MOST_KEPT_CLIENTS = 8


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
        [(wanted,) for wanted in ranges]
        if least is None
        else gather_ranges(ranges, least, options.min_partitions)
    )
    return [
        KafkaInputPartition(group, number, len(groups)) for number, group in enumerate(groups, 1)
    ]


class _Kept:
    """Clients that a Python worker keeps from one task to the next."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Keep nothing, and close nothing."""
        self._clients: dict[ClientConfig, KafkaClient] = {}
        self._registries: dict[registry.RegistryConfig, registry.RegistryClient] = {}

    def take_client(self, config: ClientConfig) -> KafkaClient:
        """Return a client for the caller alone, until the caller puts it back."""
        return self._clients.pop(config, None) or KafkaClient(config)

    def put_client(self, client: KafkaClient) -> None:
        if client.closed or len(self._clients) >= _MOST_KEPT_CLIENTS:
            client.close()
            return
        spare = self._clients.setdefault(client.config, client)
        if spare is not client:
            client.close()

    def schemas(self, part: "typed.TypedPart") -> "registry.SchemaSource":
        """Return the writers' schemas of a part. Any number of tasks may share a registry."""
        if part.registry is None:
            return part.source()
        if part.registry not in self._registries:
            if len(self._registries) >= _MOST_KEPT_CLIENTS:
                self._registries.popitem()[1].close()
            self._registries[part.registry] = registry.RegistryClient(part.registry)
        return part.source(self._registries[part.registry])


_kept = _Kept()
# The child of a fork makes its own connections.
os.register_at_fork(after_in_child=_kept.forget)


def read_ranges(
    task: KafkaInputPartition, options: SourceOptions, progress: Progress | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task's ranges, in record batches of a few MiB.

    Raises `DataLossError` if a log no longer has them, unless `failOnDataLoss` is false, the errors
    of `RangeReader.chunks`, and `DeadLetterError`.
    """
    frozen_imports.freeze()
    client = _kept.take_client(options.client)
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
        _kept.put_client(client)


def _record_batches(
    options: SourceOptions, letters: TaskLetters | None
) -> Callable[[Chunk], pa.RecordBatch]:
    """Return the function from a chunk to its record batch."""
    columns = options.typed_columns
    if columns is None:
        return partial(record_batch, columns=options.columns)
    sources = {name: _kept.schemas(each) for name, each in columns.parts.items()}
    records = typed.TypedRecords(columns, sources)
    if letters is None:
        return records.record_batch
    return partial(records.record_batch, send=letters.send)


def _chunks(
    client: KafkaClient, ranges: Sequence[OffsetRange], options: SourceOptions
) -> Iterator[Chunk]:
    reader = RangeReader(
        client,
        ranges,
        in_this_rack(options.fetch),
        poll_timeout_ms=options.poll_timeout_ms,
        skip_lost=not options.data_loss.fails,
        max_record_bytes=options.max_record_bytes,
    )
    try:
        yield from reader.chunks()
    except RecordsLostError as error:
        wanted = next((each for each in ranges if _is_in(error, each)), ranges[0])
        raise cannot_read_range(f"Cannot read {wanted}: {error}") from error


def _is_in(error: RecordsLostError, wanted: OffsetRange) -> bool:
    return error.topic_partition == wanted.topic_partition and error.offset < wanted.end
