"""Avro values in a topic, with the framing of Confluent's serializers, and the options to read."""

import json
import struct
from typing import Any

from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.registry import RegistryClient, RegistryConfig
from spark_kafka_source.testing import LocalRegistry
from spark_kafka_source.values import SchemaText, SchemaType
from tests.values.avro_oracle import written as as_avro
from tools.traffic import Events, Writer

V1 = {"type": "record", "name": "Event", "fields": [{"name": "id", "type": "long"}]}
V2 = {**V1, "fields": [*V1["fields"], {"name": "kind", "type": "string", "default": "none"}]}


def registers(registry: LocalRegistry) -> RegistryClient:
    """Return a client that registers schemas. The caller closes it."""
    settings = Settings({"schema.registry.url": registry.url})
    return RegistryClient(RegistryConfig.from_settings(settings))


def register(client: RegistryClient, events: Events, schema: dict[str, Any]) -> int:
    text = SchemaText(SchemaType.AVRO, json.dumps(schema))
    return client.register(f"{events.name}-value", text)


def framed(schema_id: int, schema: dict[str, Any], *rows: dict[str, Any]) -> list[bytes]:
    return [struct.pack(">bi", 0, schema_id) + each for each in as_avro(schema, rows)]


def put(events: Events, *values: bytes | None) -> None:
    with Writer(events.kafka.bootstrap_servers) as writer:
        for value in values:
            writer.queue(events.name, value)


def typed(events: Events, url: str, **more: object) -> dict[str, Any]:
    return events.options(**{"value.format": "avro", "schema.registry.url": url} | more)
