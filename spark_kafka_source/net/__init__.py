"""Sockets, and the only place with any: one connection to one broker."""

from spark_kafka_source.net.address import Address, parse_addresses
from spark_kafka_source.net.connection import Connection, ConnectionSettings, RequestTimeoutError
from spark_kafka_source.net.deadline import Deadline
from spark_kafka_source.net.readable import readable

__all__ = [
    "Address",
    "Connection",
    "ConnectionSettings",
    "Deadline",
    "RequestTimeoutError",
    "parse_addresses",
    "readable",
]
