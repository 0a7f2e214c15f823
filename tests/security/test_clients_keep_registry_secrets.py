"""Consumers and producers with typed values do not show the registry's secrets."""

import base64
import logging
import traceback
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest

from spark_kafka_source import KafkaConsumer, KafkaError, KafkaProducer, TopicPartition
from spark_kafka_source.records import Record
from spark_kafka_source.testing.memory import MemoryBroker
from tests.registry.server import Reply, TestRegistry, error, registry_server, version

SECRET = "canary-4711"
IN_TIME_MS = 10_000
BASIC = {"schema_registry_basic_auth_user_info": f"user:{SECRET}"}
BEARER = {"schema_registry_bearer_auth_token": SECRET}
ANSWERS: dict[str, Callable[[], Reply]] = {
    "denied": lambda: error(401, 40101, f"Basic {_encoded()} and {SECRET} are nobody here"),
    "forbidden": lambda: error(403, 40301, f"{SECRET} may not"),
    "broken": lambda: Reply(500, SECRET),
    "no schema": lambda: version(SECRET, id=1),
    "elsewhere": lambda: Reply(302, headers={"Location": f"http://127.0.0.1:1/{SECRET}"}),
}


Use = Callable[[dict[str, Any]], object]


def _encoded() -> str:
    return base64.b64encode(f"user:{SECRET}".encode()).decode()


@pytest.fixture
def registry() -> Iterator[TestRegistry]:
    with registry_server() as registry:
        yield registry


@pytest.fixture
def servers() -> Iterator[str]:
    """Return a broker's address. Its topic t has a record with an unknown schema."""
    with MemoryBroker(1) as broker:
        (log,) = broker.create_topic("t")
        log.append(Record(value=b"\0\0\0\0\2\2"))
        address = broker.address()
        yield f"{address.host}:{address.port}"


def _consumed(settings: dict[str, Any]) -> None:
    with KafkaConsumer(
        auto_offset_reset="earliest", enable_auto_commit=False, **settings
    ) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        for _ in range(IN_TIME_MS // 100):
            consumer.poll(100)


def _produced(settings: dict[str, Any]) -> None:
    with KafkaProducer(**settings) as producer:
        producer.send("t", {"id": 1})


@pytest.mark.parametrize("client", [*product((_consumed, _produced), (BASIC, BEARER))])
@pytest.mark.parametrize("answer", ANSWERS)
def test_nothing_that_is_shown_has_it(
    client: tuple[Use, dict[str, str]],
    answer: str,
    servers: str,
    registry: TestRegistry,
    caplog: pytest.LogCaptureFixture,
) -> None:
    registry.on("*", ANSWERS[answer]())
    settings: dict[str, Any] = {
        "bootstrap_servers": servers,
        "value_format": "avro",
        "schema_registry_url": registry.url,
        # Only a broken registry is asked until the end. The others get time on a busy machine.
        "schema_registry_timeout_ms": 1_000 if answer == "broken" else IN_TIME_MS,
    }
    use, secret = client
    settings |= secret
    caplog.set_level(logging.DEBUG)
    with pytest.raises(KafkaError) as raised:
        use(settings)
    assert registry.asked, f"the registry was not asked: {raised.value}"
    said = "".join(traceback.format_exception(raised.value)) + repr(vars(raised.value))
    # A registry may send secrets that the client does not have.
    hidden = [SECRET, *([_encoded()] if secret is BASIC else [])]
    assert not [each for each in hidden if each in said + caplog.text]


@pytest.mark.parametrize("client", [KafkaConsumer, KafkaProducer])
def test_neither_client_shows_it(client: Any, servers: str, registry: TestRegistry) -> None:
    settings = {"value_format": "avro", "schema_registry_url": registry.url, **BASIC}
    with client(bootstrap_servers=servers, **settings) as found:
        assert SECRET not in repr(found) + str(found) + repr(vars(found)) + repr(found.metrics())
