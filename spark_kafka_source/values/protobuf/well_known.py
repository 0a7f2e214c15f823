"""Google's well-known messages that columns show in another way than other messages.

https://protobuf.dev/reference/protobuf/google.protobuf/
"""

from typing import Any, NamedTuple

import pyarrow as pa

from spark_kafka_source.values.protobuf.schema import MESSAGES, Kind, Message

TIMESTAMP, DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"
ANY = "google.protobuf.Any"
MOMENTS: dict[str, pa.DataType] = {
    TIMESTAMP: pa.timestamp("us", "UTC"),
    DURATION: pa.duration("us"),
}
"""The columns that moments are read into."""


class Bounds(NamedTuple):
    """The least and the greatest numbers in a moment."""

    seconds: tuple[int, int]
    nanos: tuple[int, int]


BOUNDS = {
    # From the year 1 to the year 9999.
    TIMESTAMP: Bounds((-62_135_596_800, 253_402_300_799), (0, 999_999_999)),
    DURATION: Bounds((-315_576_000_000, 315_576_000_000), (-999_999_999, 999_999_999)),
}

WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)


def is_moment(message: Message) -> bool:
    """Whether it is Google's `Timestamp` or `Duration`, with their fields."""
    return message.name in MOMENTS and _has(message, Kind.INT64, Kind.INT32)


def in_bounds(message: Message, seconds: Any, nanos: Any) -> Any:
    """Whether `Timestamp` or `Duration` has these numbers, or NumPy's arrays of them.

    A duration has no second below 0 with a nano above 0, or the other way round.
    """
    (least, most), (least_nano, most_nano) = BOUNDS[message.name]
    is_within = (
        (least <= seconds) & (seconds <= most) & (least_nano <= nanos) & (nanos <= most_nano)
    )
    if message.name == TIMESTAMP:
        return is_within
    return is_within & ((seconds <= 0) | (nanos >= 0)) & ((seconds >= 0) | (nanos <= 0))


def out_of_bounds(message: Message, seconds: int, nanos: int) -> str:
    """Return the reason that refuses numbers which are not `in_bounds`."""
    (least, most), (least_nano, most_nano) = BOUNDS[message.name]
    sign = ", of the same sign" if message.name == DURATION else ""
    return (
        f"{seconds} seconds and {nanos} nanos are no {message.name}. It has seconds from {least} to"
        f" {most}, and nanos from {least_nano} to {most_nano}{sign}"
    )


def is_any(message: Message) -> bool:
    """Whether it is Google's `Any`, with its fields."""
    return message.name == ANY and _has(message, Kind.STRING, Kind.BYTES)


def is_wrapper(message: Message) -> bool:
    """Whether it is one of Google's wrappers, such as `Int32Value`, with one field."""
    if message.name not in WRAPPERS or len(message.fields) != 1:
        return False
    (value,) = message.fields
    return not value.repeated and value.kind not in (*MESSAGES, Kind.ENUM)


def _has(message: Message, *kinds: Kind) -> bool:
    """Whether the fields have these kinds, and are numbered from 1 on."""
    shape = [(field.number, field.kind, field.repeated) for field in message.fields]
    return shape == [(number, kind, False) for number, kind in enumerate(kinds, 1)]
