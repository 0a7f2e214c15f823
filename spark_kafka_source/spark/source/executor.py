"""What a task does in an executor's Python worker: ranges of offsets in, Arrow batches out.

Spark reuses its Python workers, so connections are kept between tasks, in `_kept`. See "How it
works" in the README.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

# What typed values need is imported by the first task that has any.
from spark_kafka_source import registry, typed
from spark_kafka_source.client import ClientConfig, KafkaClient
from spark_kafka_source.fetch import (
    FetchConfig,
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
from spark_kafka_source.spark.worker import frozen_imports

RACK = "SPARK_KAFKA_SOURCE_RACK"
"""The environment variable by which an executor says in which rack (or zone) it is."""

# A worker that reads from more clusters than this in turn connects anew.
_MOST_KEPT_CLIENTS = 8


class KafkaInputPartition(InputPartition):
    """The ranges that one task reads, the `number`th of `count`. Pickled into the task."""

    def __init__(self, ranges: tuple[OffsetRange, ...], number: int, count: int) -> None:
        super().__init__(", ".join(map(str, ranges)))
        self.ranges, self.number, self.count = ranges, number, count


def plan_tasks(starts: Offsets, ends: LogEnds, options: SourceOptions) -> list[InputPartition]:
    """One task for each partition with anything to read, or more, or fewer, as options say."""
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


def _in_this_rack(config: FetchConfig) -> FetchConfig:
    """With the executor's own rack, where `kafka.client.rack` does not say one for all."""
    return config if config.client_rack else replace(config, client_rack=os.environ.get(RACK, ""))


class _Kept:
    """What a Python worker keeps between its tasks."""

    def __init__(self) -> None:
        self._clients: dict[ClientConfig, KafkaClient] = {}
        self._registries: dict[registry.RegistryConfig, registry.RegistryClient] = {}

    def take_client(self, config: ClientConfig) -> KafkaClient:
        """A client that belongs to the caller alone until it is put back."""
        return self._clients.pop(config, None) or KafkaClient(config)

    def put_client(self, client: KafkaClient) -> None:
        if client.closed or len(self._clients) >= _MOST_KEPT_CLIENTS:
            client.close()
            return
        spare = self._clients.setdefault(client.config, client)
        if spare is not client:
            client.close()

    def schemas(self, part: "typed.TypedPart") -> "registry.SchemaSource":
        """The schemas that a part was written with; any number of tasks may share a registry."""
        if part.registry is None:
            return part.source()
        if part.registry not in self._registries:
            if len(self._registries) >= _MOST_KEPT_CLIENTS:
                self._registries.popitem()[1].close()
            self._registries[part.registry] = registry.RegistryClient(part.registry)
        return part.source(self._registries[part.registry])


_kept = _Kept()


def read_ranges(
    task: KafkaInputPartition, options: SourceOptions, progress: Progress | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a task's ranges, as record batches of a few MiB.

    Raises `DataLossError` where a log no longer has them, unless `failOnDataLoss` is false, and
    what `RangeReader.chunks` raises.
    """
    frozen_imports.freeze()
    client = _kept.take_client(options.client)
    try:
        with hiding(options.hidden):
            record_batch = _record_batches(options)
            for chunk in _chunks(client, task.ranges, options):
                batch = record_batch(chunk)
                if progress:
                    progress.read(chunk, batch.num_rows)
                del chunk  # A record may be large: it is kept no longer than it must be.
                if batch.num_rows:
                    yield batch
                del batch
        if progress:
            progress.finished()
    finally:
        _kept.put_client(client)


def _record_batches(options: SourceOptions) -> Callable[[Chunk], pa.RecordBatch]:
    """How a task makes record batches of chunks."""
    columns = options.typed_columns
    if columns is None:
        return partial(record_batch, columns=options.columns)
    sources = {name: _kept.schemas(each) for name, each in columns.parts.items()}
    return typed.TypedRecords(columns, sources).record_batch


def _chunks(
    client: KafkaClient, ranges: Sequence[OffsetRange], options: SourceOptions
) -> Iterator[Chunk]:
    reader = RangeReader(
        client,
        ranges,
        _in_this_rack(options.fetch),
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
