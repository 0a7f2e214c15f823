"""Keys and values turned into bytes: by the user's functions, or by a schema."""

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
"""A function of the object, as `str.encode`, or of the topic, the headers and the object.

It may add to the headers. It is called for None only if it takes all three arguments.
"""
Serialize: TypeAlias = Callable[[str, MutableHeaders, Any], bytes | None]

_ALL_THREE = 3
_BYTES = (bytes, bytearray, memoryview)


def serialize(
    part: str, given: object, encoding: "TypedEncoding | None", texts: Collection[str]
) -> Serialize:
    """Return the function that turns the `key` or the `value` into bytes.

    `given` is the user's serializer, or None; `texts` are the parts that are texts. Raises
    `ConfigurationError` for a serializer that cannot be called, and for one beside
    `value.format`. The returned function raises `UnsendableRecordError`; if the part is typed, it
    also raises the errors of `TypedEncoding`.
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
    """Return the function that turns the key or the value into bytes.

    `name` is the name of the argument. Raises `ConfigurationError` for a serializer that cannot
    be called. The returned function raises `UnsendableRecordError`.
    """
    field = name.removesuffix("_serializer")
    if given is None:
        return lambda topic, _, data: _checked(topic, field, data, name)
    if not callable(given):
        found = f"found a {type(given).__name__}, which cannot be called"
        raise ConfigurationError(name, found, "Give a function of the object, as `str.encode`")
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
    except (TypeError, ValueError):  # Some functions written in C have no signature.
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
