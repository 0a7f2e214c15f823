"""OpenTelemetry's `MetricsData`, version 1, as Protobuf: the few fields that a push has.

https://github.com/open-telemetry/opentelemetry-proto: metrics/v1, resource/v1 and common/v1. The
numbers below are the numbers of the fields there.
"""

from collections.abc import Iterable
from enum import IntEnum
from struct import Struct

from spark_kafka_source.telemetry.figures import Tags

_FIXED64 = Struct("<Q")
_DOUBLE = Struct("<d")
_OF_VARINT, _OF_64_BITS, _OF_BYTES = 0, 1, 2
"""Wire types."""


class Temporality(IntEnum):
    """The time that a sum covers: since the push before, or since the client began."""

    DELTA = 1
    CUMULATIVE = 2


def metrics_data(labels: Tags, metrics: Iterable[bytes]) -> bytes:
    """Return a message of these metrics. `labels` name the client that they are of."""
    resource = b"".join(_attribute(1, *each) for each in labels.items())
    scope_metrics = b"".join(_bytes(2, each) for each in metrics)
    return _bytes(1, _bytes(1, resource) + _bytes(2, scope_metrics))


def gauge(name: str, points: Iterable[bytes]) -> bytes:
    """Return a metric of present values."""
    data_points = b"".join(_bytes(1, each) for each in points)
    return _bytes(1, name.encode()) + _bytes(5, data_points)


def sum_of(name: str, point: bytes, temporality: Temporality) -> bytes:
    """Return a metric that never falls."""
    is_monotonic = 1
    data = _bytes(1, point) + _number(2, temporality) + _number(3, is_monotonic)
    return _bytes(1, name.encode()) + _bytes(7, data)


def point(value: float, tags: Tags, at_ns: int, began_ns: int = 0) -> bytes:
    """Return one value at a time, in ns since 1970. A sum has the time when it began, too."""
    return b"".join(
        (
            *(_attribute(7, *each) for each in tags.items()),
            _key(2, _OF_64_BITS) + _FIXED64.pack(began_ns) if began_ns else b"",
            _key(3, _OF_64_BITS) + _FIXED64.pack(at_ns),
            _key(4, _OF_64_BITS) + _DOUBLE.pack(value),
        )
    )


def _attribute(number: int, name: str, value: str) -> bytes:
    any_value = _bytes(1, value.encode())
    return _bytes(number, _bytes(1, name.encode()) + _bytes(2, any_value))


def _bytes(number: int, data: bytes) -> bytes:
    return _key(number, _OF_BYTES) + _varint(len(data)) + data


def _number(number: int, value: int) -> bytes:
    return _key(number, _OF_VARINT) + _varint(value)


def _key(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
