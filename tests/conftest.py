"""What tests share: real brokers, started when the first test asks for them, and topics' names.

Nothing is skipped: where Java or a jar is missing, the tests that need it fail and say so.
"""

import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from spark_kafka_source import testing
from spark_kafka_source.testing import LocalKafka, LocalRegistry

pytest_plugins = ["tests.spark_session"]

# A machine under load is slow, and a fresh one first makes its tables: neither is a failure.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def kafka_jars() -> list[Path]:
    """The jars of Kafka's broker, clients and tools, for tests marked `java`."""
    return testing.kafka_jars()


@pytest.fixture(scope="session")
def kafka() -> Iterator[LocalKafka]:
    """One broker that all tests share: leave it running, and use topics and groups of your own."""
    # Each ten minutes a broker forgets empty groups; some tests look whether one is there.
    with LocalKafka(properties={"offsets.retention.check.interval.ms": "86400000"}) as kafka:
        yield kafka


# Idle brokers cost more than their start, so that only the one that most tests use lives on.
@pytest.fixture(scope="module")
def kafka3() -> Iterator[LocalKafka]:
    """Three brokers for a file's tests. A test that stops or pauses one brings it back."""
    with LocalKafka(3) as kafka:
        yield kafka


@pytest.fixture(scope="session")
def real_registry() -> Iterator[LocalRegistry]:
    """A schema registry that all tests share: use subjects of your own."""
    with LocalRegistry() as registry:
        yield registry


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name for a topic that no other test has; creating it is up to the test."""
    test = re.sub(r"[^\w.-]+", "-", request.node.name, flags=re.ASCII)
    return f"{test[:60]}-{uuid.uuid4().hex[:8]}"
