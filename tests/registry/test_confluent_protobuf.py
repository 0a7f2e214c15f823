"""Schemas and bytes of confluent-kafka's Protobuf serializer, which registers descriptors."""

import base64
import datetime
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from spark_kafka_source.registry import ConfluentFraming, Indexes, Part, WriterPrograms
from spark_kafka_source.values import Encoded, SchemaText, SchemaType
from spark_kafka_source.values.protobuf import ProtobufReader, ProtobufWriter
from spark_kafka_source.values.protobuf.text import compiled
from tests.registry.conftest import MakeClient
from tests.registry.server import TestRegistry
from tests.registry.storing import Storing
from tests.values.avro_oracle import laid

INNER = 'syntax = "proto3"; package q; message In { int32 v = 1; }'
BETWEEN = """syntax = "proto3"; package q; import "in.proto";
import "google/protobuf/timestamp.proto";
message B { In in = 1; google.protobuf.Timestamp at = 2; }"""
OUTER = """syntax = "proto3"; package p; import "between.proto"; import "google/type/date.proto";
import "confluent/meta.proto"; import "confluent/type/decimal.proto";
message First { int32 v = 1; }
message M {
  map<string, int32> map = 1; message N { int32 v = 1; }
  q.B b = 2 [(confluent.field_meta).doc = "x"]; google.type.Date day = 3;
  confluent.type.Decimal sum = 4; repeated N many = 5;
}"""
TEXTS = (("in.proto", INNER), ("between.proto", BETWEEN))
AT = datetime.datetime(2026, 1, 2, 3, 4, 5, 6, datetime.UTC)
VALUE: dict[str, Any] = {
    "map": [("a", 1)],
    "b": {"in": {"v": 7}, "at": AT},
    "day": {"year": 2026, "month": 1, "day": 2},
    "sum": {"value": b"\x05", "precision": 4, "scale": 2},
    "many": [{"v": 1}, {"v": None}],
}


@cache
def message(name: str) -> Any:
    text = SchemaText(SchemaType.PROTOBUF, OUTER, TEXTS)
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(compiled(text)).file:
        if file.name.startswith("schema-"):
            file.name = "outer.proto"
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


@pytest.fixture
def storing(registry: TestRegistry) -> Storing:
    registry.answer = Storing()
    return registry.answer


@pytest.fixture
def theirs(registry: TestRegistry, storing: Storing) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


CONTEXT = SerializationContext("t", MessageField.VALUE)


def read(client: Any, reader: ProtobufReader, rows: list[bytes]) -> list[Any]:
    data, starts, ends = laid(rows)
    framed = ConfluentFraming(Part.VALUE, Indexes.ZIGZAG).frame(data, starts, ends)
    found = WriterPrograms(reader, client).of(framed)
    decoded = reader.decode(
        found.programs, Encoded(data, framed.starts, ends, program_of=found.program_of)
    )
    assert not np.count_nonzero(decoded.status), decoded.reason(0)
    values: list[Any] = decoded.array.to_pylist()
    return values


@pytest.mark.parametrize("name", ["p.M", "p.M.N", "p.First"])
def test_what_their_serializer_registers_and_writes_is_read(
    name: str, registry: TestRegistry, theirs: SchemaRegistryClient, client_of: MakeClient
) -> None:
    value = VALUE if name == "p.M" else {"v": 3}
    sent = message(name).FromString(ProtobufWriter(_texts(), name).one(value))
    data = ProtobufSerializer(message(name), theirs)(sent, CONTEXT)
    assert data is not None
    client = client_of(registry.url)
    registered = client.by_subject("t-value").schema
    assert base64.b64decode(registered.text)  # It is a descriptor, as are its references.
    assert all(base64.b64decode(text) for _, text in registered.references)
    assert read(client, ProtobufReader(registered, name), [data]) == [value]
    # And with texts in the place of descriptors.
    assert read(client, ProtobufReader(_texts(), name), [data]) == [value]


def _texts() -> SchemaText:
    return SchemaText(SchemaType.PROTOBUF, OUTER, TEXTS)


@pytest.mark.parametrize("name", ["p.First", "p.M"])
def test_what_is_written_with_their_schema_is_read_by_their_deserializer(
    name: str, registry: TestRegistry, theirs: SchemaRegistryClient, client_of: MakeClient
) -> None:
    ProtobufSerializer(message(name), theirs)(message(name)(), CONTEXT)
    found = client_of(registry.url).by_subject("t-value")
    by = ProtobufWriter(found.schema, name)
    value = VALUE if name == "p.M" else {"v": 3}
    data = b"\0" + int(found.id).to_bytes(4) + by.indexes + by.one(value)
    wanted = message(name).FromString(by.one(value))
    assert ProtobufDeserializer(message(name), {"use.deprecated.format": False})(
        data, CONTEXT
    ) == wanted  # fmt: skip


def test_references_may_be_texts_where_the_schema_is_a_descriptor(
    registry: TestRegistry, storing: Storing, theirs: SchemaRegistryClient, client_of: MakeClient
) -> None:
    ProtobufSerializer(message("p.M"), theirs)(message("p.M")(), CONTEXT)
    for subject, text in TEXTS:
        schema = storing.subjects[subject][0]
        schema["schema"] = text
    for name, each in client_of(registry.url).by_subject("t-value").schema.references:
        assert each == dict(TEXTS)[name]
    reader = ProtobufReader(client_of(registry.url).by_subject("t-value").schema, "p.M")
    assert reader.arrow_type == ProtobufReader(_texts(), "p.M").arrow_type


@pytest.mark.registry
def test_a_real_registry_gives_a_descriptor_as_it_stores_it(
    real_registry: Any, client_of: MakeClient
) -> None:
    """Apicurio's registry takes descriptors, too."""
    inner = descriptor_pb2.FileDescriptorSet.FromString(
        compiled(SchemaText(SchemaType.PROTOBUF, INNER))
    ).file[-1]
    inner.name = "in.proto"
    given = base64.b64encode(inner.SerializeToString()).decode()
    outer = 'syntax = "proto3"; package p; import "in.proto"; message M { q.In in = 1; }'
    subject = f"descriptors-{datetime.datetime.now(datetime.UTC).timestamp()}"
    with SchemaRegistryClient({"url": real_registry.url}) as client:
        client.register_schema(f"{subject}-in", Schema(given, "PROTOBUF"))
        reference = SchemaReference("in.proto", f"{subject}-in", 1)
        client.register_schema(f"{subject}-value", Schema(outer, "PROTOBUF", [reference]))
    found = client_of(real_registry.url).by_subject(f"{subject}-value").schema
    assert str(ProtobufReader(found).arrow_type) == "struct<in: struct<v: int32>>"
    alone = client_of(real_registry.url).by_subject(f"{subject}-in").schema
    assert str(ProtobufReader(alone).arrow_type) == "struct<v: int32>"


@pytest.mark.registry
@pytest.mark.parametrize("name", ["p.First", "p.M"])
def test_what_their_serializer_registers_in_a_real_registry_is_read(
    name: str, real_registry: Any, client_of: MakeClient
) -> None:
    topic = f"t{datetime.datetime.now(datetime.UTC).timestamp()}"
    value = VALUE if name == "p.M" else {"v": 3}
    sent = message(name).FromString(ProtobufWriter(_texts(), name).one(value))
    with SchemaRegistryClient({"url": real_registry.url}) as client:
        context = SerializationContext(topic, MessageField.VALUE)
        data = ProtobufSerializer(message(name), client)(sent, context)
    assert data is not None
    client = client_of(real_registry.url)
    registered = client.by_subject(f"{topic}-value").schema
    assert read(client, ProtobufReader(registered, name), [data]) == [value]
