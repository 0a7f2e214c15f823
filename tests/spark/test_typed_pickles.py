"""Pickles of typed values. Only tasks that ask the registry get its secrets."""

import json
from collections.abc import Iterator

import pytest
from pyspark import cloudpickle
from pyspark.sql.types import LongType, StructField, StructType

from spark_kafka_source.spark import KafkaDataSource
from tests.registry.server import TestRegistry, registry_server, version
from tests.spark.settings import BOOTSTRAP_SERVERS, shipped

CANARY = "hunter2-canary"
ROW = StructType([StructField("id", LongType())])
AVRO = json.dumps({"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]})
JSON = json.dumps({"type": "object", "properties": {"id": {"type": "integer"}}})


@pytest.fixture
def registry() -> Iterator[TestRegistry]:
    with registry_server() as known:
        known.on("/subjects/avro/versions/latest", version(AVRO, 1))
        known.on("/subjects/json/versions/latest", version(JSON, 2, schemaType="JSON"))
        yield known


def source(registry: TestRegistry, kind: str, **more: str) -> KafkaDataSource:
    return KafkaDataSource(
        BOOTSTRAP_SERVERS
        | {
            "value.format": kind,
            "value.schema.subject": kind,
            "schema.registry.url": registry.url,
            "schema.registry.basic.auth.user": "me",
            "schema.registry.basic.auth.password": CANARY,
        }
        | more
    )


def pickled(found: object) -> bytes:
    data: bytes = cloudpickle.dumps(found)  # type: ignore[no-untyped-call]
    return data


@pytest.mark.parametrize(
    ("kind", "more", "asks"),
    [
        ("avro", {}, True),
        ("avro", {"value.framing": "none"}, False),
        ("json", {}, True),  # For the rules of each record's own schema.
        ("json", {"value.schema.rules": "ignore"}, False),
    ],
)
def test_readers(registry: TestRegistry, kind: str, more: dict[str, str], asks: bool) -> None:
    given = source(registry, kind, subscribe="a", **more)
    schema = given.schema()
    assert schema["value"].dataType == ROW
    given = shipped(given)
    for found in (given, given.reader(schema), given.streamReader(schema)):
        assert (CANARY.encode() in pickled(found)) is asks
    assert len(registry.asked) == 1


@pytest.mark.parametrize("kind", ["avro", "json"])
def test_writers(registry: TestRegistry, kind: str) -> None:
    rows = StructType([StructField("value", ROW)])
    given = source(registry, kind, topic="a")
    for found in (given.writer(rows, False), given.streamWriter(rows, False)):
        assert CANARY.encode() not in pickled(found)
    assert len(registry.asked) == 1
