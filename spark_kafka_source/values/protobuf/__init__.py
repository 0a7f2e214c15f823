"""Protobuf: descriptors, and messages as columns, https://protobuf.dev/."""

from spark_kafka_source.values.protobuf.descriptors import parse_descriptors
from spark_kafka_source.values.protobuf.reader import ProtobufReader
from spark_kafka_source.values.protobuf.schema import Schema
from spark_kafka_source.values.protobuf.shape import Typing

__all__ = ["ProtobufReader", "Schema", "Typing", "parse_descriptors"]
