"""Serializers of keys and values: functions of one or three arguments, and wrong ones."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from spark_kafka_source.client.serde_arguments import SERIALIZE, serde
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.producer import KafkaProducer, UnsendableRecordError
from spark_kafka_source.producer.record import GivenSerializer, MutableHeaders, serialize
from spark_kafka_source.testing.memory import MemoryBroker
from tests.producer.writing import IN_TIME, written

pytestmark = pytest.mark.memory(topics={"t": 1})


def given(argument: str, serializer: object) -> GivenSerializer:
    return GivenSerializer(argument, serde(argument, serializer, SERIALIZE, {}))


def made(
    serializer: Callable[..., Any] | str | None, data: Any
) -> tuple[bytes | None, MutableHeaders]:
    headers: MutableHeaders = [("given", b"")]
    turn = serialize("value", given("value_serializer", serializer), None, ())
    return turn("t", headers, data), headers


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
    found = f"it is an object of type {type(data).__name__}, not bytes"
    said = f"{found}; give a `value_serializer`, as `str.encode`"
    with pytest.raises(UnsendableRecordError, match=said):
        made(serializer, data)


@pytest.mark.parametrize("serializer", ["utf-8", 5, b"", object(), lambda: b"", lambda *, a: a])
def test_what_cannot_be_called_is_refused_at_once(serializer: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"'key_serializer': "):
        KafkaProducer(bootstrap_servers="localhost:1", key_serializer=serializer)
    with pytest.raises(ConfigurationError, match=r"'value.serializer': "):
        KafkaProducer(**{"bootstrap.servers": "localhost:1", "value.serializer": serializer})


class Kafkas:
    """A serializer with Kafka's methods."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def configure(self, configs: Mapping[str, object], is_key: bool) -> None:
        self.told.append((configs["bootstrap_servers"], is_key))

    def serialize(self, topic: str, data: Any) -> bytes | None:
        return None if data is None else f"{topic}:{data}".encode()

    def close(self) -> None:
        self.told.append("closed")
        raise ValueError("which the producer logs")


def test_an_object_with_kafkas_methods_is_configured_used_and_closed(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    key, value = Kafkas(), Kafkas()
    servers = str(broker.address())
    with KafkaProducer(
        bootstrap_servers=servers, key_serializer=key, value_serializer=value
    ) as producer:
        producer.send("t", 5, key=6).result(IN_TIME)
        producer.send("t", None).result(IN_TIME)
    assert key.told == [(servers, True), "closed"]
    assert value.told == [(servers, False), "closed"]
    (first, second) = written(broker.cluster.topics["t"].logs[0])
    assert (first.key, first.value) == (b"t:6", b"t:5")
    assert (second.key, second.value) == (None, None)
    assert "which the producer logs" in caplog.text


def test_kafkas_own_have_names(broker: MemoryBroker) -> None:
    settings: dict[str, Any] = {
        "bootstrap.servers": str(broker.address()),
        "key.serializer": "org.apache.kafka.common.serialization.LongSerializer",
        "value.serializer": "StringSerializer",
    }
    with KafkaProducer(**settings) as producer:
        producer.send("t", "v", key=7).result(IN_TIME)
        with pytest.raises(UnsendableRecordError, match=r"value.serializer: TypeError"):
            producer.send("t", 5)
    (record,) = written(broker.cluster.topics["t"].logs[0])
    assert (record.key, record.value) == ((7).to_bytes(8, "big"), b"v")


@pytest.mark.parametrize("data", [5, "text", [1]])
def test_kafkas_byte_array_takes_only_bytes(data: Any) -> None:
    with pytest.raises(UnsendableRecordError, match="not bytes"):
        made("ByteArraySerializer", data)


def test_confluents_class_for_avro_is_the_option_here() -> None:
    name = "io.confluent.kafka.serializers.KafkaAvroSerializer"
    with pytest.raises(ConfigurationError, match=r"give 'value_format' as 'avro'"):
        KafkaProducer(bootstrap_servers="localhost:1", value_serializer=name)


def test_a_dict_by_position_shows_our_form() -> None:
    with pytest.raises(ConfigurationError, match=r"KafkaProducer\(\*\*configuration\)"):
        KafkaProducer({"bootstrap.servers": "localhost:1"})  # type: ignore[arg-type]
