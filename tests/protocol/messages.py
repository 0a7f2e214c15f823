"""All messages in all versions, and one full sample of each."""

import itertools
import uuid
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from spark_kafka_source.protocol import (
    Message,
    Request,
    RequestHeader,
    ResponseHeader,
    messages,
    versions,
)
from spark_kafka_source.protocol.declaration import Array, Kind, wire_fields
from spark_kafka_source.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from spark_kafka_source.protocol.wire import BOOLEAN, INT8, STRING, Identifier, Number

MODULES = [
    import_module(f"{messages.__name__}.{each.name}") for each in iter_modules(messages.__path__)
]
REQUESTS: list[type[Request[Any]]] = [
    value
    for module in MODULES
    for value in vars(module).values()
    if isinstance(value, type) and issubclass(value, Request) and value is not Request
]
MESSAGES: list[type[Message]] = [
    *REQUESTS,
    *(request.RESPONSE for request in REQUESTS),
    RequestHeader,
    ResponseHeader,
    ConsumerProtocolSubscription,
    ConsumerProtocolAssignment,
]


def all_versions(message_type: type[Message]) -> range:
    spoken = versions(message_type)
    return range(spoken.lowest, spoken.highest + 1)


MESSAGES_AND_VERSIONS = [
    (message_type, version) for message_type in MESSAGES for version in all_versions(message_type)
]


def structs(struct: type) -> Iterator[type]:
    """Yield a message and all its nested structs."""
    yield struct
    for field in wire_fields(struct):
        kind = field.kind.element if isinstance(field.kind, Array) else field.kind
        if isinstance(kind, type):
            yield from structs(kind)


def sample(message_type: type, version: int) -> Any:
    """Return a message: no field has its default, most values differ, arrays have two elements."""
    return _sample(message_type, version, itertools.count(1))


def _sample(struct: type, version: int, numbers: Iterator[int]) -> Any:
    return struct(
        **{
            field.name: not field.default()
            if field.kind is BOOLEAN
            else _value(field.kind, version, numbers)
            for field in wire_fields(struct)
            if version in field.versions
        }
    )


def _value(kind: Kind, version: int, numbers: Iterator[int]) -> Any:
    if isinstance(kind, Array):
        return [_value(kind.element, version, numbers) for _ in range(2)]
    if isinstance(kind, type):
        return _sample(kind, version, numbers)
    number = next(numbers)
    if isinstance(kind, Number):
        return number % 126 + 1 if kind is INT8 else number
    if isinstance(kind, Identifier):
        return uuid.UUID(int=number << 64 | number)
    return f"text-{number}-é" if kind.default == STRING.default else b"bytes-%d" % number
