"""One record of `send`: its key and value turned into bytes, and its parts checked.

The record is checked before it joins others in a batch.
"""

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import partial
from operator import index
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from spark_kafka_source.client.serde_arguments import Serde
from spark_kafka_source.errors import ConfigurationError, LocalError
from spark_kafka_source.options.kinds import INT64_MAX
from spark_kafka_source.producer.errors import UnsendableRecordError
from spark_kafka_source.records import MAX_RECORD_OVERHEAD, ColumnTypeError, UnencodableRowError
from spark_kafka_source.records.row_encoder import Headers
from spark_kafka_source.spelling import current_spelling, spelt

if TYPE_CHECKING:
    from spark_kafka_source.typed import TypedEncoding

_MOST_HEADER_OVERHEAD = 10

MutableHeaders: TypeAlias = list[tuple[str, bytes | None]]


class HasSerialize(Protocol):
    """An object with Kafka's method."""

    @property
    def serialize(self) -> Callable[..., bytes | None]:
        """The function of the topic and the object, or of the topic, the headers and the object."""


Serializer: TypeAlias = Callable[..., bytes | None] | HasSerialize | str
"""A function, an object, or the name of a class of Kafka's; see `client.serde_arguments`.

A function of the topic, the headers and the object may add to the headers. A function of the object
alone is not called for None.
"""
Serialize: TypeAlias = Callable[[str, MutableHeaders, Any], bytes | None]


@dataclass(frozen=True, slots=True)
class GivenSerializer:
    """The user's serializer of keys or values, None for none, and the argument's name."""

    argument: str
    serde: Serde | None = None

    def close(self) -> None:
        """Close the serializer."""
        if self.serde is not None:
            self.serde.close()


_BYTES = (bytes, bytearray, memoryview)


def serialize(
    part: str, given: GivenSerializer, encoding: "TypedEncoding | None", texts: Collection[str]
) -> Serialize:
    """Return the function that turns the `key` or the `value` into bytes.

    `given` is the user's serializer; `texts` are the parts that are texts. Raises
    `ConfigurationError` for a serializer beside `value.format`. The returned function raises
    `UnsendableRecordError`; if the part is typed, it also raises the errors of `TypedEncoding`.
    """
    is_encoded = encoding is not None and part in encoding.parts
    if given.serde is not None and (is_encoded or part in texts):
        found = f"is given as well as '{part}.format'"
        raise ConfigurationError(given.argument, found, "Give one of them")
    if encoding is not None and is_encoded:
        return _encoded(part, encoding)
    return _text(part) if part in texts else _by(part, given)


def _text(part: str) -> Serialize:
    def encode(topic: str, _: MutableHeaders, data: Any) -> bytes | None:
        try:
            return None if data is None else str.encode(data)
        except (TypeError, ValueError) as error:
            reason = f"it is an object of type {type(data).__name__} that is no text in UTF-8"
            raise UnsendableRecordError(topic, part, reason) from error

    return encode


def _encoded(part: str, encoding: "TypedEncoding") -> Serialize:
    spelling = current_spelling()

    def encode(topic: str, _: MutableHeaders, data: Any) -> bytes | None:
        try:
            with spelt(spelling):
                return encoding.one(part, topic, data)
        except UnencodableRowError as error:
            raise UnsendableRecordError(topic, part, error.reason) from error
        except ColumnTypeError as error:
            raise UnsendableRecordError(topic, part, str(error)) from error

    return encode


def _by(part: str, given: GivenSerializer) -> Serialize:
    name, serde = given.argument, given.serde
    if serde is None:
        return partial(_as_bytes, part, name)
    call, takes_topic = serde.call, serde.arguments > 1

    def serialize(topic: str, headers: MutableHeaders, data: Any) -> bytes | None:
        if data is None and not takes_topic:
            return None
        try:
            made = call(topic, headers, data)
        except Exception as error:
            raise UnsendableRecordError(topic, part, f"{name}: {error!r}"[:200]) from error
        return _checked_bytes(topic, part, made, name)

    return serialize


def _as_bytes(part: str, name: str, topic: str, _: MutableHeaders, data: Any) -> bytes | None:
    """Return bytes as they are. A record of `send` comes here twice, so this is short."""
    is_bytes = data is None or isinstance(data, bytes)
    return data if is_bytes else _checked_bytes(topic, part, data, name)


def _checked_bytes(topic: str, field: str, data: object, name: str) -> bytes | None:
    if data is None or isinstance(data, bytes):
        return data
    if isinstance(data, _BYTES):
        return bytes(data)
    found = f"it is an object of type {type(data).__name__}, not bytes"
    reason = f"{found}; give a `{name}`, as `str.encode`"
    raise UnsendableRecordError(topic, field, reason)


def check_topic(given: object) -> None:
    """Raise `LocalError` for what is no text, such as a whole record."""
    if not isinstance(given, str):
        raise LocalError(
            f"Cannot send to an object of type {type(given).__name__}: give a topic's name, and "
            "the record by its parts, as send('events', value, key=key)"
        )


def given_headers(topic: str, headers: Iterable[tuple[str, bytes | None]] | None) -> MutableHeaders:
    """Return the headers as a list that serializers may add to.

    Raises `UnsendableRecordError` if `headers` is not iterable.
    """
    try:
        return [] if headers is None else list(headers)
    except TypeError as error:
        reason = f"it is an object of type {type(headers).__name__}, not a list of pairs"
        raise UnsendableRecordError(topic, "headers", reason) from error


def checked_headers(topic: str, headers: MutableHeaders) -> Headers:
    """Return the names and values of headers as bytes. A bad header fails here, not its batch."""
    return [_checked_header(topic, header) for header in headers]


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
    time_ms = _whole(topic, "timestamp", timestamp_ms)
    if not 0 <= time_ms <= INT64_MAX:
        reason = f"it is {time_ms}, and Kafka's records have no times before 1970"
        raise UnsendableRecordError(topic, "timestamp", reason)
    return time_ms


def checked_partition(topic: str, partition: object) -> int:
    """Return a partition as an int; whether the topic has it is not checked here."""
    return _whole(topic, "partition", partition)


def _whole(topic: str, field: str, given: object) -> int:
    try:
        return index(given)  # type: ignore[arg-type]
    except TypeError:
        reason = f"it is an object of type {type(given).__name__}, not a whole number"
        raise UnsendableRecordError(topic, field, reason) from None
