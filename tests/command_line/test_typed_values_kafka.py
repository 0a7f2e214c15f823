"""Typed records from a topic to its copy by `tail` and `produce`: the same bytes arrive.

fastavro, google.protobuf and `json` wrote the values, and confluent-kafka reads both topics.
"""

import datetime
import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

from spark_kafka_source.command_line.main import main
from spark_kafka_source.testing import LocalKafka, LocalRegistry
from spark_kafka_source.values import SchemaText, SchemaType
from spark_kafka_source.values.protobuf.text import compiled

pytestmark = [pytest.mark.kafka, pytest.mark.registry]

PARTITIONS = 3
PATIENCE_SECONDS = 60
LONG_AGO_MS = 1_700_000_000_000
HEADERS = [("h", b"\xff\x00"), ("h", None), ("i", "ä".encode())]
NAN, INFINITY = float("nan"), float("inf")
Commands = Callable[..., str]
NOON = datetime.datetime(2026, 11, 25, 12, 30, 0, 1, datetime.UTC)


def logical(kind: str, name: str, **more: int) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


AVRO: dict[str, Any] = {"type": "record", "name": "Every", "fields": [
    {"name": "flag", "type": "boolean"}, {"name": "i", "type": "int"},
    {"name": "l", "type": "long"}, {"name": "f", "type": "float"}, {"name": "d", "type": "double"},
    {"name": "s", "type": "string"}, {"name": "o", "type": "bytes"},
    {"name": "fixed", "type": {"type": "fixed", "name": "Two", "size": 2}},
    {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
    {"name": "day", "type": logical("int", "date")},
    {"name": "millis_of_day", "type": logical("int", "time-millis")},
    {"name": "time", "type": logical("long", "time-micros")},
    {"name": "millis", "type": logical("long", "timestamp-millis")},
    {"name": "micros", "type": logical("long", "timestamp-micros")},
    {"name": "local", "type": logical("long", "local-timestamp-millis")},
    {"name": "local_micros", "type": logical("long", "local-timestamp-micros")},
    {"name": "n", "type": logical("bytes", "decimal", precision=38, scale=10)},
    {"name": "union", "type": ["null", "int", "string", "bytes", {"type": "record", "name": "In",
        "fields": [{"name": "at", "type": ["null", logical("long", "timestamp-millis")]}]}]},
    {"name": "many", "type": {"type": "array", "items": ["null", "double"]}},
    {"name": "map", "type": {"type": "map", "values": logical("long", "timestamp-micros")}},
]}  # fmt: skip
EVERY: dict[str, Any] = {
    "flag": True, "i": -(2**31), "l": 2**63 - 1, "f": 0.5, "d": 0.1, "s": "ä\u2028\0", "o": b"\xff",
    "fixed": b"\0\1", "e": "B", "day": datetime.date(1969, 12, 31), "millis_of_day": 1,
    "time": datetime.time(12, 0, 0, 1), "millis": NOON.replace(microsecond=1000), "micros": NOON,
    "local": datetime.datetime(1960, 1, 1), "local_micros": datetime.datetime(9999, 12, 31),
    "n": Decimal("1234567890123456789.0000000001"), "union": None, "many": [], "map": {},
}  # fmt: skip
ODD: dict[str, Any] = {
    **EVERY, "l": -(2**53) - 1, "f": NAN, "d": -INFINITY, "s": "", "o": b"",
    "day": datetime.date(1, 1, 1), "time": datetime.time(23, 59, 59, 999_999),
    "micros": datetime.datetime(1, 1, 1, tzinfo=datetime.UTC), "n": Decimal("-1E-10"),
    "many": [NAN, None, -0.0, INFINITY, 1e300], "map": {"": NOON, "ä": NOON},
}  # fmt: skip
AVRO_ROWS = [EVERY, ODD, *({**EVERY, "union": each} for each in (
    5, "text", b"\xfe", {"at": None}, {"at": NOON.replace(microsecond=0)},
))]  # fmt: skip

PROTO = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
message Every {
  bool flag = 1; int32 i = 2; uint32 u = 3; sint64 l = 4; fixed64 x = 5; float f = 6; double d = 7;
  string s = 8; bytes o = 9; Kind kind = 10; google.protobuf.Timestamp at = 11;
  google.protobuf.Duration took = 12; google.protobuf.Int32Value wrapped = 13;
  map<int32, string> by_number = 14; map<string, Inner> by_name = 15; map<bool, bytes> by_flag = 16;
  oneof choice { int32 number = 17; string text = 18; } optional int32 maybe = 19;
  repeated Inner inner = 20; repeated double many = 21;
  enum Kind { NONE = 0; SOME = 1; }
  message Inner { google.protobuf.Duration took = 1; bytes o = 2; }
}
"""
PROTO_ROWS: list[dict[str, Any]] = [
    {},
    {"flag": True, "i": -1, "u": 2**32 - 1, "l": str(-(2**63)), "x": "1", "f": "NaN", "d": 0.1,
     "s": "ä", "o": "/w==", "kind": "SOME", "at": "2026-11-25T12:30:00.000001Z", "took": "1.5s",
     "wrapped": 0, "number": 0, "maybe": 0, "many": ["Infinity", "-Infinity", 1e300, 0]},
    {"byNumber": {"1": "a"}, "byName": {"": {}}, "byFlag": {"true": "/w=="}, "text": "",
     "inner": [{"took": "-0.000001s", "o": "AA=="}, {}, {"took": "-315576000000s"}],
     "at": "0001-01-01T00:00:00Z", "took": "0s", "wrapped": -5, "kind": 7},
]  # fmt: skip

JSON_SCHEMA = {"type": "object", "properties": {
    "id": {"type": "integer"}, "x": {"type": "number"}, "s": {"type": "string"},
    "tags": {"type": "array", "items": {"type": ["string", "null"]}},
    "in": {"type": "object", "properties": {"flag": {"type": "boolean"}}},
}}  # fmt: skip
JSON_ROWS = [{"id": 2**63 - 1, "x": 0.1, "s": "ä\n", "tags": ["a", None], "in": {"flag": True}}, {}]
DDL = "id BIGINT, d DECIMAL(20,2), at TIMESTAMP, day DATE, raw BINARY, m MAP<STRING,DOUBLE>"
DDL_ROWS = [
    b'{"id":1,"d":123456789012345678.90,"at":"2026-11-25T12:30:00.000001Z","day":"2026-11-25",'
    b'"raw":"/w==","m":{"a":"NaN","b":1.5}}',
    b"{}",
]
PLAIN_JSON = [b'{"a": 1}', b'{"a":1}', b'"text"', b"null", b"1.10", b"[1e400]", b"no JSON"]


@dataclass
class Case:
    """Values as bytes, and the words of both commands that say what they are."""

    values: list[bytes | None]
    words: list[str] = field(default_factory=list)
    keys: list[bytes | None] | None = None
    tail: list[str] = field(default_factory=list)
    produce: list[str] = field(default_factory=list)


@dataclass
class Making:
    """The registry that a case may use, and the name of its topic."""

    url: str
    topic: str

    def framed(self, part: str, kind: str, schema: str, values: list[bytes]) -> list[bytes | None]:
        """Register a schema, and return the values with its id before them, and a tombstone."""
        with SchemaRegistryClient({"url": self.url}) as client:
            found = client.register_schema(f"{self.topic}-{part}", Schema(schema, kind))
        indexes = b"\0" if kind == "PROTOBUF" else b""
        prefix = b"\0" + found.to_bytes(4) + indexes
        return [*(prefix + each for each in values), None]

    def words(self, **formats: str) -> list[str]:
        """Return the options of both commands. The copy is written with the topic's schemas."""
        found = ["--config", f"schema.registry.url={self.url}"]
        for part, format in formats.items():
            found += ["--config", f"{part}.format={format}"]
            found += ["--config", f"{part}.schema.subject={self.topic}-{part}"]
        return found


def avro(schema: Any, values: list[Any]) -> list[bytes]:
    parsed, found = fastavro.parse_schema(schema), []
    for value in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, value)
        found.append(out.getvalue())
    return found


def avro_case(making: Making) -> Case:
    schema = json.dumps(AVRO)
    return Case(
        making.framed("value", "AVRO", schema, avro(AVRO, AVRO_ROWS)), making.words(value="avro")
    )


def avro_keys(making: Making) -> Case:
    """Typed keys, and values that are no UTF-8."""
    rows: list[Any] = [{"id": 1}, {"id": -1}]
    schema: Any = {"type": "record", "name": "K", "fields": [{"name": "id", "type": "long"}]}
    keys = making.framed("key", "AVRO", json.dumps(schema), avro(schema, rows))
    return Case([b"\xff", b"text", None], making.words(key="avro"), keys)


def avro_bytes(making: Making) -> Case:
    values = avro("bytes", [b"", b"text", b"\xff"])
    framed = making.framed("value", "AVRO", '"bytes"', values)
    return Case(framed, making.words(value="avro"))


def avro_union(making: Making) -> Case:
    schema = ["int", "string", {"type": "map", "values": "long"}]
    values = avro(schema, [5, "text", {"a": 1}, {}])
    framed = making.framed("value", "AVRO", json.dumps(schema), values)
    return Case(framed, making.words(value="avro"))


def protobuf_case(making: Making) -> Case:
    files = descriptor_pb2.FileDescriptorSet.FromString(
        compiled(SchemaText(SchemaType.PROTOBUF, PROTO))
    )
    pool = descriptor_pool.DescriptorPool()
    for each in files.file:
        pool.Add(each)
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName("Every"))
    values = [json_format.ParseDict(row, message()).SerializeToString() for row in PROTO_ROWS]
    framed = making.framed("value", "PROTOBUF", PROTO, values)
    return Case(framed, making.words(value="protobuf"))


def json_case(making: Making) -> Case:
    values = [
        json.dumps(each, ensure_ascii=False, separators=(",", ":")).encode() for each in JSON_ROWS
    ]
    framed = making.framed("value", "JSON", json.dumps(JSON_SCHEMA), values)
    return Case(framed, making.words(value="json"))


def json_by_ddl(_: Making) -> Case:
    words = ["--config", "value.format=json", "--config", f"value.schema={DDL}"]
    return Case([*DDL_ROWS, None], words)


def json_alone(_: Making) -> Case:
    return Case([*PLAIN_JSON, None], tail=["--value", "json"])


def json_format_alone(_: Making) -> Case:
    produce = ["--config", "value.format=json"]
    return Case([*PLAIN_JSON, None], tail=["--value", "json"], produce=produce)


def texts(_: Making) -> Case:
    values = [b"", "ä".encode(), b"5", b"null", None]
    return Case(values, ["--config", "value.format=string"])


CASES: list[Callable[[Making], Case]] = [
    avro_case, avro_keys, avro_bytes, avro_union, protobuf_case, json_case, json_by_ddl, json_alone,
    json_format_alone, texts,
]  # fmt: skip


@pytest.mark.parametrize("make", CASES, ids=lambda each: each.__name__)
def test_the_same_bytes_arrive(
    kafka: LocalKafka,
    real_registry: LocalRegistry,
    topic: str,
    make: Callable[[Making], Case],
    commands: Commands,
) -> None:
    case, copy = make(Making(real_registry.url, topic)), f"{topic}-copy"
    for name in (topic, copy):
        kafka.create_topic(name, partitions=PARTITIONS)
    write(kafka, topic, case)
    tail = ["tail", topic, "--from", "earliest", "--json", *case.words, *case.tail]
    shown = commands(*tail)
    for line in shown.splitlines():
        json.loads(line, parse_constant=pytest.fail)
    commands("produce", copy, "--json", *case.words, *case.produce, given=shown)
    count = len(case.values)
    assert records(kafka, copy, count) == records(kafka, topic, count)


@pytest.fixture
def commands(
    kafka: LocalKafka, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Commands:
    """Return a function that runs a command with an input, and returns its output."""

    def run(*words: str, given: str = "") -> str:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        status = main([*words, "-b", kafka.bootstrap_servers])
        shown = capsys.readouterr()
        assert status == 0, shown.err
        return shown.out

    return run


def write(kafka: LocalKafka, topic: str, case: Case) -> None:
    """Write a case's records with an independent producer."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    keys = case.keys or [b"\xffkey"] * len(case.values)
    for number, (key, value) in enumerate(zip(keys, case.values, strict=True)):
        at_ms = LONG_AGO_MS + number
        headers: Any = HEADERS[: number % 4]
        producer.produce(topic, value, key, number % PARTITIONS, timestamp=at_ms, headers=headers)
    assert producer.flush(PATIENCE_SECONDS) == 0


def records(kafka: LocalKafka, topic: str, count: int) -> list[tuple[Any, ...]]:
    """Return all records of a topic, by partition and offset."""
    config = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "nobody"}
    consumer = Consumer({**config, "enable.auto.commit": False})
    consumer.assign([Position(topic, partition, 0) for partition in range(PARTITIONS)])
    found = consumer.consume(count, PATIENCE_SECONDS)
    consumer.close()
    assert len(found) == count
    rows = [
        (
            *(each.partition(), each.offset(), each.timestamp()[1]),
            *(each.key(), each.value(), each.headers()),
        )
        for each in found
    ]
    return sorted(rows, key=lambda row: row[:2])
