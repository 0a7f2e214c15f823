"""Rules of a registry's schemas, which are not obeyed: reading and writing refuse them by name."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.records import Chunk, Record, chunks, encode_batch
from spark_kafka_source.registry import RegistryDeniedError, client_of
from spark_kafka_source.topic_partition import TopicPartition
from spark_kafka_source.typed import (
    TypedConfig,
    TypedRecords,
    TypedWriteConfig,
    plan_columns,
    plan_writes,
)
from tests.registry.server import TestRegistry, error, registry_server, schema, version

LONG = json.dumps({"type": "record", "name": "E", "fields": [{"name": "id", "type": "long"}]})
LATEST, LOOKED_UP = "/subjects/t-value/versions/latest", "/subjects/t-value"
ROW = pa.struct([("id", pa.int64())])
SETS = ("domainRules", "migrationRules", "encodingRules", "laterRules")
OF_READERS, OF_WRITERS = {"READ", "UPGRADE", "DOWNGRADE", "UPDOWN"}, {"WRITE"}
MODES = [*sorted(OF_READERS | OF_WRITERS), "WRITEREAD", "LATER", None]
TEXT = "the rule 'pii', of the kind TRANSFORM and the type ENCRYPT"


@pytest.fixture
def registry() -> Iterator[TestRegistry]:
    with registry_server() as registry:
        yield registry


def ruled(mode: str | None, set_name: str = "domainRules", **fields: Any) -> dict[str, Any]:
    rule = {"name": "pii", "kind": "TRANSFORM", "type": "ENCRYPT", "mode": mode, **fields}
    others = {name: None for name in SETS if name != set_name}
    return {"ruleSet": {set_name: [rule], **others}}


def settings(registry: TestRegistry, **options: str) -> Settings:
    named = {name.replace("_", "."): text for name, text in options.items()}
    given = {"value.format": "avro", "schema.registry.url": registry.url}
    return Settings(given | {"auto.register.schemas": "true"} | named)


def read(registry: TestRegistry, *values: bytes, **options: str) -> list[Any]:
    """Read records, by default one of the schema 1, with the latest schema of the topic."""
    config = TypedConfig.from_settings(settings(registry, **options))
    typed = plan_columns(config, ("value",), lambda: ["t"])
    assert config.registry is not None
    client = client_of(config.registry)
    try:
        records = TypedRecords(typed, {"value": typed.parts["value"].source(client)})
        batches = [records.record_batch(record_of(each)) for each in values or [b"\0\0\0\0\1\x02"]]
        return [each for batch in batches for each in batch["value"].to_pylist()]
    finally:
        client.close()


def record_of(value: bytes) -> Chunk:
    data = encode_batch([Record(key=None, value=value)], base_offset=0)
    (chunk,) = chunks(data, topic_partition=TopicPartition("t", 0))
    return chunk


def write(registry: TestRegistry, **options: str) -> list[bytes | None]:
    config = TypedWriteConfig.from_settings(settings(registry, **options))
    encoder = plan_writes(config, {"value": ROW}, "t")["value"]
    found: list[bytes | None] = encoder.encode(pa.array([{"id": 1}], ROW)).to_pylist()
    return found


@pytest.mark.parametrize("set_name", SETS)
@pytest.mark.parametrize("mode", MODES)
def test_a_rule_is_refused_by_whom_it_is_for(
    registry: TestRegistry, mode: str | None, set_name: str
) -> None:
    rules = ruled(mode, set_name)
    ways: dict[str, tuple[Any, ...]] = {
        "reader": ({}, rules, {}, read, ConfigurationError, OF_WRITERS),
        "writer": (rules, {}, {}, read, ConfigurationError, OF_WRITERS),
        "looked up": ({}, {}, rules, write, ConfigurationError, OF_READERS),
    }
    for by_id, latest, looked_up, act, kind, others in ways.values():
        # The reader's schema has another id, so that the record's own is asked for.
        registry.on("/schemas/ids/1", schema(LONG, **by_id))
        registry.on(LATEST, version(LONG, 2, **latest))
        registry.on(LOOKED_UP, version(LONG, 1, **looked_up))
        if mode in others:
            assert act(registry)
        else:
            with pytest.raises(kind, match=TEXT) as caught:
                act(registry)
            assert "'value.schema.rules'" in str(caught.value)
        assert act(registry, value_schema_rules="ignore")


JSON_VALUE = b'\0\0\0\0\1{"id":1}'
JSON_SCHEMA = '{"type":"object","properties":{"id":{"type":"integer"}}}'
JSON_WAYS: dict[str, dict[str, str]] = {"latest": {}, "ddl": {"value_schema": "id BIGINT"}}


@pytest.mark.parametrize("options", JSON_WAYS.values(), ids=JSON_WAYS)
def test_of_json_the_rules_of_each_record_s_own_schema_are_asked_for(
    registry: TestRegistry, options: dict[str, str]
) -> None:
    registry.on(LATEST, version(JSON_SCHEMA, 2, schemaType="JSON"))
    act = partial(read, registry, JSON_VALUE, JSON_VALUE, value_format="json", **options)
    # The registry has no schema 1 at first: values describe themselves.
    assert act() == act(value_schema_rules="ignore") == [{"id": 1}] * 2
    assert registry.paths().count("/schemas/ids/1") == 1
    registry.on("/schemas/ids/1", schema(JSON_SCHEMA, schemaType="JSON", **ruled("WRITEREAD")))
    with pytest.raises(ConfigurationError, match=TEXT):
        act()
    assert act(value_schema_rules="ignore") == [{"id": 1}] * 2
    registry.on("/schemas/ids/1", error(403))
    with pytest.raises(RegistryDeniedError):
        act()


@pytest.mark.parametrize("bad_records", ["fail", "null", "skip"])
def test_a_schema_with_a_rule_is_no_bad_record(registry: TestRegistry, bad_records: str) -> None:
    registry.on("/schemas/ids/1", schema(LONG, **ruled("WRITEREAD")))
    registry.on(LATEST, version(LONG, 2))
    with pytest.raises(ConfigurationError, match=f"the schema 1 has {TEXT}"):
        read(registry, badRecords=bad_records)


def test_a_rule_that_is_disabled_does_not_count(registry: TestRegistry) -> None:
    registry.on("/schemas/ids/1", schema(LONG, **ruled("WRITEREAD", disabled=True)))
    registry.on(LATEST, version(LONG, 2, **ruled("WRITEREAD", disabled=True)))
    assert read(registry) == [{"id": 1}]


def test_what_is_no_list_beside_the_rules_is_no_rule(registry: TestRegistry) -> None:
    for each in ({"enabled": True}, {"laterRules": None}):
        registry.on("/schemas/ids/1", schema(LONG, ruleSet=each))
        registry.on(LATEST, version(LONG, 2, ruleSet=each))
        assert read(registry) == [{"id": 1}]


def test_a_new_version_would_have_the_rules_of_the_last_one(registry: TestRegistry) -> None:
    registry.on(LATEST, version(LONG, 2, **ruled("WRITE")))
    registry.on(f"{LOOKED_UP}/versions", version(LONG, 3))
    with pytest.raises(ConfigurationError, match=TEXT):
        write(registry)
    assert f"{LOOKED_UP}/versions" not in registry.paths()
    assert write(registry, value_schema_rules="ignore") == [b"\0\0\0\0\3\x02\x02"]
