"""Google's well-known messages that columns show in another way than other messages.

https://protobuf.dev/reference/protobuf/google.protobuf/
"""

import pyarrow as pa

from spark_kafka_source.values.protobuf.schema import MESSAGES, Kind, Message

TIMESTAMP, DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"
ANY = "google.protobuf.Any"
MOMENTS: dict[str, pa.DataType] = {
    TIMESTAMP: pa.timestamp("us", "UTC"),
    DURATION: pa.duration("us"),
}
"""The columns that moments are read into."""

_WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)


def is_moment(message: Message) -> bool:
    """Whether it is Google's `Timestamp` or `Duration`, with their fields."""
    return message.name in MOMENTS and _has(message, Kind.INT64, Kind.INT32)


def is_any(message: Message) -> bool:
    """Whether it is Google's `Any`, with its fields."""
    return message.name == ANY and _has(message, Kind.STRING, Kind.BYTES)


def is_wrapper(message: Message) -> bool:
    """Whether it is one of Google's wrappers, such as `Int32Value`, with one field."""
    if message.name not in _WRAPPERS or len(message.fields) != 1:
        return False
    (value,) = message.fields
    return not value.repeated and value.kind not in (*MESSAGES, Kind.ENUM)


def _has(message: Message, *kinds: Kind) -> bool:
    """Whether the fields have these kinds, and are numbered from 1 on."""
    found = [(each.number, each.kind, each.repeated) for each in message.fields]
    return found == [(number, kind, False) for number, kind in enumerate(kinds, 1)]
