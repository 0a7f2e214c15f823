"""Serializers and deserializers as users give them: accepted, or refused when a client is made."""

import functools
import json
import struct
import uuid
from typing import Any

import pytest
from confluent_kafka import serialization as confluent

from spark_kafka_source.client.serde_arguments import DESERIALIZE, SERIALIZE, serde
from spark_kafka_source.errors import ConfigurationError

HEADERS = [("h", b"1")]


class OfTopic:
    def __init__(self) -> None:
        self.told: list[Any] = []

    def configure(self, configuration: dict[str, object], is_key: bool) -> None:
        self.told.append((configuration, is_key))

    def deserialize(self, topic: str, data: bytes) -> Any:
        return topic, data

    def serialize(self, topic: str, data: Any) -> Any:
        return topic, data

    def close(self) -> None:
        self.told.append("closed")


class OfHeaders:
    def deserialize(self, topic: str, headers: Any, data: bytes) -> Any:
        return topic, headers, data


class Called:
    def __call__(self, data: bytes, context: object = None) -> Any:
        return data, context


async def asynchronous(data: bytes) -> bytes:
    return data


def made(given: Any, method: str = DESERIALIZE) -> Any:
    found = serde("key_deserializer", given, method, {"group_id": "g"})
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("given", "data", "expected"),
    [
        (int, b"7", 7),
        (float, b"1.5", 1.5),
        (bytes.decode, b"a", "a"),
        (json.loads, b"[1]", [1]),
        (functools.partial(int, base=16), b"ff", 255),
        (struct.Struct(">i").unpack, b"\0\0\0\7", (7,)),
        (Called(), b"a", (b"a", None)),
        (confluent.StringDeserializer("utf_8"), b"a", "a"),
        (lambda data: data, b"a", b"a"),
        (lambda data, encoding="x": encoding, b"a", "x"),
        (lambda topic, data: (topic, data), b"a", ("t", b"a")),
        (lambda topic, headers, data: (topic, headers, data), b"a", ("t", HEADERS, b"a")),
        (lambda *arguments: arguments, b"a", ("t", HEADERS, b"a")),
        (OfTopic(), b"a", ("t", b"a")),
        (OfHeaders(), b"a", ("t", HEADERS, b"a")),
    ],
)
def test_functions_and_objects_get_the_arguments_of_their_signature(
    given: Any, data: bytes, expected: Any
) -> None:
    assert made(given).call("t", HEADERS, data) == expected


def test_an_object_is_configured_when_it_is_given_and_closed_later() -> None:
    given = OfTopic()
    found = made(given)
    assert given.told == [({"group_id": "g"}, True)]
    found.close()
    assert given.told[1:] == ["closed"]
    assert not found.takes_headers and made(OfHeaders()).takes_headers
    assert serde("value_serializer", None, SERIALIZE, {}) is None


NUMBERS = [
    ("Short", -2, b"\xff\xfe"),
    ("Integer", 7, b"\0\0\0\7"),
    ("Long", 2**40, b"\0\0\1\0\0\0\0\0"),
    ("Float", 1.5, b"\x3f\xc0\0\0"),
    ("Double", -1.5, b"\xbf\xf8\0\0\0\0\0\0"),
]


@pytest.mark.parametrize(
    ("name", "value", "data"),
    [
        ("String", "é", b"\xc3\xa9"),
        ("ByteArray", b"a", b"a"),
        ("Bytes", b"a", b"a"),
        ("ByteBuffer", b"a", b"a"),
        ("Boolean", True, b"\1"),
        ("UUID", uuid.UUID(int=5), b"00000000-0000-0000-0000-000000000005"),
        *NUMBERS,
    ],
)
def test_kafkas_own_have_names_here(name: str, value: object, data: bytes) -> None:
    """Tests with Kafka's classes are in `tests/consumer/test_bad_records_kafka.py`."""
    for package in ("", "org.apache.kafka.common.serialization."):
        assert made(f"{package}{name}Deserializer").call("t", (), data) == value
        assert made(f"{package}{name}Serializer", SERIALIZE).call("t", (), value) == data


@pytest.mark.parametrize(("name", "_", "data"), [*NUMBERS, ("Boolean", True, b"\2")])
def test_deserializers_of_kafka_refuse_other_bytes(name: str, _: object, data: bytes) -> None:
    wrong = data if name == "Boolean" else data + b"\0"
    with pytest.raises((struct.error, KeyError)):
        made(f"{name}Deserializer").call("t", (), wrong)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (7, "is of type int, which cannot be called and has no `deserialize`. Give a function"),
        (b"x", "is of type bytes"),
        (json, "is of type module"),
        (OfTopic, "is the class 'OfTopic'. Give an object of the class"),
        (confluent.StringDeserializer, "is the class 'StringDeserializer'. Give an object"),
        (asynchronous, "is an asynchronous function"),
        (lambda: 1, "cannot be called with any of"),
        (lambda a, b, c, d: 1, "cannot be called with any of"),
        (lambda data, *, needed: 1, "cannot be called with any of"),
        ("StringSerializer", "found 'StringSerializer'. Give 'StringDeserializer'"),
        ("io.confluent.kafka.serializers.KafkaAvroDeserializer", "give 'key.format' as 'avro'"),
        ("KafkaProtobufDeserializer", "give 'key.format' as 'protobuf'"),
        ("KafkaJsonSchemaDeserializer", "give 'key.format' as 'json'"),
        ("com.example.Own", "or a name: 'StringDeserializer', 'ByteArrayDeserializer'"),
        ("", "found ''. Give a function"),
    ],
)
def test_anything_else_is_refused_with_what_to_give(given: Any, expected: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        made(given)
    assert refused.value.option == "key_deserializer"
    assert expected in str(refused.value)


def test_an_object_with_a_wrong_method_is_refused() -> None:
    class NoMethod(OfTopic):
        deserialize = None  # type: ignore[assignment]

    class NoClose(OfTopic):
        close = True  # type: ignore[assignment]

    class Fails(OfTopic):
        def configure(self, configuration: dict[str, object], is_key: bool) -> None:
            raise ValueError("canary")

    for wrong, expected in ((NoMethod(), "has no `deserialize`"), (NoClose(), "has `close`")):
        with pytest.raises(ConfigurationError, match=expected):
            made(wrong)
    with pytest.raises(ConfigurationError, match="raised ValueError in `configure") as failed:
        made(Fails())
    assert isinstance(failed.value.__cause__, ValueError) and "canary" not in str(failed.value)
