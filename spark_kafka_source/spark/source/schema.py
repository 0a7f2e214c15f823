"""The columns of a Kafka row, as in Spark's own connector: all nullable, in this order."""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_kafka_source.records.columns import FIELDS

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
    """Return the schema of these columns, under these names."""
    return StructType([StructField(name, _TYPES[name]) for name in columns])


def typed_schema(schema: pa.Schema) -> StructType:
    """Return the schema of columns if some of them are decoded."""
    return StructType(
        [StructField(field.name, _spark_type(field.name, field.type)) for field in schema]
    )


def _spark_type(name: str, kind: pa.DataType) -> DataType:
    return _TYPES[name] if kind == FIELDS.get(name) else from_arrow_type(kind)
