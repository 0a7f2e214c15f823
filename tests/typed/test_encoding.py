"""A producer's values and columns to bytes, by its options."""

import json
from collections.abc import Iterator
from contextlib import closing

import pyarrow as pa
import pytest

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.records import UnencodableRowError
from spark_kafka_source.typed import TypedEncoding, TypedWriteConfig
from tests.registry.server import TestRegistry, registry_server, version

EVENT = {"type": "record", "name": "E", "fields": [{"name": "id", "type": "long"}]}
OF_JSON = {"type": "object", "properties": {"id": {"type": "integer"}}}
KIND = pa.struct([("id", pa.int64())])


@pytest.fixture
def registry() -> Iterator[TestRegistry]:
    with registry_server() as registry:
        for name in ("t", "u", "named"):
            registry.on(f"/subjects/{name}-value/versions/latest", version(json.dumps(EVENT), 7))
        found = version(json.dumps(OF_JSON), 8, schemaType="JSON")
        registry.on("/subjects/json-value/versions/latest", found)
        registry.on("/schemas/ids/8", found)
        yield registry


def encoding(**options: str) -> TypedEncoding:
    named = {name.replace("_", "."): value for name, value in options.items()}
    return TypedEncoding(TypedWriteConfig.from_settings(Settings(named)))


def test_each_topic_is_looked_up_once(registry: TestRegistry) -> None:
    with closing(encoding(value_format="avro", schema_registry_url=registry.url)) as by:
        for topic in ("t", "u", "t"):
            assert by.one("value", topic, {"id": 1}) == b"\0\0\0\0\7\2"
        assert by.one("value", "nowhere", None) is None
    assert registry.paths() == [f"/subjects/{each}-value/versions/latest" for each in "tu"]


@pytest.mark.parametrize(
    "named",
    [{"value_schema_subject": "json-value"}, {"value_schema_id": "8"}],
    ids=repr,
)
@pytest.mark.parametrize(("framing", "prefix"), [("default", b"\0\0\0\0\x08"), ("none", b"")])
def test_json_by_a_schema_of_the_registry(
    registry: TestRegistry, named: dict[str, str], framing: str, prefix: bytes
) -> None:
    options = {"value_format": "json", "schema_registry_url": registry.url, **named}
    with closing(encoding(**options, value_framing=framing)) as by:
        assert by.one("value", "t", {"id": 1}) == prefix + b'{"id":1}'
        with pytest.raises(UnencodableRowError, match="id: 'x' is no"):
            by.one("value", "t", {"id": "x"})


def test_a_version_alone_is_one_of_the_topics_subject(registry: TestRegistry) -> None:
    registry.on("/subjects/t-value/versions/3?deleted=true", version(json.dumps(EVENT), 9, 3))
    options = {"value_format": "avro", "value_schema_version": "3"}
    rows = pa.table({"value": pa.array([{"id": 1}], KIND)})
    with closing(encoding(**options, schema_registry_url=registry.url)) as by:
        assert by.one("value", "t", {"id": 1}) == b"\0\0\0\0\x09\2"
        assert by.table("t", rows)["value"].to_pylist() == [b"\0\0\0\0\x09\2"]
    with pytest.raises(ConfigurationError, match=r"schema\.registry\.url': is missing"):
        encoding(**options)


def test_json_of_a_topic_with_a_registry(registry: TestRegistry) -> None:
    with closing(encoding(value_format="json", schema_registry_url=registry.url)) as by:
        assert by.one("value", "json", {"id": 1}) == b'\0\0\0\0\x08{"id":1}'
    framed = {"value_format": "json", "value_framing": "none"}
    with closing(encoding(**framed, schema_registry_url=registry.url)) as by:
        assert by.one("value", "nowhere", {"any": [1]}) == b'{"any":[1]}'
        assert by.of_topic("value", "nowhere") is None


def test_rows_are_counted_in_the_whole_table(registry: TestRegistry) -> None:
    named = {"value_schema_subject": "named-value"}
    column = pa.chunked_array(
        [pa.array([{"id": 1}, None], KIND), pa.array([{"id": None}, {"id": 3}], KIND)]
    )
    avro = {"value_format": "avro", "schema_registry_url": registry.url}
    with closing(encoding(**avro, **named)) as by:
        with pytest.raises(UnencodableRowError, match="id: null") as failed:
            by.table("t", pa.table({"value": column}))
        assert failed.value.rows == (2,)
        found = by.table("t", pa.table({"value": column.slice(0, 2), "n": [1, 2]}))
        assert found.to_pydict() == {"value": [b"\0\0\0\0\7\2", None], "n": [1, 2]}
        empty = by.table("t", pa.table({"value": column}).slice(4))
        assert (empty.num_rows, empty.schema.field("value").type) == (0, pa.binary())


@pytest.mark.parametrize("name", [1, None, False, 1.5], ids=repr)
def test_json_without_a_schema_takes_names_that_are_strings(name: object) -> None:
    with closing(encoding(value_format="json")) as by:
        assert by.one("value", "t", {"a": [{"1": "b"}]}) == b'{"a":[{"1":"b"}]}'
        for value, path in [
            ({name: "a", "1": "b"}, "{}"),
            ({"a": {name: 1}}, "a{}"),
            ([({"b": {name: 1}},)], "[][].b{}"),
        ]:
            with pytest.raises(UnencodableRowError) as failed:
                by.one("value", "t", value)
            assert failed.value.reason == f"{path}: {name!r} is no string"


def test_validation_takes_a_schema_in_all_ways_to_write() -> None:
    with closing(encoding(value_format="json", value_validate="true")) as by:
        with pytest.raises(
            ConfigurationError, match=r"'value\.validate': is 'true', and there is no"
        ):
            by.one("value", "t", {"id": 1})
        with pytest.raises(
            ConfigurationError, match=r"'value\.validate': is 'true', and there is no"
        ):
            by.table("t", pa.table({"value": [{"id": 1}]}))
