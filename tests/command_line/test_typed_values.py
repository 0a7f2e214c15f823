"""Typed values on the command line: the output of `tail` and `schema`."""

import base64
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_kafka_source.command_line.main import main
from spark_kafka_source.testing.memory import MemoryBroker
from spark_kafka_source.values import SchemaText, SchemaType
from spark_kafka_source.values.avro import AvroWriter
from spark_kafka_source.values.json import JsonWriter
from spark_kafka_source.values.protobuf import ProtobufWriter
from spark_kafka_source.values.protobuf.text import compiled
from tests.producer.writing import written as records_of
from tests.values.avro_oracle import written

pytestmark = pytest.mark.memory(nodes=3)

AVRO = {"type": "record", "name": "E", "fields": [
    {"name": "id", "type": "long"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "raw", "type": "bytes"},
]}  # fmt: skip
GIVEN = ["--config", "value.format=avro", "--config", f"value.schema={json.dumps(AVRO)}"]
Run = Callable[..., list[str]]


@pytest.fixture
def run(broker: MemoryBroker, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command and returns its output."""

    def run(*words: str) -> list[str]:
        status = main([words[0], "-b", str(broker.address()), *words[1:]])
        shown = capsys.readouterr()
        assert status == 0, shown.err
        return shown.out.splitlines()

    return run


@pytest.fixture
def events(broker: MemoryBroker) -> None:
    row: dict[str, Any] = {"id": 5, "at": 1, "raw": b"\xff"}
    broker.create_topic("t")[0].append(*written(AVRO, [row]), b"\xff")


@pytest.mark.usefixtures("events")
def test_tail_shows_what_values_mean(run: Run) -> None:
    shown = {"id": 5, "at": "1970-01-01T00:00:00.000001+00:00", "raw": "/w=="}
    lines = run("tail", "t", "-n", "1", "--from", "earliest", *GIVEN)
    assert lines[0].endswith(json.dumps(shown))
    lines = run("tail", "t", "--json", *GIVEN, "--config", "badRecords=null")
    first, second = map(json.loads, lines)
    assert first["value"] == shown
    assert "value_error" not in first
    assert second["value"] is None
    assert second["value_error"]["bytes"] == "/w=="
    (_, bad) = run("tail", "t", *GIVEN, "--config", "badRecords=null")
    assert f"null  value_error: {second['value_error']['reason']}" in bad


@pytest.mark.usefixtures("events")
def test_schema_is_ddl(run: Run, broker: MemoryBroker) -> None:
    assert run("schema", "t", *GIVEN) == ["id BIGINT, at TIMESTAMP, raw BINARY"]
    broker.create_topic("j")[0].append(b'{"a": 1}')
    assert run("schema", "j") == ["a BIGINT"]
    assert json.loads(run("schema", "j", "--json")[0]) == {"topic": "j", "value": "a BIGINT"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["tail", "t", "--config", "value.format=avro"], "'schema.registry.url': is missing"),
        (["tail", "t", "--config", "value.fromat=avro"], "Did you mean 'value.format'?"),
        (["produce", "t", "--config", "value.format=avro"], "'value.schema': is missing"),
        (["tail", "t", "--config", "badrecords=null"], "'badRecords': has no effect"),
    ],
)
def test_what_cannot_be_used_is_one_line(
    broker: MemoryBroker, capsys: pytest.CaptureFixture[str], words: list[str], expected: str
) -> None:
    broker.create_topic("t")
    assert main([words[0], "-b", str(broker.address()), *words[1:]]) == 2
    assert expected in capsys.readouterr().err


SAID = ["--config", "value.format=avro", "--config"]
PLAIN = {"type": "record", "name": "P", "fields": [
    {"name": "id", "type": "long"},
    {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
]}  # fmt: skip


@pytest.fixture
def produce(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Return a function that runs `produce` with lines, and returns status and standard error."""

    broker.create_topic("p")

    def produce(lines: str, *words: str, encoding: str = "utf-8") -> tuple[int, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode(encoding))))
        given = ["-b", str(broker.address()), *words]
        return main(["produce", "p", *given]), capsys.readouterr().err

    return produce


def values(broker: MemoryBroker) -> list[bytes]:
    log = broker.cluster.topics["p"].logs[0]
    return [each.value or b"" for each in records_of(log)]


def test_lines_of_json_are_written_by_a_schema(
    broker: MemoryBroker, produce: Callable[..., tuple[int, str]]
) -> None:
    rows = ['{"id": 1}', '{"id": 2, "at": "1970-01-01T00:00:00.000005Z"}', "null"]
    given = [*SAID, f"value.schema={json.dumps(PLAIN)}"]
    status, said = produce("\n".join(rows), *given)
    assert (status, said) == (0, "Topic 'p': 3 records are written\n")
    documents = "\n".join(f'{{"value": {each}, "key": {each}}}' for each in rows)
    assert produce(documents, "--json", *given)[0] == 0
    found = records_of(broker.cluster.topics["p"].logs[0])
    assert [each.value for each in found] == [b"\2\0", b"\4\2\x0a", None] * 2
    keys = [b'{"id":1}', b'{"id":2,"at":"1970-01-01T00:00:00.000005Z"}', None]
    assert [each.key for each in found[3:]] == keys


TREE = {"type": "record", "name": "T", "fields": [
    {"name": "raw", "type": ["null", "bytes"], "default": None},
    {"name": "left", "type": ["null", "T"], "default": None},
    {"name": "right", "type": ["null", "T"], "default": None},
]}  # fmt: skip
TREE_PROTO = """syntax = "proto3"; package p; import "google/protobuf/timestamp.proto";
message T { bytes raw = 1; T left = 2; T right = 3; google.protobuf.Timestamp at = 4; }"""
TREE_JSON = {"type": "object", "additionalProperties": False, "properties": {
    "at": {"type": "string", "format": "date-time"}, "n": {"type": "number"},
    "left": {"$ref": "#"},
}}  # fmt: skip


AT = "1970-01-01T00:00:05Z"
RECURSIVE: list[tuple[Any, SchemaType, str, dict[str, Any], dict[str, Any]]] = [
    (AvroWriter, SchemaType.AVRO, json.dumps(TREE), {"raw": "/w=="}, {"raw": b"\xff"}),
    (ProtobufWriter, SchemaType.PROTOBUF, TREE_PROTO, {"raw": "/w==", "at": AT},
     {"raw": b"\xff", "at": {"seconds": 5}}),
    (JsonWriter, SchemaType.JSON, json.dumps(TREE_JSON), {"n": 1.5, "at": AT},
     {"n": 1.5, "at": AT}),
]  # fmt: skip


@pytest.mark.parametrize("case", RECURSIVE, ids=["avro", "protobuf", "json"])
def test_types_that_contain_themselves_are_written_as_send_writes_them(
    broker: MemoryBroker, produce: Callable[..., tuple[int, str]], case: Any
) -> None:
    writer, kind, schema, leaf, meant = case
    form = kind.name.lower()
    given = ["--config", f"value.format={form}", "--config", f"value.schema={schema}"]
    depths = range(6)
    assert produce("\n".join(json.dumps(within(leaf, each)) for each in depths), *given)[0] == 0
    one = writer(SchemaText(kind, schema)).one
    assert values(broker) == [one(within(meant, each)) for each in depths]
    # What is deeper than the columns is refused by the writer itself.
    status, said = produce(json.dumps(within({"more": 1}, 30)), *given)
    assert status == 1
    assert "does not fit the schema" in said


def within(leaf: dict[str, Any], depth: int) -> dict[str, Any]:
    return leaf if depth == 0 else {"left": within(leaf, depth - 1)}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"id": "x"}', "id: 'x' is no"),
        ('{"id": 1.5}', "id: 1.5 is no"),
        ('{"id": 1, "more": 2}', "more: "),
        ('{"id": 1, "at": "2026-11-25"}', "at: '2026-11-25' is no time with a zone, as"),
        ('{"id": 1, "id": 1}', "it has the field 'id' twice"),
        ("{}", "id: null"),
        ("no JSON", "it is not JSON"),
        ("", "it is not JSON"),
    ],
)
def test_a_line_that_does_not_fit_ends_it(
    broker: MemoryBroker, produce: Callable[..., tuple[int, str]], line: str, reason: str
) -> None:
    lines = f'{{"id": 1}}\n{line}\n{{"id": 3}}\n'
    status, said = produce(lines, *SAID, f"value.schema={json.dumps(PLAIN)}")
    assert status == 1
    assert "Line 2: its value does not fit the schema: " in said
    assert reason in said
    assert "1 record is written" in said
    assert values(broker) == [b"\2\0"]


TIMES = {"type": "record", "name": "T", "fields": [
    {"name": "millis", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "micros", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "time", "type": {"type": "long", "logicalType": "time-micros"}},
    {"name": "map", "type": {"type": "map", "values": {
        "type": "long", "logicalType": "local-timestamp-millis"}}},
]}  # fmt: skip


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_a_number_for_a_time_is_in_the_unit_of_the_schema(
    broker: MemoryBroker, produce: Callable[..., tuple[int, str]], words: list[str]
) -> None:
    """As in `KafkaProducer.send` and in fastavro, which wrote the wanted bytes."""
    row = {"millis": 1_704_067_200_000, "micros": 5, "time": 43_200_000_000, "map": {"a": 7}}
    line = {"value": row} if words else row
    given = [*SAID, f"value.schema={json.dumps(TIMES)}", *words]
    assert produce(json.dumps(line), *given)[0] == 0
    assert values(broker) == written(TIMES, [row])


PROTO = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
message T { google.protobuf.Timestamp at = 1; }
"""


def test_a_number_for_a_time_of_protobuf_is_refused(
    broker: MemoryBroker, produce: Callable[..., tuple[int, str]]
) -> None:
    given = ["--config", "value.format=protobuf", "--config", f"value.schema={descriptors()}"]
    assert produce('{"at": "1970-01-01T00:00:01Z"}', *given)[0] == 0
    status, said = produce('{"at": 1700000000}', *given)
    assert status == 1
    assert "Line 1: its value does not fit the schema: at: " in said
    assert values(broker) == [b"\x0a\x02\x08\x01"]


def descriptors() -> str:
    return base64.b64encode(compiled(SchemaText(SchemaType.PROTOBUF, PROTO))).decode()


@pytest.mark.usefixtures("events")
def test_a_bad_record_is_not_written(
    run: Run, broker: MemoryBroker, produce: Callable[..., tuple[int, str]]
) -> None:
    lines = run("tail", "t", "--json", *GIVEN, "--config", "badRecords=null")
    status, said = produce("\n".join(lines), "--json", *GIVEN)
    assert status == 1
    assert "Line 2: is a bad record: its value could not be decoded (" in said
    assert "1 record is written" in said
    document = json.loads(lines[1])
    document["value_base64"] = document["value_error"]["bytes"]
    assert produce(json.dumps(document), "--json", *GIVEN)[0] == 0
    assert values(broker)[1] == b"\xff"


@pytest.mark.parametrize(
    ("line", "data"),
    [
        ('{"id": 1.10}', b'{"id": 1.10}'),
        ("[ ]", b"[ ]"),
        ("null", None),
        ("no JSON", "its value is not JSON"),
    ],
)
def test_lines_of_json_need_no_schema(
    broker: MemoryBroker,
    produce: Callable[..., tuple[int, str]],
    line: str,
    data: bytes | str | None,
) -> None:
    status, said = produce(line, "--config", "value.format=json")
    if isinstance(data, str):
        assert data in said
        return
    assert status == 0
    (found,) = records_of(broker.cluster.topics["p"].logs[0])
    assert found.value == data


@pytest.mark.parametrize(
    ("line", "words", "reason"),
    [
        (b"\xff", [], "Line 1: its value is not UTF-8"),
        (b'{"value": 5}', ["--json"], "'value' that is neither a text nor null, where 'value.form"),
    ],
)
def test_the_format_string_takes_texts(
    broker: MemoryBroker,
    produce: Callable[..., tuple[int, str]],
    line: bytes,
    words: list[str],
    reason: str,
) -> None:
    given = ["--config", "value.format=string", *words]
    status, said = produce(line.decode("latin-1"), *given, encoding="latin-1")
    assert (status, reason in said) == (1, True)
    text = '{"value": "ä"}' if words else "ä"
    assert produce(text, *given)[0] == 0
    assert values(broker) == ["ä".encode()]


def test_a_properties_file_of_java_clients_may_name_a_registry(
    broker: MemoryBroker, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.create_topic("t")[0].append(b"\0\0\0\0\1x")
    file = tmp_path / "client.properties"
    file.write_text("schema.registry.url=http://127.0.0.1:1\nauto.register.schemas=true\n")
    assert run("tail", "t", "--config-file", str(file))
    file.write_text(f"value.format=avro\nvalue.schema={json.dumps(AVRO)}\n")
    words = ["tail", "t", "-b", str(broker.address()), "--config-file", str(file)]
    assert main(words) == 1
    assert "the value cannot be decoded" in capsys.readouterr().err
    file.write_text(f"value.schema={json.dumps(AVRO)}\n")
    assert main([*words, "--config", "value.format=avro", "--config", "badRecords=null"]) == 0


def test_tail_goes_on_after_a_time_that_python_has_no_object_for(
    broker: MemoryBroker, run: Run
) -> None:
    """PostgreSQL's infinity, as Debezium writes it."""
    rows = [{"id": each, "at": 9223372036825200000 * each, "raw": b""} for each in (-1, 0, 1)]
    broker.create_topic("t")[0].append(*written(AVRO, rows))
    for policy in ("fail", "null", "skip"):
        lines = run("tail", "t", "--json", *GIVEN, "--config", f"badRecords={policy}")
        assert [json.loads(each)["value"]["at"] for each in lines] == [
            "-290308-12-21T19:59:34.800000Z",
            "1970-01-01T00:00:00+00:00",
            "+294247-01-10T04:00:25.200000Z",
        ]
