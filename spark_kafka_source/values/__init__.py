"""Values as columns, without IO: a schema to a program; a program, bytes and bounds to Arrow."""

from spark_kafka_source.values.decode import Decoded, decode
from spark_kafka_source.values.errors import RecursiveTypeError, SchemaError, UnresolvableError
from spark_kafka_source.values.faults import Fault
from spark_kafka_source.values.program import Program

__all__ = [
    "Decoded",
    "Fault",
    "Program",
    "RecursiveTypeError",
    "SchemaError",
    "UnresolvableError",
    "decode",
]
