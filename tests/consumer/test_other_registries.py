"""Values of Apicurio's and AWS Glue's serializers: read in all ways, or what reads them."""

import json
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from spark_kafka_source import read_topic, read_topic_batches
from spark_kafka_source.command_line.main import main
from spark_kafka_source.consumer.consumer_config import ConsumerConfig
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.records import Record
from spark_kafka_source.testing.memory import MemoryBroker
from spark_kafka_source.typed import BadRecordError, TypedConfig, TypedWriteConfig
from spark_kafka_source.typed.config import PACKED_CHUNK_BYTES
from tests.consumer.consumers import QUICK, T0, consuming, poll_until
from tests.registry import glue_server
from tests.registry.glue_server import GONE, ID, Glue, glue
from tests.registry.server import Reply, TestRegistry, registry_server, version

__all__ = ["glue"]

pytestmark = pytest.mark.memory(nodes=1)

SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}
TEXT = json.dumps(SCHEMA)
CORE = "/apis/registry/v2/ids"
FIVE = (5).to_bytes(8, "big")
GLUE = {"value_framing": "glue"}
APICURIO = {"value_framing": "apicurio"}
JSON = {"value_format": "json", "value_schema": "id BIGINT"}
PROTO = {
    "value_format": "protobuf",
    "value_schema": 'syntax = "proto3"; message R { int64 id = 1; }',
}
AVRO = b"\x0e"
"""The value 7."""


@pytest.fixture
def registry() -> Iterator[TestRegistry]:
    """Run an Apicurio. Its global id 5 and its content id 6 are of the schema, its others not."""
    with registry_server() as registry:
        for path in ("globalIds/5", "contentIds/6"):
            registry.on(f"{CORE}/{path}", Reply(json=SCHEMA))
            registry.on(f"{CORE}/{path}/references", Reply(json=[]))
        latest = version(TEXT, 6)
        registry.on("/apis/ccompat/v7/subjects/t-value/versions/latest", latest)
        yield registry


def of_glue(body: bytes, compression: int = 0) -> bytes:
    return bytes([3, compression]) + ID.bytes + body


def header(kind: str, id: bytes, encoding: bytes = b"BINARY") -> list[tuple[str, bytes]]:
    return [(f"apicurio.value.{kind}", id), ("apicurio.value.encoding", encoding)]


FORMS: dict[str, tuple[Record, dict[str, Any]]] = {
    "glue": (Record(key=None, value=of_glue(AVRO)), GLUE),
    "glue, zlib": (Record(key=None, value=of_glue(zlib.compress(AVRO), 5)), GLUE),
    "glue, JSON": (Record(key=None, value=of_glue(b'{"id":7}')), {**GLUE, **JSON}),
    "glue, by id": (Record(key=None, value=of_glue(AVRO)), {**GLUE, "value_schema_id": str(ID)}),
    "8 bytes": (Record(key=None, value=b"\0" + FIVE + AVRO), APICURIO),
    "content id": (
        Record(key=None, value=b"\0" + FIVE[:-1] + b"\6" + AVRO),
        {"value_framing": "apicurio.contentId"},
    ),
    "header": (Record(key=None, value=AVRO, headers=header("globalId", FIVE)), APICURIO),
    "content id in a header": (
        Record(key=None, value=AVRO, headers=header("contentId", FIVE[:-1] + b"\6")),
        APICURIO,
    ),
    "8 bytes, JSON": (Record(key=None, value=b"\0" + FIVE + b'{"id":7}'), {**APICURIO, **JSON}),
}


def options_for(registry: TestRegistry, **given: Any) -> dict[str, Any]:
    found = {"value_format": "avro", **given}
    if given.get("value_framing") != "glue":
        found["schema_registry_url"] = f"{registry.url}/apis/ccompat/v7"
    return found


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_read_in_all_ways(
    broker: MemoryBroker,
    registry: TestRegistry,
    glue: Glue,
    form: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    glue.versions = dict.fromkeys(("default-registry/t", str(ID)), glue_server.version(ID, TEXT))
    record, given = FORMS[form]
    broker.create_topic("t")[0].append(record, Record(key=b"k", value=None))
    options = options_for(registry, **given)
    with consuming(broker, T0, **options) as consumer:
        found: list[Any] = []
        poll_until(consumer, lambda: len(found) >= 2, found.extend)
    servers = str(broker.address())
    quick = {name: value for name, value in QUICK.items() if name != "auto_offset_reset"}
    table = read_topic("t", bootstrap_servers=servers, **quick, **options)
    expected = [{"id": 7}, None]
    assert [each.value for each in found] == table["value"].to_pylist() == expected
    settings = [f"--config={name.replace('_', '.')}={text}" for name, text in options.items()]
    assert main(["tail", "t", "-b", servers, "--json", *settings]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["value"] for line in lines] == expected


def test_no_record_is_bad_for_the_others_of_its_fetch(broker: MemoryBroker, glue: Glue) -> None:
    glue.versions[str(ID)] = glue_server.version(ID, '"bytes"')
    mebibyte = b"\x80\x80\x80\x01" + bytes(1 << 20)
    packed = of_glue(zlib.compress(mebibyte), 5)
    broker.create_topic("t")[0].append(*(Record(key=None, value=packed) for _ in range(300)))
    servers, count = str(broker.address()), 0
    given: dict[str, Any] = {**GLUE, "value_format": "avro", "value_schema": '"bytes"'}
    config = ConsumerConfig.from_arguments({"bootstrap_servers": servers, **given})
    assert config.fetch.chunk_bytes == PACKED_CHUNK_BYTES
    for batch in read_topic_batches("t", bootstrap_servers=servers, columns=["value"], **given):
        assert batch.nbytes < 300 << 20
        assert not batch["value"].null_count
        count += batch.num_rows
    assert count == 300


BAD: list[tuple[str, Record, dict[str, Any]]] = [
    (
        "'value_framing' set to 'glue', without 'schema_registry_url', reads them",
        Record(key=None, value=of_glue(AVRO)),
        {},
    ),
    ("not read, but 'value_format' set to 'binary'", Record(key=None, value=of_glue(AVRO)), PROTO),
    (
        "not read, but 'value_format' set to 'binary'",
        Record(key=None, value=AVRO, headers=header("globalId", FIVE)),
        PROTO,
    ),
    *(
        (
            "it begins as with an id of 4 bytes: 'value_framing' set to 'confluent' reads it",
            Record(key=None, value=b"\0" + FIVE[4:] + value),
            APICURIO,
        )
        for value in (AVRO, bytes(range(9)))
    ),
    (
        "its id is in a header, and it begins as with another id",
        Record(key=None, value=b"\0" + FIVE + AVRO, headers=header("globalId", FIVE)),
        APICURIO,
    ),
    ("'value_framing' set to 'apicurio'", Record(key=None, value=b"\0" + FIVE + AVRO), {}),
    ("'value_framing' set to 'apicurio'", Record(key=None, value=b"\0" + FIVE + b"{}"), JSON),
    (
        "its header apicurio.value.globalId has the id: 'value_framing' set to 'apicurio'",
        Record(key=None, value=AVRO, headers=header("globalId", FIVE)),
        {},
    ),
    (
        "'value_framing' set to 'none', and the schema as 'value_schema'",
        Record(key=None, value=AVRO, headers=[("content-type", b"avro/binary+0123")]),
        {},
    ),
    ("no schema id, found 7b. It is", Record(key=None, value=b"{}"), {}),
    ("no schema globalId 7", Record(key=None, value=b"\0" + FIVE[:-1] + b"\7"), APICURIO),
    (
        f"AWS Glue in eu-test-1 has no schema {GONE}",
        Record(key=None, value=b"\3\0" + GONE.bytes),
        GLUE,
    ),
    (
        "decoded: a value in Avro's JSON encoding, which is not read; its header"
        " apicurio.value.encoding is JSON",
        Record(key=None, value=b"{}", headers=header("globalId", FIVE, b"JSON")),
        APICURIO,
    ),
]


@pytest.mark.parametrize("case", BAD)
def test_what_reads_a_bad_record_is_named(
    broker: MemoryBroker,
    registry: TestRegistry,
    glue: Glue,
    case: tuple[str, Record, dict[str, Any]],
) -> None:
    reason, record, given = case
    glue.versions["default-registry/t"] = glue_server.version(ID, TEXT)
    named = {"error_code": 404, "name": "VersionNotFoundException"}
    for number in (7, 21_474_902_531):
        registry.on(f"{CORE}/globalIds/{number}", Reply(404, named))
    broker.create_topic("t")[0].append(record)
    with consuming(broker, T0, **options_for(registry, **given)) as consumer:
        with pytest.raises(BadRecordError) as caught:
            poll_until(consumer, lambda: False)
        assert reason in str(caught.value)
    with consuming(broker, T0, bad_records="null", **options_for(registry, **given)) as consumer:
        found: list[Any] = []
        poll_until(consumer, lambda: bool(found), found.extend)
        assert (
            reason.removeprefix("decoded: ").removesuffix(". It is")
            in found[0].value_error["reason"]
        )


URL = {"schema.registry.url": "http://a"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"value.framing": "azure", **URL}, "Give 'none', and the schema as 'value.schema'"),
        ({"value.framing": "glue", **URL}, "'schema.registry.url': has no effect where"),
        ({"value.framing": "apicurio"}, "'schema.registry.url': is missing"),
        ({"value.framing": "glue", "value.format": "protobuf"}, "form of Protobuf is not read"),
        ({"value.framing": "apicurio", "value.format": "protobuf"}, "of Protobuf is not read"),
        ({"value.framing": "glue", "value.schema.id": "7"}, "Give the UUID of a schema's version"),
        ({"schema.registry.glue.region": "x"}, "is only for AWS Glue's registry"),
        (
            {"value.framing": "glue", "key.format": "avro"},
            "'key.framing': is 'default', where 'value.framing' is 'glue'",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        TypedConfig.from_settings(Settings({"value.format": "avro", **given}))
    assert said in str(caught.value)


@pytest.mark.parametrize("framing", ["glue", "apicurio", "apicurio.contentId"])
def test_what_is_only_read_is_not_written(framing: str) -> None:
    given = {"value.format": "avro", "value.framing": framing, **URL}
    with pytest.raises(ConfigurationError, match=r"is only read\. Give 'confluent', or 'none'"):
        TypedWriteConfig.from_settings(Settings(given))
