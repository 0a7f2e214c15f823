"""The Java oracle. `kafka_jars` here is a stand-in for the one that the whole suite is to have."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.protocol.oracle import Oracle, ask_kafka


@pytest.fixture(scope="session")
def kafka_jars() -> list[Path]:
    return sorted(Path(os.environ["KAFKA_JARS_DIR"]).glob("*.jar"))


@pytest.fixture(scope="session")
def oracle(kafka_jars: list[Path]) -> Iterator[Oracle]:
    with ask_kafka(kafka_jars) as oracle:
        yield oracle
