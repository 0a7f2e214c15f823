"""Fixtures of the tests of Spark, besides the session."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from spark_kafka_source.registry import RegistryClient
from spark_kafka_source.testing import LocalRegistry
from tests.spark.typed_rows import registers


@pytest.fixture
def client(real_registry: LocalRegistry) -> Iterator[RegistryClient]:
    """Client that registers schemas with the real registry."""
    with closing(registers(real_registry)) as client:
        yield client
