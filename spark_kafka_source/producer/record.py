"""The parts of one record, checked before the record joins others in a batch."""

import time
from collections.abc import Iterable
from operator import index
from typing import Any

from spark_kafka_source.producer.errors import UnsendableRecordError
from spark_kafka_source.producer.serializers import MutableHeaders
from spark_kafka_source.records import MAX_RECORD_OVERHEAD
from spark_kafka_source.records.row_encoder import Headers
from spark_kafka_source.settings import INT64_MAX

_MOST_HEADER_OVERHEAD = 10


def given_headers(topic: str, headers: Iterable[tuple[str, bytes | None]] | None) -> MutableHeaders:
    """Return the headers as a list that serializers may add to.

    Raises `UnsendableRecordError` if `headers` is not iterable.
    """
    try:
        return [] if headers is None else list(headers)
    except TypeError as error:
        reason = f"it is a {type(headers).__name__}, not a list of pairs"
        raise UnsendableRecordError(topic, "headers", reason) from error


def checked_headers(topic: str, headers: MutableHeaders) -> Headers:
    """Return the names and values of headers as bytes. A bad header fails here, not its batch."""
    return [_checked_header(topic, each) for each in headers]


def _checked_header(topic: str, header: Any) -> tuple[bytes, bytes | None]:
    try:
        name, data = header
        # `str.encode` raises for a name that is no string, and for one without UTF-8.
        return str.encode(name), None if data is None else bytes(memoryview(data))
    except (TypeError, ValueError) as error:
        reason = f"{header!r} is no pair of a string, and bytes or None"[:200]
        raise UnsendableRecordError(topic, "headers", reason) from error


def record_size(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Return the most bytes that a record takes in a batch, by the formula of Kafka's producer."""
    size = MAX_RECORD_OVERHEAD + len(key or b"") + len(value or b"")
    for name, data in headers:
        size += _MOST_HEADER_OVERHEAD + len(name) + len(data or b"")
    return size


def checked_time(topic: str, timestamp_ms: object) -> int:
    """Return a record's time, in milliseconds since 1970. None stands for now."""
    if timestamp_ms is None:
        return time.time_ns() // 1_000_000
    found = _whole(topic, "timestamp", timestamp_ms)
    if not 0 <= found <= INT64_MAX:
        reason = f"it is {found}, and Kafka's records have no times before 1970"
        raise UnsendableRecordError(topic, "timestamp", reason)
    return found


def checked_partition(topic: str, partition: object) -> int:
    """Return a partition as an int; whether the topic has it is not checked here."""
    return _whole(topic, "partition", partition)


def _whole(topic: str, field: str, given: object) -> int:
    try:
        return index(given)  # type: ignore[arg-type]
    except TypeError:
        reason = f"it is a {type(given).__name__}, not a whole number"
        raise UnsendableRecordError(topic, field, reason) from None
