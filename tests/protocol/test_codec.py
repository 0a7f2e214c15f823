"""The codec with valid messages: round trips, and errors instead of lost fields."""

import base64
import re
import uuid
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_kafka_source.errors import LocalError, ProtocolError, UnsupportedVersionError
from spark_kafka_source.protocol import Message, decode, encode, wire_fields
from spark_kafka_source.protocol.declaration import Array
from spark_kafka_source.protocol.messages.admin import CreatableTopic, CreateTopicsRequest
from spark_kafka_source.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ReplicaState,
)
from spark_kafka_source.protocol.messages.find_coordinator import FindCoordinatorRequest
from spark_kafka_source.protocol.messages.groups import OffsetFetchRequest
from spark_kafka_source.protocol.messages.list_offsets import ListOffsetsRequest
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from tests.protocol.messages import MESSAGES, MESSAGES_AND_VERSIONS, sample
from tests.protocol.strategies import messages_in_a_version
from tools import protocol_vectors as vectors

GENEROUS = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("message_type", MESSAGES)
@GENEROUS
@given(data=st.data())
def test_any_message_comes_back(message_type: type[Message], data: st.DataObject) -> None:
    message, version = data.draw(messages_in_a_version(message_type))
    assert decode(message_type, version, encode(message, version)) == message


@pytest.mark.parametrize(("message_type", "version"), MESSAGES_AND_VERSIONS)
def test_a_message_with_every_field_set_comes_back(
    message_type: type[Message], version: int
) -> None:
    message = sample(message_type, version)
    assert decode(message_type, version, encode(message, version)) == message


@pytest.mark.parametrize("vector", vectors.read(), ids=lambda vector: f"{vector[0]}-{vector[1]}")
def test_kafkas_bytes_mean_to_us_what_they_mean_to_kafka(vector: vectors.Vector) -> None:
    (message_type,) = (each for each in MESSAGES if each.__name__ == vector.name)
    message = decode(message_type, vector.version, vector.data)
    _assert_same(message, vector.json)
    assert encode(message, vector.version) == vector.data
    assert message == sample(message_type, vector.version)


def _assert_same(value: Any, expected: Any) -> None:
    if isinstance(value, list):
        for element, its_expected in zip(value, expected, strict=True):
            _assert_same(element, its_expected)
    elif isinstance(value, uuid.UUID):
        # Kafka prints ids in base64.
        assert value.int >> 64 == value.int & (2**64 - 1) != 0
    elif isinstance(value, bytes):
        assert value == base64.b64decode(expected)
    elif isinstance(value, memoryview):
        assert expected == ""  # Kafka's JSON has no records.
    elif hasattr(value, "__dataclass_fields__"):
        fields = {field.name: field for field in wire_fields(type(value))}
        names = {_snake(name): name for name in expected}
        assert names.keys() <= fields.keys()
        for name, field in fields.items():
            found = getattr(value, name)
            if name in names:
                _assert_same(found, expected[names[name]])
            else:
                assert found == field.default()
    else:
        assert value == expected


def _snake(name: str) -> str:
    return re.sub(r"(?=[A-Z])", "_", name).lower()


def test_a_field_that_a_version_lacks_is_refused() -> None:
    request = CreateTopicsRequest(topics=[CreatableTopic(name="a")], validate_only=True)
    encode(request, 2)
    with pytest.raises(
        UnsupportedVersionError, match=r"FindCoordinatorRequest\.coordinator_keys.*3"
    ):
        encode(FindCoordinatorRequest(coordinator_keys=["g"]), 3)
    with pytest.raises(UnsupportedVersionError, match=r"FindCoordinatorRequest\.key .*version 4"):
        encode(FindCoordinatorRequest(key="g"), 4)


def test_a_tagged_field_that_a_version_lacks_is_refused() -> None:
    encode(FetchRequest(replica_state=ReplicaState(replica_id=1)), 15)
    with pytest.raises(UnsupportedVersionError, match="replica_state"):
        encode(FetchRequest(replica_state=ReplicaState(replica_id=1)), 14)


def test_a_nested_field_that_a_version_lacks_is_refused() -> None:
    request = FetchRequest(topics=[FetchTopic(partitions=[FetchPartition(last_fetched_epoch=3)])])
    encode(request, 12)
    with pytest.raises(UnsupportedVersionError, match=r"FetchPartition\.last_fetched_epoch"):
        encode(request, 11)


def test_an_ignorable_field_vanishes_in_versions_that_lack_it() -> None:
    topic_id = uuid.uuid4()
    request = FetchRequest(topics=[FetchTopic(topic="t", topic_id=topic_id)])
    by_name, by_id = (
        decode(FetchRequest, version, encode(request, version)) for version in (12, 13)
    )
    assert by_name.topics == [FetchTopic(topic="t")]
    assert by_id.topics == [FetchTopic(topic_id=topic_id)]


def test_null_is_refused_where_the_version_has_none() -> None:
    assert decode(MetadataRequest, 1, encode(MetadataRequest(topics=None), 1)).topics is None
    with pytest.raises(
        UnsupportedVersionError, match=r"MetadataRequest\.topics in version 0.*null"
    ):
        encode(MetadataRequest(topics=None), 0)
    with pytest.raises(UnsupportedVersionError, match=r"OffsetFetchRequest\.topics"):
        encode(OffsetFetchRequest(topics=None), 8)


@pytest.mark.parametrize(
    "request_",
    [
        FetchRequest(max_wait_ms=2**31),
        FetchRequest(max_wait_ms="soon"),  # type: ignore[arg-type]  # a wrong type
        FetchRequest(topics=None),  # type: ignore[arg-type]  # likewise
        FetchRequest(topics=[None]),  # type: ignore[list-item]  # likewise
        FetchRequest(topics=[FetchTopic(topic="x" * 40_000)]),
        FetchRequest(topics=[FetchTopic(topic="\ud800")]),
        FetchRequest(rack_id=3),  # type: ignore[arg-type]  # likewise
    ],
)
def test_a_value_that_does_not_fit_its_field_is_refused(request_: FetchRequest) -> None:
    with pytest.raises(LocalError, match=r"^Fetch(Request|Topic)\.\w+ in version 11"):
        encode(request_, 11)


def test_a_version_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UnsupportedVersionError, match=r"FetchRequest has no version 3; .* 4-18"):
        encode(FetchRequest(), 3)
    with pytest.raises(UnsupportedVersionError):
        decode(ListOffsetsRequest, 0, b"")


def test_what_follows_a_message_is_refused() -> None:
    with pytest.raises(ProtocolError, match="1 bytes are left over"):
        decode(FetchRequest, 18, encode(FetchRequest(), 18) + b"\0")


def test_arrays_of_numbers_are_lists() -> None:
    """The codec reads them all at once, not one by one."""
    for message_type, version in MESSAGES_AND_VERSIONS:
        found = decode(message_type, version, encode(sample(message_type, version), version))
        for field in wire_fields(message_type):
            if isinstance(field.kind, Array):
                assert isinstance(getattr(found, field.name), list)
