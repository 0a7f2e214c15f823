"""Kafka's own assignors, in one JVM for all tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.groups.assignors.kafka_assignors import KafkaAssignors, run_kafka_assignors


@pytest.fixture(scope="session")
def kafka_assignors(kafka_jars: list[Path]) -> Iterator[KafkaAssignors]:
    with run_kafka_assignors(kafka_jars) as kafka_assignors:
        yield kafka_assignors
