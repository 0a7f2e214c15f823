"""The columns of a Kafka row, as Spark's own connector has them: all nullable, in this order."""

from collections.abc import Sequence

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

_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_TYPES = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(_HEADER),
}


def kafka_schema(columns: Sequence[str]) -> StructType:
    """The schema of these columns, as they are named here."""
    return StructType([StructField(name, _TYPES[name]) for name in columns])
