"""Declarations of messages: versions, defaults, and annotations that match the wire format."""

import typing
from typing import Any

import pytest

from spark_kafka_source.protocol import Message, Versions
from spark_kafka_source.protocol.declaration import Array, Kind, wire_fields
from spark_kafka_source.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from spark_kafka_source.protocol.wire import (
    BOOLEAN,
    RECORDS,
    UUID,
    Identifier,
    Number,
    Records,
    RecordsInPieces,
)
from tests.protocol.messages import MESSAGES, REQUESTS, structs


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [("0-3", [0, 3], [4]), ("3+", [3, 99], [2]), ("7", [7], [6, 8]), ("none", [], [0, 1])],
)
def test_versions(text: str, inside: list[int], outside: list[int]) -> None:
    versions = Versions.parse(text)
    assert all(version in versions for version in inside)
    assert not any(version in versions for version in outside)
    assert (str(versions), bool(versions)) == (text, bool(inside))


def test_what_authenticates_is_in_no_repr() -> None:
    for message in (SaslAuthenticateRequest(b"canary"), SaslAuthenticateResponse(0, "", b"canary")):
        assert "canary" not in repr(message)


def test_common_versions() -> None:
    assert Versions(2, 9).common(Versions(4, 12)) == Versions(4, 9)
    assert not Versions(2, 3).common(Versions(4, 12))


def test_a_request_names_its_response() -> None:
    assert FetchRequest.RESPONSE is FetchResponse


@pytest.mark.parametrize("request_type", REQUESTS)
def test_a_response_has_the_key_and_versions_of_its_request(request_type: Any) -> None:
    response = request_type.RESPONSE
    assert response.__name__.removesuffix("Response") + "Request" == request_type.__name__
    for name in ("KEY", "VERSIONS", "FLEXIBLE"):
        assert getattr(response, name) == getattr(request_type, name)


def test_defaults_are_not_shared() -> None:
    FetchRequest().topics.append(typing.cast(Any, "mine"))
    assert FetchRequest().topics == []
    assert FetchRequest().replica_state is not FetchRequest().replica_state


def test_defaults_are_kafkas() -> None:
    assert FetchRequest().max_bytes == 0x7FFFFFFF
    assert FetchRequest().cluster_id is None
    assert FetchPartition().high_watermark == 2**63 - 1
    assert MetadataRequest().allow_auto_topic_creation is True


@pytest.mark.parametrize("message_type", MESSAGES)
def test_annotations_say_what_the_wire_does(message_type: type[Message]) -> None:
    for struct in structs(message_type):
        hints = typing.get_type_hints(struct)
        for field in wire_fields(struct):
            nullable = bool(field.nullable) or field.kind is RECORDS
            expected = _python_type(field.kind) | None if nullable else _python_type(field.kind)
            # Written records may also be in pieces.
            in_pieces = RecordsInPieces | None if field.kind is RECORDS else expected
            assert hints[field.name] in (expected, in_pieces), (struct, field.name)


def _python_type(kind: Kind) -> Any:
    if isinstance(kind, Array):
        return list[_python_type(kind.element)]  # type: ignore[misc]  # made at run time
    if isinstance(kind, type):
        return kind
    if isinstance(kind, Number):
        return bool if kind is BOOLEAN else type(kind.default)
    if isinstance(kind, Identifier):
        return type(UUID.default)
    return Records if kind is RECORDS else type(kind.default)
