"""Serializers of keys and values: functions of one or three arguments, and wrong ones."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.producer import UnsendableRecordError
from spark_kafka_source.producer.serializers import MutableHeaders, serialize_by


def made(serializer: Callable[..., Any] | None, data: Any) -> tuple[bytes | None, MutableHeaders]:
    headers: MutableHeaders = [("given", b"")]
    return serialize_by("value_serializer", serializer)("t", headers, data), headers


@pytest.mark.parametrize("data", [b"x", bytearray(b"x"), memoryview(b"x"), memoryview(b"yxz")[1:2]])
def test_bytes_of_any_kind_are_sent_as_they_are_now(data: Any) -> None:
    found, _ = made(None, data)
    assert found == b"x"
    assert type(found) is bytes


def test_nothing_is_null_and_is_not_serialized() -> None:
    assert made(None, None)[0] is None
    assert made(str.encode, None)[0] is None
    assert made(lambda _: None, 5)[0] is None


@pytest.mark.parametrize(
    ("serializer", "data", "expected"),
    [
        (str.encode, "ü", "ü".encode()),
        (lambda each: json.dumps(each).encode(), {"a": 1}, b'{"a": 1}'),
        (partial(str.encode, encoding="latin1"), "ü", b"\xfc"),
        (lambda text, encoding="ascii": text.encode(encoding), "u", b"u"),
        (int.to_bytes, 5, b"\5"),
        (bytes, [1, 2], b"\1\2"),
        (lambda text: bytearray(text.encode()), "u", b"u"),
    ],
)
def test_a_function_of_what_is_sent(
    serializer: Callable[..., Any], data: Any, expected: bytes
) -> None:
    assert made(serializer, data)[0] == expected


class Registered:
    """A serializer's interface if it uses a registry."""

    def __call__(self, topic: str, headers: MutableHeaders, data: Any) -> bytes | None:
        headers.append(("schema", topic.encode()))
        return None if data is None else str(data).encode()


@pytest.mark.parametrize(
    "serializer",
    [
        Registered(),
        Registered().__call__,
        lambda topic, headers, data: Registered()(topic, headers, data or None),
        lambda *three: Registered()(three[0], three[1], three[2]),
    ],
)
def test_a_function_of_all_three_adds_headers_and_is_asked_for_none_too(serializer: Any) -> None:
    assert made(serializer, 5) == (b"5", [("given", b""), ("schema", b"t")])
    assert made(serializer, None) == (None, [("given", b""), ("schema", b"t")])


def test_what_it_raises_is_the_cause_and_the_argument_is_named() -> None:
    with pytest.raises(UnsendableRecordError) as caught:
        made(str.encode, 5)
    assert (caught.value.topic, caught.value.field) == ("t", "value")
    assert isinstance(caught.value.__cause__, TypeError)
    assert "its value cannot be sent: value_serializer: TypeError" in str(caught.value)


def test_a_very_long_reason_is_cut() -> None:
    def fail(_: object) -> None:
        raise ValueError("x" * 100_000)

    with pytest.raises(UnsendableRecordError) as caught:
        made(fail, 5)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("serializer", [None, lambda each: each])
@pytest.mark.parametrize("data", ["text", 5, 1.5, ["x"], {"x": 1}])
def test_what_is_no_bytes_says_what_would_be(serializer: Any, data: Any) -> None:
    said = f"it is a {type(data).__name__}, not bytes; give a `value_serializer`, as `str.encode`"
    with pytest.raises(UnsendableRecordError, match=said):
        made(serializer, data)


@pytest.mark.parametrize("serializer", ["utf-8", 5, b""])
def test_what_cannot_be_called_is_refused_at_once(serializer: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"'key_serializer': found a .*cannot be called"):
        serialize_by("key_serializer", serializer)
