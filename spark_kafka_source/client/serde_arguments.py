"""A serializer or a deserializer, as users give it: a function, an object, or the name of Kafka's.

Kafka's own are https://kafka.apache.org/documentation/#producerconfigs_value.serializer.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias
from uuid import UUID

from spark_kafka_source.client.given_objects import configure, needed_arguments, refuse_async
from spark_kafka_source.client.given_objects import method as method_of
from spark_kafka_source.errors import ConfigurationError

Headers: TypeAlias = Sequence[tuple[str, bytes | None]]
Call: TypeAlias = Callable[[str, Any, Any], Any]
"""A function of the topic, the headers and the data."""

DESERIALIZE, SERIALIZE = "deserialize", "serialize"

_TAKING = {1: "data", 2: "topic, data", 3: "topic, headers, data"}
_MOST = len(_TAKING)


@dataclass(frozen=True, slots=True)
class Serde:
    """A serializer or a deserializer. `close` is called once, when its client closes."""

    call: Call
    arguments: int
    """How many arguments the user's function takes: 1 (data), 2 (topic, data), or 3."""
    close: Callable[[], object] = lambda: None

    @property
    def takes_headers(self) -> bool:
        """Whether the user's function takes the headers of a record."""
        return self.arguments == _MOST


def serde(
    argument: str, given: object, method: str, configuration: Mapping[str, object]
) -> Serde | None:
    """Return the given serializer or deserializer, or None for None.

    `argument` is the name of the client's argument, `key_deserializer` or `key.deserializer`, and
    `method` is `DESERIALIZE` or `SERIALIZE`. A function takes the data, the topic and the data, or
    the topic, the headers and the data: its parameters without a default tell. An object has such a
    function as its method. Its methods `configure`, of the client's arguments and of whether it is
    for keys, and `close` are called if it has them. A text is the name of a class of Kafka's, with
    or without its package. Raises `ConfigurationError` for anything else.
    """
    if given is None:
        return None
    if isinstance(given, str):
        return _named(argument, given, method)
    called = getattr(given, method, None)
    if isinstance(given, type) and (called is not None or _has_objects_to_call(given)):
        expected = "Give an object of the class"
        raise ConfigurationError(argument, "is the class {}", expected, given.__name__)
    if called is None and callable(given):
        return _calling(argument, given)
    if not callable(called):
        raise _refused(argument, method, given)
    found_serde = _calling(argument, called, f"method `{method}`")
    close = method_of(argument, given, "close")
    configure(argument, given, configuration, argument.startswith("key"))
    return found_serde if close is None else Serde(found_serde.call, found_serde.arguments, close)


def argument_of(
    configuration: dict[str, object], argument: str, given: object
) -> tuple[str, object]:
    """Return the name of an argument as it was given, and its value.

    `argument` is such as `key_serializer`. The configuration may have it with a dot, as other
    settings, and loses it here. Raises `ConfigurationError` if both are given.
    """
    dotted = argument.replace("_", ".")
    if dotted not in configuration:
        return argument, given
    if given is not None:
        raise ConfigurationError(dotted, "is given twice", "Give it once")
    return dotted, configuration.pop(dotted)


def _has_objects_to_call(given: type) -> bool:
    """Whether its objects are functions, unlike those of `int`: each call would make an object."""
    return any("__call__" in vars(each) for each in given.__mro__)


def _calling(argument: str, called: Callable[..., Any], named: str = "function") -> Serde:
    refuse_async(argument, called, named)
    arguments = needed_arguments(called, _MOST)
    if arguments not in _TAKING:
        ways = ", or ".join(f"({each})" for each in _TAKING.values())
        found = f"is a {named} that cannot be called with any of {ways}"
        raise ConfigurationError(argument, found, "Give its other parameters defaults")
    return Serde(_ADAPTED[arguments](called), arguments)


_ADAPTED: Mapping[int, Callable[[Callable[..., Any]], Call]] = MappingProxyType(
    {
        1: lambda called: lambda topic, headers, data: called(data),
        2: lambda called: lambda topic, headers, data: called(topic, data),
        3: lambda called: called,
    }
)


def _refused(argument: str, method: str, given: object) -> ConfigurationError:
    found = f"is of type {type(given).__name__}, which cannot be called and has no `{method}`"
    example = "bytes.decode" if method == DESERIALIZE else "str.encode"
    expected = (
        f"Give a function, as `{example}`, or an object with a method `{method}(topic, data)` or "
        f"`{method}(topic, headers, data)`"
    )
    return ConfigurationError(argument, found, expected)


# -- Kafka's own, by name --------------------------------------------------------------------------


def _number(layout: str) -> Mapping[str, Callable[[Any], Any]]:
    number = struct.Struct(layout)
    return {DESERIALIZE: lambda data: number.unpack(data)[0], SERIALIZE: number.pack}


_BOOLEANS = {b"\0": False, b"\1": True}
# `bytes` of a number is so many zeros: the producer refuses what is no bytes.
_BYTES = {DESERIALIZE: bytes, SERIALIZE: lambda data: data}
_KAFKAS: Mapping[str, Mapping[str, Callable[[Any], Any]]] = MappingProxyType(
    {
        "String": {DESERIALIZE: bytes.decode, SERIALIZE: str.encode},
        "ByteArray": _BYTES,
        "ByteBuffer": _BYTES,
        "Bytes": _BYTES,
        "Boolean": {
            DESERIALIZE: _BOOLEANS.__getitem__,
            SERIALIZE: {made: data for data, made in _BOOLEANS.items()}.__getitem__,
        },
        "Short": _number(">h"),
        "Integer": _number(">i"),
        "Long": _number(">q"),
        "Float": _number(">f"),
        "Double": _number(">d"),
        "UUID": {
            DESERIALIZE: lambda data: UUID(bytes.decode(data)),
            SERIALIZE: lambda value: str.encode(UUID.__str__(value)),
        },
    }
)
"""What classes of `org.apache.kafka.common.serialization` do, by the beginning of their names."""

_FORMATS = ("avro", "protobuf", "json")


def _named(argument: str, name: str, method: str) -> Serde:
    """Return what this class of Kafka's does. Raises `ConfigurationError` for other classes."""
    part = "key" if argument.startswith("key") else "value"
    ending = f"{method.title()[:-1]}er"
    short = name.strip().rpartition(".")[2]
    kind = short.removesuffix(ending).removesuffix("Deserializer").removesuffix("Serializer")
    if kind in _KAFKAS and short == kind + ending:
        return Serde(_ADAPTED[1](_KAFKAS[kind][method]), 1)
    format = next((each for each in _FORMATS if each in short.lower()), None)
    if kind in _KAFKAS:
        expected = f"Give '{kind}{ending}'"
    elif format is not None:
        expected = f"Java classes cannot be run here: give '{part}.format' as '{format}' instead"
    else:
        known = ", ".join(f"'{each}{ending}'" for each in _KAFKAS)
        expected = f"Give a function, an object with a method `{method}`, or a name: {known}"
    raise ConfigurationError(argument, "found {}", expected, name)
