"""Protobuf: descriptors, and messages as columns, https://protobuf.dev/."""

from spark_kafka_source.values.protobuf.descriptors import parse_descriptors
from spark_kafka_source.values.protobuf.indexes import message_indexes, read_message_indexes
from spark_kafka_source.values.protobuf.reader import ProtobufReader
from spark_kafka_source.values.protobuf.schema import Schema
from spark_kafka_source.values.protobuf.writer import ProtobufWriter

__all__ = [
    "ProtobufReader",
    "ProtobufWriter",
    "Schema",
    "message_indexes",
    "parse_descriptors",
    "read_message_indexes",
]
