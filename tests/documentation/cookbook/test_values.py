"""The recipes of typed values, on records that have odd fields, lack some, or are broken."""

import io
import json
import struct
import urllib.request
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from spark_kafka_source.testing import LocalKafka, LocalRegistry
from tests.documentation.pages import recipe
from tests.documentation.running import Runner
from tools.traffic import TIMEOUT_SECONDS, Headers, Writer

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.registry, pytest.mark.long]

AVRO = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
CURRENCY = {"name": "currency", "type": "string", "default": "EUR"}
WITH_CURRENCY = AVRO | {"fields": [*AVRO["fields"], CURRENCY]}
AT_MS = 1_700_000_000_123


def _stop(session: SparkSession) -> None:
    for query in session.streams.active:
        query.stop()


def _write(kafka: LocalKafka, topic: str, *values: bytes | None) -> None:
    with Writer(kafka.bootstrap_servers) as writer:
        for value in values:
            writer.queue(topic, value)


def _rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.collect()]


def test_json_to_a_typed_table(
    session: SparkSession,
    kafka: LocalKafka,
    runner: Runner,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic = runner.name("orders")
    kafka.create_topic(topic)
    command, block = recipe("values.md", "JSON to a typed table")
    at = "2026-05-04T10:00:00"
    _write(kafka, topic, json.dumps({"id": 1, "at": f"{at}Z", "tags": ["a"]}).encode())
    runner.run(command)
    assert capsys.readouterr().out.strip() == "at STRING, id BIGINT, tags ARRAY<STRING>"
    _write(
        kafka,
        topic,
        b'{"id": 2, "amount": 12.5, "other": {"id": 7}}',
        b'{"ID": 3}',
        b'{"id": "7", "amount": 1}',
        b'{"id": 7.0}',
        b"no JSON",
        None,
        b'{"id": 4, "tags": null}',
    )
    runner.run(block)
    nothing = (None, None, None, None)
    columns = ("id", "amount", "at", "tags", "bad", "partition", "offset")
    table = session.read.parquet(str(tmp_path / "orders-typed")).select(*columns).orderBy("offset")
    assert _rows(table) == [
        (1, None, datetime.fromisoformat(at), ["a"], None, 0, 0),
        (2, Decimal("12.50"), None, None, None, 0, 1),
        (*nothing, None, 0, 2),
        (*nothing, 'id: a JSON value of another kind than the column: "7" is no BIGINT', 0, 3),
        (
            *nothing,
            "id: not a whole number, or beyond the range of the column: 7.0 is no BIGINT",
            0,
            4,
        ),
        (*nothing, "not JSON, or more than one JSON value", 0, 5),
        (*nothing, None, 0, 6),
        (4, None, None, None, None, 0, 7),
    ]


def test_dead_letters_and_their_repair(
    session: SparkSession, kafka: LocalKafka, runner: Runner, tmp_path: Path
) -> None:
    topic = runner.name("orders")
    kafka.create_topic(topic, partitions=2, configs={"retention.ms": "-1"})
    create, stream, table = recipe("values.md", "Dead letters, with reason, headers and offset")
    (repair,) = recipe("values.md", "Repair dead letters and send them back")
    runner.run(create)
    headers: Headers = [("trace", b"x"), ("trace", None)]
    comma = b'{"id": 3, "amount": "12,50"}'
    with Writer(kafka.bootstrap_servers) as writer:
        writer.queue(topic, b'{"id": 1, "amount": 0.5}', partition=1)
        writer.queue(topic, b"no JSON", partition=1, key=b"a", timestamp_ms=AT_MS)
        writer.queue(topic, b'{"id": 2}', partition=0)
        writer.queue(topic, comma, partition=0, key=b"k", headers=headers, timestamp_ms=AT_MS)
    runner.run(stream)
    orders = tmp_path / "orders-good"
    good = [(1, 0.5), (2, None)]
    assert sorted(_rows(session.read.parquet(str(orders)))) == good
    _stop(session)
    # A new checkpoint reads the records again, so each letter is there twice.
    source = runner.source(stream).replace("checkpoints/orders-good", "again")
    exec(source.replace(f"{orders}", f"{orders}-again"), {"spark": session})
    (query,) = session.streams.active
    query.processAllAvailable()
    query.stop()
    runner.run(table)
    letters = runner.variable("letters").orderBy("partition")
    added = letters.selectExpr(
        "reason", "topic", "partition", "offset", "headers", "key", "value", "timestamp"
    )
    first, second = added.collect()
    assert "amount: a JSON value of another kind than the column" in first.reason
    assert "not JSON" in second.reason
    assert [(each.topic, each.partition, each.offset) for each in (first, second)] == [
        (topic, "0", "1"),
        (topic, "1", "1"),
    ]
    assert [(each.key, each.value) for each in first.headers] == headers
    assert (bytes(first.key), bytes(first.value)) == (b"k", comma)
    assert (second.headers, bytes(second.value)) == ([], b"no JSON")
    runner.run(repair)
    runner.run(stream)
    assert sorted(_rows(session.read.parquet(str(orders)))) == [*good, (3, 12.5)]
    options = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": topic}
    (repaired,) = (
        session.read.format("pykafka")
        .options(**options)
        .option("includeHeaders", "true")
        .load()
        .where("CAST(value AS STRING) LIKE '%12.5%'")
        .collect()
    )
    assert [(each.key, each.value) for each in repaired.headers] == headers
    assert bytes(repaired.key) == b"k"
    assert repaired.timestamp == first.timestamp


def test_avro_with_a_registry_read(
    session: SparkSession,
    kafka: LocalKafka,
    real_registry: LocalRegistry,
    runner: Runner,
    tmp_path: Path,
) -> None:
    topic = runner.name("orders")
    kafka.create_topic(topic)
    runner.replace({"http://localhost:8081": real_registry.url})
    (block,) = recipe("values.md", "Avro with a registry, read")
    first = _register(real_registry, topic, AVRO)
    _write(kafka, topic, _framed(first, AVRO, {"id": 1}))
    runner.run(block)
    second = _register(real_registry, topic, WITH_CURRENCY)
    _write(kafka, topic, _framed(second, WITH_CURRENCY, {"id": 2, "currency": "USD"}))
    (query,) = session.streams.active
    query.processAllAvailable()
    orders = str(tmp_path / "orders-avro")
    assert sorted(_rows(session.read.parquet(orders))) == [(1,), (2,)]
    query.stop()
    _write(kafka, topic, _framed(second, WITH_CURRENCY, {"id": 3, "currency": "CHF"}))
    _write(kafka, topic, _framed(first, AVRO, {"id": 4}))
    runner.run(block)
    table = session.read.option("mergeSchema", "true").parquet(orders).select("id", "currency")
    assert sorted(_rows(table)) == [(1, None), (2, None), (3, "CHF"), (4, "EUR")]


def test_avro_with_a_registry_written(
    session: SparkSession, kafka: LocalKafka, real_registry: LocalRegistry, runner: Runner
) -> None:
    topic = runner.name("invoices")
    kafka.create_topic(topic)
    runner.replace({"http://localhost:8081": real_registry.url})
    (block,) = recipe("values.md", "Avro with a registry, written")

    def run_as(*texts: tuple[str, str]) -> None:
        source = runner.source(block)
        for found, put in texts:
            assert found in source
            source = source.replace(found, put)
        exec(source, {"spark": session})

    by_subject = (
        '"auto.register.schemas", "true"',
        f'"value.schema.subject", "{topic}-value"',
    )
    other_type = ('"id long, amount double"', '"id long, amount string"')
    with pytest.raises(AnalysisException, match="subject"):
        run_as(by_subject)
    runner.run(block)
    _ask(real_registry, f"config/{topic}-value", {"compatibility": "BACKWARD"}, "PUT")
    one_more = (
        ("(1, 9.5)", '(2, 1.5, "EUR")'),
        (other_type[0], '"id long, amount double, c string"'),
    )
    run_as(one_more[0], one_more[1])
    with pytest.raises(AnalysisException, match="status 409"):
        run_as(("9.5", '"x"'), other_type)
    run_as(by_subject)
    with pytest.raises(AnalysisException, match=r"value\.amount"):
        run_as(by_subject, ("9.5", '"x"'), other_type)

    reader = (
        session.read.format("pykafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        .option("subscribe", topic)
    )
    raw = reader.load().orderBy("offset").collect()
    found = [(bytes(each.key), *_unframed(real_registry, bytes(each.value))) for each in raw]
    assert found == [
        (b"1", 1, {"id": 1, "amount": 9.5}),
        (b"2", 2, {"id": 2, "amount": 1.5, "c": "EUR"}),
        (b"1", 2, {"id": 1, "amount": 9.5, "c": None}),
    ]
    typed = reader.option("value.format", "avro").option("schema.registry.url", real_registry.url)
    old = typed.option("value.schema.version", "1").load().orderBy("offset")
    assert _rows(old.select("value.*")) == [(1, 9.5), (2, 1.5), (1, 9.5)]


def test_the_last_value_of_each_key(kafka: LocalKafka, runner: Runner) -> None:
    topic = runner.name("counts")
    kafka.create_topic(topic, partitions=2, configs={"cleanup.policy": "compact"})
    records = [
        (0, b"a", b'{"n": 1}'),
        (0, b"deleted", b'{"n": 1}'),
        (0, b"a", b'{"n": 2}'),
        (0, b"deleted", None),
        (0, b"null field", b'{"n": null}'),
        (0, b"never there", None),
        (1, b"back", b'{"n": 3}'),
        (1, b"back", None),
        (1, b"back", b'{"n": 4}'),
    ]
    with Writer(kafka.bootstrap_servers) as writer:
        for number, (partition, key, value) in enumerate(records):
            # A later record may have an earlier time.
            at = AT_MS - number
            writer.queue(topic, value, partition=partition, key=key, timestamp_ms=at)
    (block,) = recipe("values.md", "The last value of each key")
    runner.run(block)
    last = runner.variable("last")
    assert last.columns == ["key", "n", "timestamp"]
    assert sorted(_rows(last.selectExpr("key", "n", "unix_millis(timestamp)"))) == [
        ("a", 2, AT_MS - 2),
        ("back", 4, AT_MS - 8),
        ("null field", None, AT_MS - 4),
    ]


def test_protobuf_without_a_registry(kafka: LocalKafka, runner: Runner) -> None:
    topic = runner.name("clicks")
    kafka.create_topic(topic)
    _write(kafka, topic, b"\x08\x07\x12\x01a", b"\x08\x08", b"", None)
    (block,) = recipe("values.md", "Protobuf without a registry")
    runner.run(block)
    assert _rows(runner.variable("clicks")) == [
        (7, "a"),
        (8, None),
        (None, None),
        (None, None),
    ]


def _ask(registry: LocalRegistry, path: str, body: Any = None, method: str | None = None) -> Any:
    """Ask the registry, in Confluent's words."""
    request = urllib.request.Request(
        f"{registry.url}/{path}",
        None if body is None else json.dumps(body).encode(),
        {"Content-Type": "application/json"},
        method=method,
    )
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
        return json.loads(answer.read())


def _register(registry: LocalRegistry, topic: str, schema: Any) -> int:
    body = {"schema": json.dumps(schema), "schemaType": "AVRO"}
    found: int = _ask(registry, f"subjects/{topic}-value/versions", body)["id"]
    return found


def _framed(schema_id: int, schema: Any, row: dict[str, Any]) -> bytes:
    written = io.BytesIO()
    fastavro.schemaless_writer(written, schema, row)
    return struct.pack(">bi", 0, schema_id) + written.getvalue()


def _unframed(registry: LocalRegistry, value: bytes) -> tuple[int, Any]:
    """Return which version of its subject a value has, and what it means to fastavro."""
    _, schema_id = struct.unpack(">bi", value[:5])
    ((version),) = {each["version"] for each in _ask(registry, f"schemas/ids/{schema_id}/versions")}
    schema = json.loads(_ask(registry, f"schemas/ids/{schema_id}")["schema"])
    return version, fastavro.schemaless_reader(io.BytesIO(value[5:]), schema, None)
