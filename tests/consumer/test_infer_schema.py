"""The columns of a topic's values, from its records or from the registry."""

import json
from typing import Any

import pytest

from spark_kafka_source import infer_schema
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.protocol.messages.groups import OffsetCommitRequest
from spark_kafka_source.records import Record
from spark_kafka_source.testing.memory import MemoryBroker
from spark_kafka_source.values import SchemaError
from tests.registry.server import registry_server, version

pytestmark = pytest.mark.memory(nodes=3)

AVRO = {"type": "record", "name": "E", "fields": [
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "of", "type": {"type": "map", "values": "double"}},
]}  # fmt: skip


def inferred(broker: MemoryBroker, **options: Any) -> str:
    return infer_schema("t", bootstrap_servers=str(broker.address()), **options)


@pytest.mark.parametrize(
    "options",
    [{}, {"value_format": "json"}, {"group_id": "g", "enable.auto.commit": True}],
    ids=repr,
)
def test_records_of_json_have_columns_in_common(
    broker: MemoryBroker, options: dict[str, Any]
) -> None:
    logs = broker.create_topic("t", 2)
    logs[0].append(b'{"id": 1}', Record(value=None), b"no JSON")
    logs[1].append(b'\0\0\0\0\7{"id": 2.5, "place": {"city": "x"}}')
    assert inferred(broker, **options) == "id DOUBLE, place STRUCT<city: STRING>"
    assert not broker.requests(OffsetCommitRequest)


def test_only_so_many_of_the_newest_are_looked_at(broker: MemoryBroker) -> None:
    (log,) = broker.create_topic("t")
    log.append(b'{"old": 1}')
    log.append(b'{"new": 1}', b'{"newer": 1}')
    assert inferred(broker, records=2) == "new BIGINT, newer BIGINT"


def test_keys(broker: MemoryBroker) -> None:
    broker.create_topic("t")[0].append(Record(key=b'{"k": true}', value=b"{}"))
    assert inferred(broker, part="key") == "k BOOLEAN"


def test_where_there_is_none(broker: MemoryBroker) -> None:
    broker.create_topic("t")
    with pytest.raises(SchemaError, match="there is no JSON object among the values"):
        inferred(broker)
    with pytest.raises(ConfigurationError, match="'schema_registry_url'"):
        inferred(broker, value_format="avro")


def test_the_registry_says_it_without_a_record() -> None:
    with registry_server() as registry:
        registry.on("/subjects/t-value/versions/latest", version(json.dumps(AVRO), 7))
        options: dict[str, Any] = {"value_format": "avro", "schema_registry_url": registry.url}
        options["bootstrap_servers"] = "127.0.0.1:1"
        assert infer_schema("t", **options) == "at TIMESTAMP, of MAP<STRING, DOUBLE>"


def test_a_schema_of_json_goes_before_the_records() -> None:
    options: dict[str, Any] = {"value_format": "json", "bootstrap_servers": "127.0.0.1:1"}
    assert infer_schema("t", **options, value_schema="a INT") == "a INT"
    with registry_server() as registry:
        found = {"type": "object", "properties": {"a": {"type": "boolean"}}}
        latest = version(json.dumps(found), 7, schemaType="JSON")
        registry.on("/subjects/t-value/versions/latest", latest)
        assert infer_schema("t", **options, schema_registry_url=registry.url) == "a BOOLEAN"
