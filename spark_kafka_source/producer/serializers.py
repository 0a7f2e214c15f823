"""Keys and values turned into bytes: by the user's serializers, or by a schema."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from spark_kafka_source.client.serde_arguments import Serde
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.producer.errors import UnsendableRecordError
from spark_kafka_source.records import ColumnTypeError, UnencodableRowError

if TYPE_CHECKING:
    from spark_kafka_source.typed import TypedEncoding

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
class Given:
    """The user's serializer of keys or values, None for none, and the argument's name."""

    argument: str
    serde: Serde | None = None

    def close(self) -> None:
        """Close the serializer."""
        if self.serde is not None:
            self.serde.close()


_BYTES = (bytes, bytearray, memoryview)


def serialize(
    part: str, given: Given, encoding: "TypedEncoding | None", texts: Collection[str]
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
            reason = f"it is a {type(data).__name__} that is no text in UTF-8"
            raise UnsendableRecordError(topic, part, reason) from error

    return encode


def _encoded(part: str, encoding: "TypedEncoding") -> Serialize:
    def encode(topic: str, _: MutableHeaders, data: Any) -> bytes | None:
        try:
            return encoding.one(part, topic, data)
        except UnencodableRowError as error:
            raise UnsendableRecordError(topic, part, error.reason) from error
        except ColumnTypeError as error:
            raise UnsendableRecordError(topic, part, str(error)) from error

    return encode


def _by(part: str, given: Given) -> Serialize:
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
        return _checked(topic, part, made, name)

    return serialize


def _as_bytes(part: str, name: str, topic: str, _: MutableHeaders, data: Any) -> bytes | None:
    """Return bytes as they are. A record of `send` comes here twice, so this is short."""
    is_bytes = data is None or isinstance(data, bytes)
    return data if is_bytes else _checked(topic, part, data, name)


def _checked(topic: str, field: str, data: object, name: str) -> bytes | None:
    if data is None or isinstance(data, bytes):
        return data
    if isinstance(data, _BYTES):
        return bytes(data)
    reason = f"it is a {type(data).__name__}, not bytes; give a `{name}`, as `str.encode`"
    raise UnsendableRecordError(topic, field, reason)
