"""Keys and values made bytes: by functions of the user's, or by a schema."""

import inspect
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, TypeAlias

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.producer.errors import UnsendableRecordError
from spark_kafka_source.records import ColumnTypeError, UnencodableRowError

if TYPE_CHECKING:
    from spark_kafka_source.typed import TypedEncoding

MutableHeaders: TypeAlias = list[tuple[str, bytes | None]]
Serializer: TypeAlias = Callable[..., bytes | None]
"""A function of what is sent, as `str.encode`, or of the topic, the headers and what is sent.

It may add to the headers. It is asked for None, too, only if it takes all three.
"""
Serialize: TypeAlias = Callable[[str, MutableHeaders, Any], bytes | None]

_ALL_THREE = 3
_BYTES = (bytes, bytearray, memoryview)


def serialize(
    part: str, given: object, encoding: "TypedEncoding | None", texts: Collection[str]
) -> Serialize:
    """Return what makes bytes of what is sent as the `key` or the `value`.

    `given` is the serializer of the user's, if any; `texts` are those parts that are texts. Raises
    `ConfigurationError` for one that cannot be called, and for one beside `value.format`. What is
    returned raises `UnsendableRecordError`, and where it is typed what `TypedEncoding` does.
    """
    name = f"{part}_serializer"
    is_encoded = encoding is not None and part in encoding.parts
    if given is not None and (is_encoded or part in texts):
        raise ConfigurationError(name, f"is given as well as '{part}.format'", "Give one of them")
    if encoding is not None and is_encoded:
        return _encoded(part, encoding)
    return _text(part) if part in texts else serialize_by(name, given)


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


def serialize_by(name: str, given: object) -> Serialize:
    """Return the function that makes bytes of what is sent as the key or the value.

    `name` is that of the argument. Raises `ConfigurationError` for what cannot be called. What is
    returned raises `UnsendableRecordError`.
    """
    field = name.removesuffix("_serializer")
    if given is None:
        return lambda topic, _, data: _checked(topic, field, data, name)
    if not callable(given):
        found = f"found a {type(given).__name__}, which cannot be called"
        raise ConfigurationError(name, found, "Give a function of what is sent, as `str.encode`")
    takes_all = _takes_all_three(given)

    def serialize(topic: str, headers: MutableHeaders, data: Any) -> bytes | None:
        if data is None and not takes_all:
            return None
        try:
            made = given(topic, headers, data) if takes_all else given(data)
        except Exception as error:
            raise UnsendableRecordError(topic, field, f"{name}: {error!r}"[:200]) from error
        return _checked(topic, field, made, name)

    return serialize


def _takes_all_three(given: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(given).parameters.values()
    except (TypeError, ValueError):  # Some that are written in C do not say.
        return False
    needed = [
        each
        for each in parameters
        if each.kind in {each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD}
        and each.default is each.empty
    ]
    takes_any = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    return len(needed) == _ALL_THREE or (takes_any and not needed)


def _checked(topic: str, field: str, data: object, name: str) -> bytes | None:
    if data is None or isinstance(data, bytes):
        return data
    if isinstance(data, _BYTES):
        return bytes(data)
    reason = f"it is a {type(data).__name__}, not bytes; give a `{name}`, as `str.encode`"
    raise UnsendableRecordError(topic, field, reason)
