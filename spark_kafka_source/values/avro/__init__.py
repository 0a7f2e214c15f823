"""Avro: schemas, resolution, and values, https://avro.apache.org/docs/1.12.0/specification/."""

from spark_kafka_source.values.avro.derive import schema_of
from spark_kafka_source.values.avro.encode import encode
from spark_kafka_source.values.avro.fit import fit
from spark_kafka_source.values.avro.parse import parse_schema
from spark_kafka_source.values.avro.program import Program
from spark_kafka_source.values.avro.reader import AvroReader, decode
from spark_kafka_source.values.avro.resolve import resolve
from spark_kafka_source.values.avro.schema import Schema
from spark_kafka_source.values.avro.shape import TIME, ReaderSchema
from spark_kafka_source.values.avro.writer import AvroWriter

__all__ = [
    "TIME",
    "AvroReader",
    "AvroWriter",
    "Program",
    "ReaderSchema",
    "Schema",
    "decode",
    "encode",
    "fit",
    "parse_schema",
    "resolve",
    "schema_of",
]
