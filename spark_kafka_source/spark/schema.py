"""The columns of a Kafka row, as Spark's own connector has them: all nullable, in this order."""

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

_COLUMNS = [
    StructField("key", BinaryType()),
    StructField("value", BinaryType()),
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("offset", LongType()),
    StructField("timestamp", TimestampType()),
    StructField("timestampType", IntegerType()),
]
_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])


def kafka_schema(*, include_headers: bool) -> StructType:
    """The seven columns, and `headers` where asked for."""
    headers = [StructField("headers", ArrayType(_HEADER))] if include_headers else []
    return StructType([*_COLUMNS, *headers])
