"""Kafka's own Java classes, in one JVM for all tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.protocol.oracle import Oracle, ask_kafka


@pytest.fixture(scope="session")
def oracle(kafka_jars: list[Path]) -> Iterator[Oracle]:
    with ask_kafka(kafka_jars) as oracle:
        yield oracle
