"""JSON: texts to columns and back, and JSON Schema, https://json-schema.org."""

from spark_kafka_source.values.json.encode import encode
from spark_kafka_source.values.json.infer import infer
from spark_kafka_source.values.json.reader import JsonReader
from spark_kafka_source.values.json.shape import arrow_type
from spark_kafka_source.values.json.validation import Validation
from spark_kafka_source.values.json.writer import JsonWriter, is_ddl

__all__ = ["JsonReader", "JsonWriter", "Validation", "arrow_type", "encode", "infer", "is_ddl"]
