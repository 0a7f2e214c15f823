"""The examples of `docs/producer.md`, on a real broker."""

import itertools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from spark_kafka_source import KafkaConsumer, KafkaProducer
from spark_kafka_source.testing import LocalKafka

pytestmark = pytest.mark.kafka

PAGE = Path(__file__).parents[2] / "docs" / "producer.md"
EXAMPLES = re.findall(
    r"^## ([^\n]+)\n(?:(?!^## ).)*?^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S
)
PATIENCE_SECONDS = 60


@pytest.fixture
def run(kafka: LocalKafka, topic: str) -> Callable[..., None]:
    """Return a function that runs the example under a heading, with topics of this test."""

    def run(heading: str, *topics: str, names: Sequence[str] = (), **known: Any) -> None:
        (source,) = (each for title, each in EXAMPLES if title == heading)
        source = source.replace("localhost:9092", kafka.bootstrap_servers)
        source = source.replace("while True:", "while not done():")
        for name in topics:
            kafka.create_topic(f"{topic}-{name}")
        for name in (*topics, *names):
            source = source.replace(f'"{name}"', f'"{topic}-{name}"')
        exec(compile(source, str(PAGE), "exec"), known)  # our own page

    return run


@pytest.fixture
def rows(kafka: LocalKafka, topic: str) -> Callable[[str, int], list[dict[str, Any]]]:
    """Return a function that reads the first records of a topic of this test."""

    def rows(name: str, count: int) -> list[dict[str, Any]]:
        config: dict[str, Any] = {"isolation_level": "read_committed"}
        with KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, **config) as consumer:
            partitions = consumer.partitions_for(f"{topic}-{name}")
            consumer.assign(partitions)
            consumer.seek_to_beginning(*partitions)
            found: list[dict[str, Any]] = []
            while len(found) < count:
                polled = consumer.poll(PATIENCE_SECONDS * 1000)
                assert len(polled)
                found += polled.to_arrow().select(["key", "value"]).to_pylist()
            return found

    return rows


def test_each_example_has_a_test() -> None:
    tested = ["Records", "Columns", "A callback", "Transactions"]
    assert [title for title, _ in EXAMPLES] == [*tested, "asyncio"]  # tests/aio runs the last one.


def test_records(run: Any, rows: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run("Records", "events")
    assert rows("events", 1) == [{"key": b"key", "value": b"value"}]
    assert capsys.readouterr().out.startswith("RecordMetadata(topic='")


def test_columns(run: Any, rows: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run("Columns", "events")
    assert rows("events", 3) == [
        {"key": b"a", "value": b"1"},
        {"key": b"b", "value": b"2"},
        {"key": None, "value": b"3"},
    ]
    assert capsys.readouterr().out == "3 records, from 0 on\n"


def test_a_callback(run: Any, topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    run("A callback", "events")
    told = capsys.readouterr().out.splitlines()
    assert told == [f"{topic}-events-0 at {offset}" for offset in range(10)]


def test_transactions(run: Any, rows: Any, kafka: LocalKafka, topic: str) -> None:
    values = [b"%d" % number for number in range(50)]
    polls = itertools.count()

    def done() -> bool:
        """Return whether all is read. The first poll finds no records: no transaction begins."""
        number = next(polls)
        assert number < PATIENCE_SECONDS
        if number == 1:
            with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
                for each in values:
                    producer.send(f"{topic}-orders", each)
        with KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers) as consumer:
            ends = consumer.end_offsets(consumer.partitions_for(f"{topic}-invoices"))
        # Each commit adds a marker to the records.
        return sum(ends.values()) > len(values)

    run("Transactions", "orders", "invoices", done=done, names=("billing", "billing-1"))
    assert [each["value"] for each in rows("invoices", len(values))] == values
