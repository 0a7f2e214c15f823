"""Sources measured against the peer: this source without and with compiled kernels, the ceiling.

The ceiling is a source that only hands over ready batches. No reader in Python can be faster than
Spark's own path for such batches.
"""

import zlib
from collections.abc import Iterator, Mapping
from functools import cache

import pyarrow as pa
from isal import isal_zlib
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from spark_kafka_source.records import (
    COLUMNS,
    COLUMNS_WITH_HEADERS,
    compiled,
    compression,
    schema,
)
from spark_kafka_source.spark import KafkaDataSource
from spark_kafka_source.spark.python_worker import frozen_imports
from spark_kafka_source.spark.source.batch import KafkaBatchReader
from spark_kafka_source.spark.source.schema import kafka_schema
from spark_kafka_source.spark.source.stream import KafkaStreamReader
from spark_kafka_source.values.avro import compiled as avro
from spark_kafka_source.values.json import compiled as json
from spark_kafka_source.values.protobuf import compiled as protobuf

PEER, PLAIN, FAST, CEILING = "kafka", "pykafka-plain", "pykafka-fast", "ready-made"
CEILING_OF_FILE = "ready-file"
_KERNELS = (
    (compiled, "kernels"),
    (avro, "kernels"),
    (json, "kernels"),
    (protobuf, "kernels"),
)
BATCH_ROWS = 12_000
"""Rows of a batch: about the number of 150 B rows in a fetch of this source."""


def use_extra(wanted: bool) -> None:
    """Let this process decode with or without the extra `fast` from now on."""
    for module, name in _KERNELS:
        found = module.load() if wanted else None
        setattr(module, name, lambda count=0, found=found: found)
    compression._gunzip = isal_zlib if wanted else zlib


_kernels: list[bool] = []


def _switch(wanted: bool) -> None:
    if _kernels != [wanted]:
        _kernels[:] = [wanted]
        use_extra(wanted)


class _Plain:
    compiled = False

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        _switch(self.compiled)
        rows: Iterator[pa.RecordBatch] = super().read(partition)  # type: ignore[misc]  # mixed in
        return rows


class _Fast(_Plain):
    compiled = True


class _PlainBatch(_Plain, KafkaBatchReader):
    pass


class _FastBatch(_Fast, KafkaBatchReader):
    pass


class _PlainStream(_Plain, KafkaStreamReader):
    pass


class _FastStream(_Fast, KafkaStreamReader):
    pass


class PlainSource(KafkaDataSource):
    """This source without the extra `fast`."""

    @classmethod
    def name(cls) -> str:
        return PLAIN

    def reader(self, schema: StructType) -> KafkaBatchReader:
        return _PlainBatch(self._to_read())

    def streamReader(self, schema: StructType) -> KafkaStreamReader:
        return _PlainStream(self._to_read())


class FastSource(KafkaDataSource):
    """This source with the loaded kernels of the extra `fast`."""

    @classmethod
    def name(cls) -> str:
        return FAST

    def reader(self, schema: StructType) -> KafkaBatchReader:
        return _FastBatch(self._to_read())

    def streamReader(self, schema: StructType) -> KafkaStreamReader:
        return _FastStream(self._to_read())


class ReadyMadeSource(DataSource):
    """Source of `rows` rows with values of `valueBytes` and `headers` headers, in `partitions`.

    A stream has `rows` more rows in each partition at each trigger, by default one.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        self._rows, self._partitions, self._value_bytes, self._headers = (
            int(options.get(name, "0")) for name in ("rows", "partitions", "valueBytes", "headers")
        )

    @classmethod
    def name(cls) -> str:
        return CEILING

    def schema(self) -> StructType:
        return kafka_schema(_columns(self._headers))

    def reader(self, schema: StructType) -> "ReadyMadeReader":
        return ReadyMadeReader(self._rows, self._partitions, self._value_bytes, self._headers)

    def streamReader(self, schema: StructType) -> "ReadyMadeStreamReader":
        return ReadyMadeStreamReader(self._partitions, self._value_bytes, max(self._rows, 1))


class ReadyFileSource(DataSource):
    """Source that repeats the first batch of an Arrow file: `rows` rows in `partitions`."""

    @classmethod
    def name(cls) -> str:
        return CEILING_OF_FILE

    def schema(self) -> StructType:
        return from_arrow_schema(pa.ipc.open_file(self.options["file"]).schema)

    def reader(self, schema: StructType) -> "ReadyFileReader":
        rows, partitions = int(self.options["rows"]), int(self.options["partitions"])
        return ReadyFileReader(self.options["file"], rows, partitions)


class ReadyFileReader(DataSourceReader):
    """Reader that repeats the batch of a file."""

    def __init__(self, file: str, rows: int, partitions: int) -> None:
        self._file, self._rows, self._partitions = file, rows, partitions

    def partitions(self) -> list[InputPartition]:
        return [Part(self._rows // self._partitions) for _ in range(self._partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Part)
        batch = pa.ipc.open_file(self._file).get_batch(0)
        for done in range(0, partition.rows, batch.num_rows):
            yield batch.slice(0, min(batch.num_rows, partition.rows - done))


def _columns(headers: int) -> tuple[str, ...]:
    return COLUMNS_WITH_HEADERS if headers else COLUMNS


class Part(InputPartition):
    """Number of rows of one task."""

    def __init__(self, rows: int) -> None:
        super().__init__(rows)
        self.rows = rows


class ReadyMadeStreamReader(DataSourceStreamReader):
    """Reader with `rows` more rows in each partition at each trigger."""

    def __init__(self, partitions: int, value_bytes: int, rows: int) -> None:
        self._partitions, self._value_bytes, self._rows = partitions, value_bytes, rows
        self._asked = 0

    def initialOffset(self) -> dict[str, int]:
        return {"asked": 0}

    def latestOffset(
        self, start: dict[str, int] | None = None, limit: object = None
    ) -> dict[str, int]:
        self._asked += 1
        return {"asked": self._asked}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [Part(self._rows) for _ in range(self._partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        frozen_imports.freeze()  # This source does this, and any other could.
        yield _few_rows(self._rows, self._value_bytes)


class ReadyMadeReader(DataSourceReader):
    """Reader that repeats one batch."""

    def __init__(self, rows: int, partitions: int, value_bytes: int, headers: int) -> None:
        self._rows, self._partitions = rows, partitions
        self._value_bytes, self._headers = value_bytes, headers

    def partitions(self) -> list[InputPartition]:
        return [Part(self._rows // self._partitions) for _ in range(self._partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Part)
        rows = max(min(BATCH_ROWS, BATCH_ROWS * 170 // (self._value_bytes + 20)), 1)
        batch = ready_batch(rows, self._value_bytes, self._headers)
        for done in range(0, partition.rows, rows):
            yield batch.slice(0, min(rows, partition.rows - done))


@cache
def _few_rows(rows: int, value_bytes: int) -> pa.RecordBatch:
    return ready_batch(rows, value_bytes, 0)


def ready_batch(rows: int, value_bytes: int, headers: int) -> pa.RecordBatch:
    """Return a batch like the rows of a benchmark's topic."""
    columns = _columns(headers)
    header = [{"key": f"header-{index}", "value": b"value"} for index in range(headers)]
    found = {
        "key": [b"%d" % (number % 1000) for number in range(rows)],
        "value": [b"x" * value_bytes] * rows,
        "topic": ["scan"] * rows,
        "partition": [0] * rows,
        "offset": list(range(rows)),
        "timestamp": [1_700_000_000_000_000] * rows,
        "timestampType": [0] * rows,
        "headers": [header] * rows,
    }
    wanted = schema(columns)
    return pa.RecordBatch.from_arrays(
        [pa.array(found[field.name], field.type) for field in wanted], schema=wanted
    )


def register(spark: SparkSession) -> None:
    """Register all sources in a session."""
    for source in (KafkaDataSource, PlainSource, FastSource, ReadyMadeSource, ReadyFileSource):
        spark.dataSource.register(source)
