"""The examples without Spark of `docs/typed-values.md`, on a real broker and a real registry."""

import re
from pathlib import Path

import pytest

from spark_kafka_source import KafkaConsumer, KafkaProducer
from spark_kafka_source.command_line.main import main
from spark_kafka_source.testing import LocalKafka, LocalRegistry

pytestmark = [pytest.mark.kafka, pytest.mark.registry]

PAGE = Path(__file__).parents[2] / "docs" / "typed-values.md"
EXAMPLES = dict(re.findall(r"^## (.+?)$.*?^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S))
ORDERS = [{"id": 1, "amount": 9.5}, {"id": 2, "amount": 0.5}, {"id": 3, "amount": 1.5}]


def run(heading: str, kafka: LocalKafka, registry: LocalRegistry, **names: str) -> None:
    source = EXAMPLES[heading].replace("localhost:9092", kafka.bootstrap_servers)
    source = source.replace("http://localhost:8081", registry.url)
    for name, topic in names.items():
        source = source.replace(f'"{name}"', f'"{topic}"')
    exec(compile(source, str(PAGE), "exec"), {})  # our own page


def test_what_is_sent_is_read(
    kafka: LocalKafka,
    real_registry: LocalRegistry,
    topic: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kafka.create_topic(topic)
    run("Without Spark: KafkaProducer", kafka, real_registry, orders=topic)
    registry = {"value.format": "avro", "schema.registry.url": real_registry.url}
    given = ["-b", kafka.bootstrap_servers]
    given += [f"--config={name}={value}" for name, value in registry.items()]
    assert main(["schema", topic, *given]) == 0
    assert main(["tail", topic, *given]) == 0
    ddl, *tailed = capsys.readouterr().out.splitlines()
    assert ddl == "id BIGINT, amount DOUBLE"
    assert all(f'"id": {number}' in line for number, line in enumerate(tailed, 1))
    run("Without Spark: KafkaConsumer", kafka, real_registry, orders=topic, billing=topic)
    shown = capsys.readouterr().out
    assert str(ORDERS[0]) in shown
    assert "-- child 1 type: double" in shown
    with KafkaConsumer(
        bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest", **registry
    ) as consumer:
        consumer.subscribe([topic])
        found = [value for _, value in zip(ORDERS, consumer, strict=False)]
    assert [each.value for each in found] == ORDERS


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
    run("The schema as DDL", kafka, real_registry, clicks=topic)
    assert main(["schema", topic, "-b", servers]) == 0
    assert capsys.readouterr().out == "ms BIGINT, url STRING\n" * 2
