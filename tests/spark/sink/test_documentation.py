"""The examples of `docs/writing.md`, on a real broker."""

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.spark.sink.written import texts, written
from tools.traffic import Events, stream

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

PAGE = Path(__file__).parents[3] / "docs" / "writing.md"
BATCH, STREAM, UPDATES, COPY = (
    dedent(each)
    for each in re.findall(r"^ *```python\n(.*?)^ *```$", PAGE.read_text(), re.M | re.S)
)


class Examples:
    """Runner of an example. It replaces topics, brokers and folders by the test's own."""

    def __init__(self, spark: SparkSession, events: Events, folder: Path) -> None:
        self._spark, self._events, self._folder = spark, events, folder
        self._query: StreamingQuery | None = None

    def run(self, source: str, topics: dict[str, Events], **known: Any) -> None:
        servers = self._events.kafka.bootstrap_servers
        source = re.sub(r"\w+:9092", servers, source)
        source = source.replace("/data", str(self._folder))
        for name, topic in topics.items():
            source = source.replace(f'"{name}"', f'"{topic.name}"')
        found = {"spark": self._spark, **known}
        exec(compile(source, str(PAGE), "exec"), found)  # our own page
        self._query = found.get("query") or found.get("copy")
        if self._query is not None:
            self._query.processAllAvailable()

    def stop(self) -> None:
        if self._query is not None:
            self._query.stop()


@pytest.fixture
def examples(spark: SparkSession, events: Events, tmp_path: Path) -> Iterator[Examples]:
    examples = Examples(spark, events, tmp_path)
    yield examples
    examples.stop()


def test_a_batch(examples: Examples, target: Events) -> None:
    examples.run(BATCH, {"events": target})
    assert {(each.key, each.value) for each in written(target)} == {(b"a", b"1"), (b"b", b"2")}


def test_a_stream(spark: SparkSession, events: Events, examples: Examples, target: Events) -> None:
    events.fill(1)
    read = stream(spark, events.options()).select("key", "offset")
    examples.run(STREAM, {"events": target}, stream=read)
    assert texts(target) == ['{"offset":0}']


def test_updates(spark: SparkSession, events: Events, examples: Examples, target: Events) -> None:
    events.create()
    events.write(["ann", "bob", "ann"])
    clicks = stream(spark, events.options()).selectExpr("CAST(value AS STRING) AS user")
    examples.run(UPDATES, {"counts": target}, clicks=clicks)
    found = {(each.key, each.value) for each in written(target)}
    assert found == {(b"ann", b"2"), (b"bob", b"1")}


def test_a_copy(events: Events, examples: Examples, target: Events) -> None:
    events.fill(2, 1)
    source = COPY.replace('"subscribe", "events"', f'"subscribe", "{events.name}"')
    source = source.replace(
        '("includeHeaders"', '("startingOffsets", "earliest").option("includeHeaders"'
    )
    examples.run(source, {"events": target})
    assert written(target) == written(events)
