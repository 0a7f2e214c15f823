"""The examples of the README and of the pages, on a real broker."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import spark_kafka_source
from spark_kafka_source import KafkaProducer
from spark_kafka_source.testing import LocalKafka, LocalRegistry, Security
from tests.documentation.pages import COOKBOOK, DOCS, PAGES, Block, blocks
from tests.documentation.running import FORMATS_IN_DETAIL, NAMES, Runner, runs_elsewhere

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.registry, pytest.mark.long]

EVENTS: list[dict[str, Any]] = [
    {"user": f"user-{number % 7}", "id": number, "amount": 0.5} for number in range(120)
]
AVRO = """{"type": "record", "name": "Order", "fields": [
    {"name": "id", "type": "long"}, {"name": "amount", "type": "double"}]}"""
WITH_TLS = DOCS / "security.md"
"""Its blocks run on a cluster with TLS and logins."""
START = DOCS / "index.md"
"""Its blocks read and write the same rows."""
WITH_A_REGISTRY = (DOCS / "typed-values.md", FORMATS_IN_DETAIL)


def _of(page: Path) -> list[Block]:
    return [
        block
        for block in blocks(page)
        if not (block.is_output or block.reason or runs_elsewhere(block))
    ]


WITH_EXAMPLES = [
    page
    for page in PAGES
    if _of(page) and page not in (START, WITH_TLS) and page.parent != COOKBOOK
]
"""The pages whose blocks are one story. `tests/documentation/cookbook/` runs each recipe alone."""


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """Session of one page. No other test sees its registrations."""
    session = spark.newSession()
    spark_kafka_source.register(session)
    yield session
    for query in (*session.streams.active, *spark.streams.active):
        query.stop()
    # `createDataFrame` makes its session active in the thread. Spark looks up formats there.
    spark.createDataFrame([], "number int")


@pytest.fixture
def runner(session: SparkSession, kafka: LocalKafka, topic: str, tmp_path: Path) -> Runner:
    """Runner of a page's blocks, with empty topics for the page's names."""
    suffix = topic[-8:]
    texts = {
        "localhost:9092": kafka.bootstrap_servers,
        "broker:9092": kafka.bootstrap_servers,
        '"/': f'"{tmp_path}/',
    }
    runner = Runner(session, suffix, texts, **_variables(session, kafka, suffix))
    for name in NAMES:
        kafka.create_topic(runner.name(name), partitions=2)
    return runner


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.stem)
def test_the_examples_of_a_page(
    page: Path, runner: Runner, kafka: LocalKafka, request: pytest.FixtureRequest
) -> None:
    if page in WITH_A_REGISTRY:
        _write_avro(kafka, request.getfixturevalue("real_registry"), runner)
    else:
        _write_json(kafka, runner.name("events"))
    for block in _of(page):
        runner.run(block)


def test_the_examples_of_a_cluster_with_tls(session: SparkSession, tmp_path: Path) -> None:
    with LocalKafka(security=Security({"alice": "pw"})) as kafka:
        certificate = kafka.authority.issue("alice")
        client = tmp_path / "client.pem"
        client.write_text(certificate.key.read_text() + certificate.chain.read_text())
        texts = {
            "broker:9093": kafka.bootstrap_servers_of("SSL"),
            "mutual:9094": kafka.bootstrap_servers_of("MTLS"),
            "broker:9095": kafka.bootstrap_servers_of("SASL_SSL_SCRAM"),
            "/etc/kafka/ca.pem": str(kafka.authority.certificate),
            "/etc/kafka/client.pem": str(client),
        }
        given = {"user": "alice", "password": "pw", "fetch_a_token": lambda: "a-token"}
        runner = Runner(session, "secured", texts, **given)
        topic = runner.name("events")
        kafka.create_topic(topic)
        with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            producer.send(topic, b"x")
        read = 0
        for block in _of(WITH_TLS):
            runner.run(block)
            if ".load()" in block.source:
                assert runner.variable("events").count() == 1, block
                read += 1
        assert read == 3


def test_the_start_page_writes_each_row(
    runner: Runner, kafka: LocalKafka, session: SparkSession
) -> None:
    _write_json(kafka, runner.name("events"))
    for block in _of(START):
        runner.run(block)
    written = (
        session.read.format("pykafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        .option("subscribe", runner.name("invoices"))
        .option("kafka.isolation.level", "read_committed")
        .load()
        .collect()
    )
    found = sorted((row.key.decode(), row.value.decode()) for row in written)
    users = sorted(each["user"] for each in EVENTS)
    assert found == [(user, f'{{"user":"{user}","amount":0.5}}') for user in users]


def _variables(session: SparkSession, kafka: LocalKafka, suffix: str) -> dict[str, Any]:
    """Return the variables that the examples assume."""
    orders = (
        session.readStream.format("pykafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        .option("subscribe", f"events-{suffix}")
        .load()
        .select("key", "value")
    )
    return {
        "df": session.createDataFrame([(1, 9.5)], "id long, amount double"),
        "orders": orders,
        "fetch_a_token": lambda: "a-token",
    }


def _write_json(kafka: LocalKafka, topic: str) -> None:
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        for number, event in enumerate(EVENTS):
            value = json.dumps(event).encode()
            producer.send(topic, value, key=event["user"].encode(), partition=number % 2)


def _write_avro(kafka: LocalKafka, registry: LocalRegistry, runner: Runner) -> None:
    """Register the schema that the page's examples look up, and write a record with it."""
    runner.replace({"https://registry:8081": registry.url, "http://localhost:8081": registry.url})
    runner.replace({"events-value": f"{runner.name('events')}-value"})
    options: dict[str, Any] = {
        "value_format": "avro",
        "value_schema": AVRO,
        "schema_registry_url": registry.url,
        "auto_register_schemas": True,
    }
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, **options) as producer:
        producer.send(runner.name("events"), {"id": 0, "amount": 1.0})
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        producer.send(runner.name("events"), b"this is no Avro")  # The dead letter of the page.
    _write_json(kafka, runner.name("clicks"))
