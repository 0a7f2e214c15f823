"""Fixtures for all tests: real brokers, started for the first test that uses them, topic names.

Nothing is skipped: if Java or a jar is missing, the tests that need it fail with this reason.
"""

import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from spark_kafka_source import KafkaAdmin, testing
from spark_kafka_source.testing import LocalKafka, LocalRegistry

pytest_plugins = ["tests.fixtures", "tests.spark_session"]

# A busy machine is slow, and a new one builds its tables first. This is no failure.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
# For what `make test` has shown already with many examples: another Python, other dependencies.
settings.register_profile("few", settings.get_profile("untimed"), max_examples=10)


@pytest.fixture(scope="session")
def kafka_jars() -> list[Path]:
    """Return the jars of Kafka's broker, clients and tools, for tests marked `java`."""
    return testing.kafka_jars()


@pytest.fixture(scope="session")
def kafka() -> Iterator[LocalKafka]:
    """Run one broker for all tests. Leave it running, and use your own topics and groups."""
    properties = {
        # A broker forgets empty groups every ten minutes. Some tests check that a group exists.
        "offsets.retention.check.interval.ms": "86400000",
        # After three seconds in which the machine lets it do nothing it would lead no partition. A
        # killed broker registers again when this has passed, and gives up after 60 s.
        "broker.session.timeout.ms": "30000",
    }
    with LocalKafka(properties=properties) as kafka:
        # The first question about a group makes the topic of commits. A busy machine may need more
        # time for this than a query has for its commit.
        with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
            admin.list_group_offsets("of-nobody")
        yield kafka


# Idle brokers cost more than their start. So only the broker of most tests keeps running.
@pytest.fixture(scope="module")
def kafka3() -> Iterator[LocalKafka]:
    """Run three brokers for a file's tests. A test that stops or pauses one must bring it back."""
    with LocalKafka(3) as kafka:
        yield kafka


@pytest.fixture(scope="session")
def real_registry() -> Iterator[LocalRegistry]:
    """Run one schema registry for all tests. Use your own subjects."""
    with LocalRegistry() as registry:
        yield registry


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """Return a unique topic name. The test creates the topic."""
    test = re.sub(r"[^\w.-]+", "-", request.node.name, flags=re.ASCII)
    return f"{test[:60]}-{uuid.uuid4().hex[:8]}"
