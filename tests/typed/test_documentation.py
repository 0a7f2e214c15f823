"""Examples without Spark of typed-values.md and formats-in-detail.md, with a real registry."""

import io
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from spark_kafka_source import KafkaConsumer, KafkaProducer
from spark_kafka_source.command_line.main import main
from spark_kafka_source.testing import LocalKafka, LocalRegistry
from tests.documentation.pages import DOCS, under

pytestmark = [pytest.mark.kafka, pytest.mark.registry]

TYPED_VALUES = DOCS / "typed-values.md"
DETAILS = DOCS / "contributors" / "formats-in-detail.md"
IN_PYTHON = "In Python, without Spark"
ORDER = {"id": 1, "amount": 9.5}


def run(page: Path, heading: str, kafka: LocalKafka, registry: LocalRegistry, **names: str) -> None:
    (block,) = under(page, heading)
    source = block.source.replace("localhost:9092", kafka.bootstrap_servers)
    source = source.replace("http://localhost:8081", registry.url)
    for name, topic in names.items():
        source = source.replace(f'"{name}"', f'"{topic}"')
    exec(compile(source, str(block), "exec"), {})  # our own page


def test_what_is_sent_is_read(
    kafka: LocalKafka,
    real_registry: LocalRegistry,
    topic: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kafka.create_topic(topic)
    run(TYPED_VALUES, IN_PYTHON, kafka, real_registry, invoices=topic, billing=topic)
    assert capsys.readouterr().out == f"{ORDER}\n"


def test_the_command_line(
    kafka: LocalKafka,
    real_registry: LocalRegistry,
    topic: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    clicks = f"{topic}-clicks"
    for each in (topic, clicks):
        kafka.create_topic(each)
    run(TYPED_VALUES, IN_PYTHON, kafka, real_registry, invoices=topic, billing=topic)
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, value_format="json") as producer:
        producer.send(clicks, {"url": "/", "ms": 5})
    capsys.readouterr()
    exported: dict[str, str] = {}
    (block,) = under(DETAILS, "On the command line")
    for line in block.source.splitlines():
        text = line.replace("localhost:9092", kafka.bootstrap_servers)
        text = text.replace("http://localhost:8081", real_registry.url)
        text = text.replace("orders", topic).replace("clicks", clicks)
        if text.startswith("export "):
            name, _, value = text.removeprefix("export ").partition("=")
            exported[f"${name}"] = value.strip('"')
            continue
        said, _, command = text.rpartition(" | ")
        if said:
            stdin = io.BytesIO(shlex.split(said)[1].encode())
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stdin))
        for name, value in exported.items():
            command = command.replace(name, value)
        assert main(shlex.split(command)[1:]) == 0
    ddl, *tailed = capsys.readouterr().out.splitlines()
    assert ddl == "ms BIGINT, url STRING"
    assert [json.loads(each.rpartition("  ")[2]) for each in tailed] == [ORDER]
    options: dict[str, Any] = {"value_format": "avro", "schema_registry_url": real_registry.url}
    with KafkaConsumer(
        bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest", **options
    ) as consumer:
        consumer.subscribe([topic])
        found = [record.value for _, record in zip(range(2), consumer, strict=False)]
    assert found == [ORDER, {"id": 4, "amount": 2.5}]


def test_a_schema_of_json(
    kafka: LocalKafka,
    real_registry: LocalRegistry,
    topic: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kafka.create_topic(topic)
    servers = kafka.bootstrap_servers
    with KafkaProducer(bootstrap_servers=servers, value_format="json") as producer:
        producer.send(topic, {"url": "/", "ms": 5})
    run(DETAILS, "The schema as DDL", kafka, real_registry, clicks=topic)
    assert capsys.readouterr().out == "ms BIGINT, url STRING\n"
