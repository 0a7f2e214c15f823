"""The client with a real registry, Apicurio's."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from http.client import HTTPConnection
from urllib.parse import urlsplit
from uuid import UUID

import pyarrow as pa
import pytest

from spark_kafka_source.registry import (
    ApicurioId,
    ConfluentFraming,
    InvalidSchemaError,
    RegisteredSchema,
    RegistryClient,
    RegistryError,
    SchemaNotFoundError,
    SchemaReference,
    WriterPrograms,
)
from spark_kafka_source.testing import LocalRegistry
from spark_kafka_source.values import Encoded, SchemaText, SchemaType
from spark_kafka_source.values.avro import AvroReader
from tests.registry.conftest import config
from tests.registry.framing_oracle import laid
from tests.registry.test_framing import by_guid, by_id
from tests.values.avro_oracle import written

pytestmark = pytest.mark.registry


@pytest.fixture
def real(real_registry: LocalRegistry) -> Iterator[RegistryClient]:
    client = RegistryClient(config(real_registry.url))
    yield client
    client.close()


@pytest.fixture
def subject() -> str:
    return f"a/b é-{uuid.uuid4().hex}"


def record(name: str, *fields: str) -> dict[str, object]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": each, "type": "long", "default": 0} for each in fields],
    }


def avro(schema: object) -> SchemaText:
    return SchemaText(SchemaType.AVRO, json.dumps(schema))


def unique(*fields: str) -> SchemaText:
    """Return a unique schema: equal texts have the same id in all subjects."""
    return avro(record(f"R{uuid.uuid4().hex}", *fields))


def test_what_is_registered_is_found(real: RegistryClient, subject: str) -> None:
    first = unique("a")
    second = avro(record(json.loads(first.text)["name"], "a", "b"))
    assert real.look_up(subject, first) is None
    id = real.register(subject, first)
    assert real.register(subject, first) == id
    assert real.look_up(subject, first) == RegisteredSchema(id, 1, subject, first)
    other = real.register(subject, second)
    assert other != id
    assert real.look_up(subject, unique("a")) is None
    assert (real.schema(id), real.schema(other)) == (first, second)
    assert real.by_subject(subject) == RegisteredSchema(other, 2, subject, second)
    assert real.by_subject(subject, 1) == RegisteredSchema(id, 1, subject, first)


OTHERS = {
    SchemaType.PROTOBUF: 'syntax = "proto3";\nmessage M_NAME { int64 id = 1; }\n',
    SchemaType.JSON: '{"$schema": "http://json-schema.org/draft-07/schema#", "title": "NAME"}',
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_languages(real: RegistryClient, subject: str, kind: SchemaType) -> None:
    name = uuid.uuid4().hex
    schema = SchemaText(kind, OTHERS[kind].replace("NAME", name))
    found = real.schema(real.register(subject, schema, normalize=True))
    assert found.type is kind
    assert name in found.text
    assert found.references == ()


def test_references(real: RegistryClient, subject: str) -> None:
    name = f"Inner{uuid.uuid4().hex}"
    inner, outer = record(name, "x"), record("Outer", "y")
    outer["fields"] = [{"name": "inner", "type": name}]
    real.register(f"{subject}-inner", avro(inner))
    reference = SchemaReference(name, f"{subject}-inner", 1)
    schema = SchemaText(SchemaType.AVRO, json.dumps(outer), ((name, json.dumps(inner)),))
    id = real.register(subject, schema, references=[reference])
    assert real.by_id(id) == RegisteredSchema(id, None, None, schema, (reference,))
    found = real.look_up(subject, schema, references=[reference])
    assert found == RegisteredSchema(id, 1, subject, schema, (reference,))
    assert real.by_subject(subject).schema == schema


@pytest.mark.parametrize("id", [0, 987_654, (1 << 31) - 1, UUID(int=7)])
def test_an_id_that_is_not_there(real: RegistryClient, id: int | UUID) -> None:
    with pytest.raises(SchemaNotFoundError):
        real.schema(id)


def test_a_subject_or_a_version_that_is_not_there(real: RegistryClient, subject: str) -> None:
    with pytest.raises(SchemaNotFoundError):
        real.by_subject(subject)
    real.register(subject, unique())
    with pytest.raises(SchemaNotFoundError):
        real.by_subject(subject, 7)


def test_what_is_no_schema(real: RegistryClient, subject: str) -> None:
    with pytest.raises(InvalidSchemaError, match="registering a schema of subject"):
        real.register(subject, SchemaText(SchemaType.AVRO, '{"type": "nothing"}'))


def test_a_path_that_is_not_the_registrys(real_registry: LocalRegistry) -> None:
    client = RegistryClient(config(real_registry.url.replace("/apis/ccompat/v7", "/elsewhere")))
    with pytest.raises(RegistryError, match="its path too") as caught:
        client.schema(1)
    assert not isinstance(caught.value, SchemaNotFoundError)
    client.close()


def test_apicurios_own_ids(real: RegistryClient, subject: str) -> None:
    part = unique("a")
    content_id = real.register(subject, part)
    assert real.register(f"{subject}-other", part) == content_id
    reference = SchemaReference(json.loads(part.text)["name"], subject, 1)
    fields = [{"name": "p", "type": reference.name}]
    whole = avro({**record(f"W{uuid.uuid4().hex}"), "fields": fields})
    real.register(f"{subject}-whole", whole, references=[reference])
    found = []
    with pytest.raises(SchemaNotFoundError):
        for number in range(1, 1_000):
            found.append(real.schema(ApicurioId("globalId", number)))
    # A global id is a version's, and two versions may have one content.
    assert found[-3:] == [part, part, replace(whole, references=((reference.name, part.text),))]
    assert real.schema(ApicurioId("contentId", content_id)) == real.schema(content_id) == part


def test_rows_of_two_writers_are_read_as_one(real: RegistryClient, subject: str) -> None:
    name = f"R{uuid.uuid4().hex}"
    old, new = record(name, "a"), record(name, "b", "a")
    ids = [real.register(subject, avro(each)) for each in (old, new)]
    reader = AvroReader(real.by_subject(subject).schema)
    rows: list[bytes | None] = [
        by_id(ids[0], written(old, [{"a": 1}])[0]),
        by_id(ids[1], written(new, [{"a": 2, "b": 3}])[0]),
        None,
        by_id(987_654, b"x"),
        by_guid(UUID(int=1), b"x"),
        b"{}",
    ]
    data, starts, ends, null = laid(rows)
    framed = ConfluentFraming().frame(data, starts, ends, null=null)
    found = WriterPrograms(reader, real).of(framed)
    decoded = reader.decode(
        found.programs, Encoded(data, framed.starts, ends, null=null, program_of=found.program_of)
    )
    assert decoded.array.to_pylist() == [{"b": 0, "a": 1}, {"b": 3, "a": 2}, None, None, None, None]
    assert decoded.status.astype(bool).tolist() == [False, False, False, True, True, True]
    assert isinstance(decoded.array, pa.StructArray)
    assert found.reason(3) == "the registry has no schema 987654"
    assert found.reason(5) == "no schema id, found 7b"


def test_the_registry_answers_what_we_do_not_ask(real_registry: LocalRegistry) -> None:
    """The server is a real registry: this path belongs to Confluent's API."""
    parts = urlsplit(real_registry.url)
    connection = HTTPConnection(parts.netloc, timeout=60)
    connection.request("GET", f"{parts.path}/schemas/types")
    assert set(json.loads(connection.getresponse().read())) == set(SchemaType.__members__)
    connection.close()
