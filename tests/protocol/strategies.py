"""Hypothesis strategies from the declarations: random messages, and damaged bytes."""

from typing import Any

from hypothesis import strategies as st

from spark_kafka_source.protocol import ZERO_UUID, Message, encode
from spark_kafka_source.protocol.declaration import Array, Kind, wire_fields
from spark_kafka_source.protocol.wire import BOOLEAN, FLOAT64, STRING, Identifier, Number
from tests.protocol.messages import all_versions


def messages(message_type: type, version: int) -> st.SearchStrategy[Any]:
    """Draw a message or nested struct of this version. Fields of other versions are default."""
    fields = {
        field.name: _values(field.kind, version, nullable=version in field.nullable)
        for field in wire_fields(message_type)
        if version in field.versions
    }
    return st.builds(message_type, **fields)


@st.composite
def messages_in_a_version(draw: st.DrawFn, message_type: type[Message]) -> tuple[Any, int]:
    """Draw a message in any of its versions."""
    version = draw(st.sampled_from(all_versions(message_type)))
    return draw(messages(message_type, version)), version


@st.composite
def damaged(draw: st.DrawFn, message_type: type[Message]) -> tuple[int, bytes]:
    """Draw a version, and a message's bytes with lost, added or changed bytes."""
    message, version = draw(messages_in_a_version(message_type))
    data = bytearray(encode(message, version))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        data[start : start + draw(st.integers(0, 4))] = draw(st.binary(max_size=5))
    return version, bytes(data)


def _values(kind: Kind, version: int, *, nullable: bool) -> st.SearchStrategy[Any]:
    values = _values_that_are_not_null(kind, version)
    return st.none() | values if nullable else values


def _values_that_are_not_null(kind: Kind, version: int) -> st.SearchStrategy[Any]:
    if isinstance(kind, Array):
        return st.lists(_values(kind.element, version, nullable=False), max_size=3)
    if isinstance(kind, type):
        return messages(kind, version)
    if isinstance(kind, Number):
        return _numbers(kind)
    if isinstance(kind, Identifier):
        return st.just(ZERO_UUID) | st.uuids()
    if kind.default == STRING.default:
        # Longer ones need a length of more than one byte.
        return st.text(max_size=8) | st.sampled_from(["x" * 126, "x" * 127, "é" * 9000])
    return st.binary(max_size=8) | st.sampled_from([b"x" * 127, b"x" * 16384])


def _numbers(kind: Number) -> st.SearchStrategy[Any]:
    if kind is BOOLEAN:
        return st.booleans()
    if kind is FLOAT64:
        return st.floats(allow_nan=False)
    bits = 8 * kind.layout.size
    if kind.name.startswith("u"):
        return st.integers(0, 2**bits - 1)
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
