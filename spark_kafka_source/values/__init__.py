"""Values as columns, without IO: a schema to a program; a program, bytes and bounds to Arrow."""

from spark_kafka_source.values.column_of_bytes import decode_column
from spark_kafka_source.values.decode import Decoded, decode
from spark_kafka_source.values.errors import RecursiveTypeError, SchemaError, UnresolvableError
from spark_kafka_source.values.faults import Fault
from spark_kafka_source.values.program import Program
from spark_kafka_source.values.schema_text import SchemaText, SchemaType
from spark_kafka_source.values.text import TextReader
from spark_kafka_source.values.value_reader import ValueReader
from spark_kafka_source.values.value_writer import ValueWriter, encode_values

__all__ = [
    "Decoded",
    "Fault",
    "Program",
    "RecursiveTypeError",
    "SchemaError",
    "SchemaText",
    "SchemaType",
    "TextReader",
    "UnresolvableError",
    "ValueReader",
    "ValueWriter",
    "decode",
    "decode_column",
    "encode_values",
]
