"""Record batches, without IO: the bytes of a fetch to Arrow, and columns of records to bytes.

Reading has two stages. `chunks` checks and decompresses a fetch. `to_arrow` turns a chunk into
Arrow, fastest while the chunk is still in the cache. `encode_columns` goes the other way, from
Arrow to record batches. The format is https://kafka.apache.org/documentation/#recordbatch.
"""

from typing import TYPE_CHECKING

from spark_kafka_source.lazily import importing

if TYPE_CHECKING:
    from spark_kafka_source.records.batch import (
        HEADER_BYTES,
        BatchHeader,
        batches,
        cut_batch_bytes,
        next_offset,
    )
    from spark_kafka_source.records.byte_columns import ByteColumn
    from spark_kafka_source.records.chunk import Chunk, Segment
    from spark_kafka_source.records.column_encoder import (
        MAX_RECORD_OVERHEAD,
        encode_columns,
        record_sizes,
    )
    from spark_kafka_source.records.columns import (
        COLUMNS,
        COLUMNS_WITH_HEADERS,
        record_batch,
        schema,
        to_arrow,
    )
    from spark_kafka_source.records.compression import NO_COMPRESSION, Compression
    from spark_kafka_source.records.encode import (
        NO_TIMESTAMP,
        Record,
        encode_batch,
        encode_control_batch,
    )
    from spark_kafka_source.records.encoded_batch import MAX_BATCH_BYTES, EncodedBatch
    from spark_kafka_source.records.record_tables import as_rows, columns_of, join_columns
    from spark_kafka_source.records.row_encoder import FEW_ROWS, Row, encode_rows
    from spark_kafka_source.records.split import cut_batch, split_batch
    from spark_kafka_source.records.types import (
        CHUNK_BYTES,
        AbortedTransaction,
        Bytes,
        Codec,
        ColumnTypeError,
        IsolationLevel,
        RecordLimit,
        RecordTooLargeError,
        RowTooLargeError,
        TimestampOverflowError,
        TimestampType,
        UnencodableRowError,
    )
    from spark_kafka_source.records.unpacking import MAX_CHUNK_BYTES, chunks
    from spark_kafka_source.records.varints import Integers

__all__ = [
    "CHUNK_BYTES",
    "COLUMNS",
    "COLUMNS_WITH_HEADERS",
    "FEW_ROWS",
    "HEADER_BYTES",
    "MAX_BATCH_BYTES",
    "MAX_CHUNK_BYTES",
    "MAX_RECORD_OVERHEAD",
    "NO_COMPRESSION",
    "NO_TIMESTAMP",
    "AbortedTransaction",
    "BatchHeader",
    "ByteColumn",
    "Bytes",
    "Chunk",
    "Codec",
    "ColumnTypeError",
    "Compression",
    "EncodedBatch",
    "Integers",
    "IsolationLevel",
    "Record",
    "RecordLimit",
    "RecordTooLargeError",
    "Row",
    "RowTooLargeError",
    "Segment",
    "TimestampOverflowError",
    "TimestampType",
    "UnencodableRowError",
    "as_rows",
    "batches",
    "chunks",
    "columns_of",
    "cut_batch",
    "cut_batch_bytes",
    "encode_batch",
    "encode_columns",
    "encode_control_batch",
    "encode_rows",
    "join_columns",
    "next_offset",
    "record_batch",
    "record_sizes",
    "schema",
    "split_batch",
    "to_arrow",
]

if not TYPE_CHECKING:
    __getattr__ = importing(
        __name__,
        {
            "batch": "BatchHeader HEADER_BYTES batches cut_batch_bytes next_offset",
            "byte_columns": "ByteColumn",
            "chunk": "Chunk Segment",
            "column_encoder": "MAX_RECORD_OVERHEAD encode_columns record_sizes",
            "columns": "COLUMNS COLUMNS_WITH_HEADERS record_batch schema to_arrow",
            "compression": "Compression NO_COMPRESSION",
            "encode": "NO_TIMESTAMP Record encode_batch encode_control_batch",
            "encoded_batch": "EncodedBatch MAX_BATCH_BYTES",
            "record_tables": "as_rows columns_of join_columns",
            "unpacking": "MAX_CHUNK_BYTES chunks",
            "row_encoder": "FEW_ROWS Row encode_rows",
            "split": "cut_batch split_batch",
            "types": (
                "AbortedTransaction Bytes CHUNK_BYTES Codec ColumnTypeError IsolationLevel "
                "RecordLimit RecordTooLargeError RowTooLargeError TimestampOverflowError "
                "TimestampType UnencodableRowError"
            ),
            "varints": "Integers",
        },
    )
