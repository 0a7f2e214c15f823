"""A sink that throws its rows away. No writer in Python is faster than this path of Spark."""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from spark_kafka_source.spark.python_worker import frozen_imports

THROWN_AWAY = "thrown-away"


class ThrowingWriter(DataSourceStreamWriter, DataSourceArrowWriter):
    """Writer that only looks at the number of rows."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        frozen_imports.freeze()  # This project's writer does this, and any other could.
        for batch in iterator:
            assert batch.num_rows >= 0
        return WriterCommitMessage()

    def commit(
        self, messages: Sequence[WriterCommitMessage | None], batch_id: int | None = None
    ) -> None:
        pass

    def abort(
        self, messages: Sequence[WriterCommitMessage | None], batch_id: int | None = None
    ) -> None:
        pass


class ThrowingSink(DataSource):
    """Sink for any rows and any options."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))

    @classmethod
    def name(cls) -> str:
        return THROWN_AWAY

    def writer(self, schema: StructType, overwrite: bool) -> ThrowingWriter:
        return ThrowingWriter()

    def streamWriter(self, schema: StructType, overwrite: bool) -> ThrowingWriter:
        return ThrowingWriter()


def register(spark: SparkSession) -> None:
    """Register the sink in a session."""
    spark.dataSource.register(ThrowingSink)
