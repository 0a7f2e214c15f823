"""JSON: texts to columns and back, and JSON Schema, https://json-schema.org."""

from spark_kafka_source.values.json.reader import JsonReader

__all__ = ["JsonReader"]
