"""Responses of every API in every version: decoded, or an error that names API and version."""

from collections.abc import Iterator
from typing import Any

from spark_kafka_source.errors import ProtocolError
from spark_kafka_source.protocol import ResponseHeader, decode, encode, wire_fields
from spark_kafka_source.protocol.declaration import Array
from tests.protocol.messages import REQUESTS, all_versions

RESPONSES = [
    (message_type, version)
    for message_type in (*(request.RESPONSE for request in REQUESTS), ResponseHeader)
    for version in all_versions(message_type)
]
"""Response classes that the first byte of an input selects from. They are fewer than 256."""


def responses(data: bytes) -> None:
    """A byte selects the class and the version. The message follows."""
    message_type, version = RESPONSES[data[0] % len(RESPONSES)] if data else RESPONSES[0]
    message = _decoded(message_type, version, data[1:])
    if message:
        assert decode(message_type, version, encode(message, version)) == message
        assert _decoded(message_type, version, data[1:-1]) is None, "its last byte was not read"


def _decoded(message_type: type[Any], version: int, data: bytes) -> Any:
    try:
        return decode(message_type, version, data)
    except ProtocolError as error:
        assert str(error).startswith(f"{message_type.__name__} v{version}")
        return None


def bombs(struct: type, version: int, count: int) -> Iterator[Any]:
    """Yield messages of default values, except one array, at any depth, with so many elements.

    Such messages use the most memory for the fewest bytes.
    """
    for field in wire_fields(struct):
        if isinstance(field.kind, Array) and version in field.versions:
            element: Any = field.kind.element
            value = element() if isinstance(element, type) else element.default
            yield struct(**{field.name: [value] * count})
            for inner in bombs(element, version, count) if isinstance(element, type) else ():
                yield struct(**{field.name: [inner]})
