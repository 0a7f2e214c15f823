"""What a task does in an executor's Python worker: a range of offsets in, Arrow batches out.

Spark reuses its Python workers, so connections are kept between tasks; `_kept` is this package's
only mutable module state. See "Processes" in the README.
"""

import gc
import sys
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from spark_kafka_source.client import ClientConfig, KafkaClient
from spark_kafka_source.consumer import Ahead, OffsetOutOfRangeError, OffsetRange, RangeReader
from spark_kafka_source.records import Chunk, to_arrow
from spark_kafka_source.spark.conditions import cannot_read_range
from spark_kafka_source.spark.options import SourceOptions

# Enough to keep the fetching thread busy while a batch is handed over; a task holds this and
# little more.
_AHEAD_BYTES = 8 * 1024 * 1024
# A worker that reads from more clusters than this in turn connects anew.
_MOST_KEPT_CLIENTS = 8


class KafkaInputPartition(InputPartition):
    """The range that one task reads. Pickled into the task."""

    def __init__(self, wanted: OffsetRange) -> None:
        super().__init__(str(wanted))
        self.wanted = wanted


class _Kept:
    """What a Python worker keeps between its tasks."""

    def __init__(self) -> None:
        self._clients: dict[ClientConfig, KafkaClient] = {}
        self._frozen_modules = 0

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

    def freeze_imports(self) -> None:
        """Spares the collector what imports left: Spark collects in full after every task."""
        if len(sys.modules) != self._frozen_modules:
            gc.collect()
            gc.freeze()
            self._frozen_modules = len(sys.modules)


_kept = _Kept()


def read_range(wanted: OffsetRange, options: SourceOptions) -> Iterator[pa.RecordBatch]:
    """The rows of a range, as record batches of a few MiB, fetched ahead by a thread of its own.

    Raises `DataLossError` where the log no longer has them, and what `RangeReader.chunks` raises.
    """
    _kept.freeze_imports()
    client = _kept.take_client(options.client)
    reader = RangeReader(client, wanted, options.fetch, poll_timeout_ms=options.poll_timeout_ms)
    ahead: Ahead[Chunk] = Ahead(
        reader.chunks(),
        size=lambda chunk: chunk.size_bytes,
        max_size=_AHEAD_BYTES,
        interrupt=client.close,
    )
    try:
        for chunk in ahead:
            batch = to_arrow(chunk, include_headers=options.include_headers)
            if batch.num_rows:
                yield batch
    except OffsetOutOfRangeError as error:
        raise cannot_read_range(str(error)) from error
    finally:
        ahead.close()
        _kept.put_client(client)
