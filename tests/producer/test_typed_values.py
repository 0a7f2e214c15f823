"""A producer with typed values: dicts and structs by a schema, and errors for wrong values."""

import io
import json
import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from spark_kafka_source import KafkaProducer, UnsendableRecordError
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.records import ColumnTypeError, UnencodableRowError
from spark_kafka_source.registry import RegistryUnavailableError
from spark_kafka_source.testing.memory import MemoryBroker
from tests.producer.writing import producing, written
from tests.registry.server import Reply, TestRegistry, error, registry_server, schema, version

pytestmark = pytest.mark.memory(topics={"t": 1})

EVENT: dict[str, Any] = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "place", "type": ["null", {"type": "record", "name": "Place", "fields": [
            {"name": "city", "type": "string"}]}], "default": None},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}  # fmt: skip
LATEST = "/subjects/t-value/versions/latest"
LOOKED_UP, REGISTERED = "/subjects/t-value", "/subjects/t-value/versions"
GOOD = {"id": 1, "place": {"city": "Ulm"}, "tags": ["a", "b"]}
EVENTS = pa.struct(
    [
        ("id", pa.int64()),
        ("place", pa.struct([("city", pa.string())])),
        ("tags", pa.list_(pa.string())),
    ]
)


@pytest.fixture
def registry() -> Iterator[TestRegistry]:
    """Run a registry. The latest schema of topic t is the one of events, with the id 7."""
    with registry_server() as registry:
        registry.on(LATEST, version(json.dumps(EVENT), 7))
        registry.on("/schemas/ids/7", schema(json.dumps(EVENT)))
        yield registry


def avro(registry: TestRegistry, **options: Any) -> dict[str, Any]:
    return {"value_format": "avro", "schema_registry_url": registry.url, **options}


def read(writer: Any, data: bytes) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(data), fastavro.parse_schema(writer), None)


def values(broker: MemoryBroker) -> list[Any]:
    """Return the written values, read by fastavro."""
    found = [each.value for each in written(broker.cluster.topics["t"].logs[0])]
    for each in found:
        assert each is None or each[:5] == struct.pack(">bi", 0, 7)
    return [None if each is None else read(EVENT, each[5:]) for each in found]


# -- dicts -----------------------------------------------------------------------------------------


def test_dicts_are_written_by_the_latest_schema_of_their_topic(
    broker: MemoryBroker, registry: TestRegistry
) -> None:
    with producing(broker, **avro(registry)) as producer:
        for each in (GOOD, {"id": 2, "tags": []}, None):
            producer.send("t", each, key=b"k")
        producer.flush(30)
    assert values(broker) == [GOOD, {"id": 2, "place": None, "tags": []}, None]
    assert registry.paths() == [LATEST]


@pytest.mark.parametrize(
    "named",
    [
        {"value_schema_subject": "of-all", "value_schema_version": 3},
        {"value_schema_id": 7},
        {"value.schema.id": "7"},
    ],
)
def test_the_schema_may_be_named(
    broker: MemoryBroker, registry: TestRegistry, named: dict[str, Any]
) -> None:
    registry.on("/subjects/of-all/versions/3?deleted=true", version(json.dumps(EVENT), 7, 3))
    del registry.replies[LATEST]
    with producing(broker, **avro(registry, **named)) as producer:
        producer.send("t", GOOD).result(30)
    assert values(broker) == [GOOD]


def test_a_schema_that_is_given_is_looked_up_or_registered(
    broker: MemoryBroker, registry: TestRegistry
) -> None:
    registry.on(LOOKED_UP, error(404, 40403))
    registry.on(REGISTERED, Reply(json={"id": 7}))
    given = avro(registry, value_schema=json.dumps(EVENT))
    with (
        producing(broker, **given) as producer,
        pytest.raises(ConfigurationError, match="'auto_register_schemas': is 'false'"),
    ):
        producer.send("t", GOOD)
    with producing(broker, **given, auto_register_schemas=True) as producer:
        producer.send("t", GOOD).result(30)
    assert values(broker) == [GOOD]
    assert json.loads(registry.asked[-1].json["schema"]) == EVENT


def test_what_the_registry_has_against_a_schema_is_said(
    broker: MemoryBroker, registry: TestRegistry
) -> None:
    registry.on(LOOKED_UP, error(404, 40403))
    registry.on(REGISTERED, error(409, 409, "reader's field 'x' has no default"))
    given = avro(registry, value_schema=json.dumps(EVENT), auto_register_schemas=True)
    with producing(broker, **given) as producer:
        with pytest.raises(ConfigurationError, match="reader's field 'x' has no default"):
            producer.send("t", GOOD)
        assert not written(broker.cluster.topics["t"].logs[0])


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"id": "x", "tags": []}, "id: 'x' is no int64"),
        ({"id": 1.5, "tags": []}, "id: 1.5 is no int64"),
        ({"id": True, "tags": []}, "id: True is no int64"),
        ({"id": 2**63, "tags": []}, f"id: {2**63} is no int64"),
        (
            {"id": 1, "tags": [], "palce": None},
            "palce: the schema has no such field. The schema has: id, place,",
        ),
        ({"id": 1, "tags": [], "place": {"town": "x"}}, "place.town: the schema has no such field"),
        ({"id": 1, "tags": [], "place": {"city": 5}}, "place.city: 5 is no string"),
        ({"id": 1, "tags": [], "place": {}}, "place.city: null, where the schema has"),
        ({"id": 1, "tags": [], "place": "Ulm"}, "place: 'Ulm' is no dict"),
        ({"id": 1, "tags": "a,b"}, "tags: 'a,b' is no list"),
        ({"id": 1, "tags": ["a", b"b"]}, "tags[]: b'b' is no string"),
        ({"id": 1, "tags": ["\ud800"]}, "is no string"),
        ({"id": 1}, "tags: null, where the schema has"),
        ([1], "[1] is no dict"),
        (b"bytes", "is no dict"),
    ],
)
def test_what_does_not_fit_is_named_by_its_path_and_nothing_is_sent(
    broker: MemoryBroker, registry: TestRegistry, value: Any, reason: str
) -> None:
    with producing(broker, **avro(registry)) as producer:
        with pytest.raises(UnsendableRecordError) as failed:
            producer.send("t", value)
        assert (failed.value.topic, failed.value.field) == ("t", "value")
        assert reason in str(failed.value)
        producer.send("t", GOOD).result(30)
    assert values(broker) == [GOOD]


def test_a_topic_without_a_schema_is_told_so(broker: MemoryBroker, registry: TestRegistry) -> None:
    del registry.replies[LATEST]
    with producing(broker, **avro(registry)) as producer:
        for _ in range(2):
            with pytest.raises(ConfigurationError, match="'value_schema': is not given") as failed:
                producer.send("t", GOOD)
        assert "subject 't-value'" in str(failed.value)
        registry.on(LATEST, version(json.dumps(EVENT), 7))
        producer.send("t", GOOD).result(30)


def test_a_registry_that_is_away_is_asked_again(
    broker: MemoryBroker, registry: TestRegistry
) -> None:
    registry.on(LATEST, error(503))
    with producing(broker, **avro(registry, schema_registry_timeout_ms=50)) as producer:
        with pytest.raises(RegistryUnavailableError):
            producer.send("t", GOOD)
        # Now the call may be slow, as on a busy machine.
        encoding: Any = producer._encoding
        client = encoding._registry
        client.config = replace(client.config, timeout_ms=30_000)
        registry.on(LATEST, version(json.dumps(EVENT), 7))
        producer.send("t", GOOD).result(30)
    assert values(broker) == [GOOD]


def test_json_and_texts_need_no_schema(broker: MemoryBroker) -> None:
    with producing(broker, value_format="json", key_format="string") as producer:
        producer.send("t", {"a": [1, "ü", None]}, key="k")
        producer.send("t", None)
        with pytest.raises(UnsendableRecordError, match="its value cannot be sent: it is not JSON"):
            producer.send("t", {"a": b"bytes"})
        with pytest.raises(
            UnsendableRecordError, match=r"its key .* it is an object of type int that is no text"
        ):
            producer.send("t", {}, key=5)
        producer.flush(30)
    first, second = written(broker.cluster.topics["t"].logs[0])
    assert (first.key, first.value) == (b"k", '{"a":[1,"ü",null]}'.encode())
    assert second.value is None
    with producing(broker, value_format="json", value_schema="a INT") as producer:
        with pytest.raises(UnsendableRecordError, match="a: 'x' is no int32"):
            producer.send("t", {"a": "x"})
        producer.send("t", {"a": 5}).result(30)
    assert written(broker.cluster.topics["t"].logs[0])[-1].value == b'{"a":5}'


def test_keys_are_encoded_before_they_choose_a_partition(
    broker: MemoryBroker, registry: TestRegistry
) -> None:
    broker.create_topic("k", 3)
    registry.on("/subjects/k-key/versions/latest", version('"long"', 9))
    keys = {"key_format": "avro", "schema_registry_url": registry.url}
    data = b"\0\0\0\0\x09\x0a"
    with producing(broker, **keys) as producer, producing(broker) as plain:
        found = producer.send("k", b"v", key=5).result(30)
        assert found.partition == plain.send("k", b"v", key=data).result(30).partition
    assert written(broker.cluster.topics["k"].logs[found.partition])[0].key == data


# -- columns ---------------------------------------------------------------------------------------


def test_columns_of_structs_are_written_by_the_schema_of_their_type(
    broker: MemoryBroker, registry: TestRegistry
) -> None:
    registry.on(LOOKED_UP, error(404, 40403))
    registry.on(REGISTERED, Reply(json={"id": 7}))
    column = pa.chunked_array([pa.array([GOOD], EVENTS), pa.array([None, GOOD], EVENTS)])
    table = pa.table({"value": column, "key": ["a", "b", "c"], "other": [1, 2, 3]})
    with producing(broker, **avro(registry, auto_register_schemas=True)) as producer:
        producer.send_columns("t", table).result(30)
        producer.send_columns("t", table.slice(0, 0)).result(30)
        producer.send_columns("t", pa.table({"value": pa.nulls(1)})).result(30)
    registered = json.loads(registry.asked[-1].json["schema"])
    assert registered["name"] == "t_value"
    found = [each.value for each in written(broker.cluster.topics["t"].logs[0])]
    assert [each and read(registered, each[5:]) for each in found] == [
        GOOD,
        None,
        GOOD,
        None,
    ]
    assert registry.paths() == [LOOKED_UP, LATEST, REGISTERED]


def test_a_row_that_does_not_fit_is_named_as_it_stands_in_the_table(
    broker: MemoryBroker, registry: TestRegistry
) -> None:
    bad = {**GOOD, "tags": None}
    column = pa.chunked_array([pa.array([GOOD] * 2, EVENTS), pa.array([GOOD, bad, bad], EVENTS)])
    with producing(broker, **avro(registry, value_schema_subject="t-value")) as producer:
        with pytest.raises(UnencodableRowError, match="tags: null") as failed:
            producer.send_columns("t", pa.table({"value": column}))
        assert failed.value.rows == (3, 4)
        with pytest.raises(ColumnTypeError):
            producer.send_columns("t", pa.table({"value": [b"bytes"]}))
        with pytest.raises(TypeError):
            producer.send_columns("t", [GOOD])
    assert not written(broker.cluster.topics["t"].logs[0])


# -- wrong arguments -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "option", "text"),
    [
        ({"value_format": "arvo"}, "value_format", "found 'arvo'"),
        ({"value_fields": "id"}, "value_fields", "is no configuration of this producer"),
        ({"bad_records": "null"}, "bad_records", "is no configuration of this producer"),
        ({"schema_registry_url": "http://x"}, "schema_registry_url", "has no effect"),
        (
            {"value_format": "avro", "value_schema_id": 5},
            "schema_registry_url",
            "is missing, where 'value_format' is 'avro'",
        ),
        (
            {"value_format": "json", "value_serializer": str.encode},
            "value_serializer",
            "is given as well as 'value_format'",
        ),
        (
            {"key_format": "string", "key_serializer": str.encode},
            "key_serializer",
            "is given as well as 'key_format'",
        ),
    ],
)
def test_what_cannot_be_used_is_said_by_the_name_that_was_given(
    options: dict[str, Any], option: str, text: str
) -> None:
    with pytest.raises(ConfigurationError) as failed:
        KafkaProducer(bootstrap_servers="127.0.0.1:1", **options)
    assert failed.value.option == option
    assert text in str(failed.value)
    assert "kafka." not in str(failed.value)
