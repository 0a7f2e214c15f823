"""Sessions that end in the middle of a read (KIP-368). `tests/reliability` has more of it."""

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from spark_kafka_source.net import Address, authentication, connection
from spark_kafka_source.net.authentication import Ask, authenticate
from spark_kafka_source.net.connect_attempts import ConnectAttempts
from spark_kafka_source.net.sasl.mechanism import Mechanism
from spark_kafka_source.net.sasl.tokens import token_cache
from spark_kafka_source.net.session import Session
from spark_kafka_source.records import Record
from spark_kafka_source.testing import LocalKafka, Producer
from tests.security.options import options_of
from tests.security.reading import read

pytestmark = pytest.mark.kafka

TOKEN_SECONDS = 3
VALUES = [f"row {number}".encode() for number in range(150)]
ROW_BY_ROW = {"kafka.max.partition.fetch.bytes": "1", "kafka.fetch.max.bytes": "1"}
PAUSE_SECONDS = 0.11  # for as long as sessions have to end yet
WAYS = [("SASL_SSL", "OAUTHBEARER"), ("SASL_SSL_BRIEF", "SCRAM-SHA-256")]


@pytest.fixture
def short_tokens(secured: LocalKafka) -> Iterator[None]:
    """Shorten tokens: a session lasts as long as its token."""
    before = secured.token_server.lifetime_seconds
    secured.token_server.lifetime_seconds = TOKEN_SECONDS
    token_cache.cache_clear()  # Another test may have cached a longer token.
    yield
    secured.token_server.lifetime_seconds = before


@pytest.mark.usefixtures("short_tokens")
def test_a_read_outlasts_its_sessions(
    secured: LocalKafka, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long enough session is renewed on its connection. A shorter one ends its connection."""
    logins: Counter[str] = Counter()

    def counted(ask: Ask, mechanism: Mechanism) -> Session:
        logins[mechanism.name] += 1
        return authenticate(ask, mechanism)

    opened: Counter[str] = Counter()

    class Counted(ConnectAttempts):
        def __init__(self, address: Address, *arguments: Any) -> None:
            opened[str(address)] += 1
            super().__init__(address, *arguments)

    monkeypatch.setattr(authentication, "authenticate", counted)
    monkeypatch.setattr(connection, "ConnectAttempts", Counted)
    secured.create_topic(topic)
    with Producer(secured.bootstrap_servers) as producer:
        for value in VALUES:  # A fetch returns at least one batch, so each row has its own batch.
            producer.send(topic, 0, [Record(value=value)])

    def connections() -> list[int]:
        """How many were made by each way."""
        return [opened[secured.bootstrap_servers_of(listener)] for listener, _ in WAYS]

    def is_outlasted() -> bool:
        renewed, ended = connections()
        return renewed < logins["OAUTHBEARER"] and ended >= 4

    def slowly(way: tuple[str, str]) -> list[bytes]:
        rows = []
        for value in read(options_of(secured, *way) | ROW_BY_ROW | {"subscribe": topic}):
            rows.append(value)
            if not is_outlasted():
                time.sleep(PAUSE_SECONDS)
        return rows

    with ThreadPoolExecutor() as pool:
        assert list(pool.map(slowly, WAYS)) == [VALUES] * len(WAYS)
    renewed, ended = connections()
    # One login is the driver's and one the task's. A token's lifetime is in whole seconds, so
    # its last session may be too short.
    assert 2 <= renewed < logins["OAUTHBEARER"]
    assert 4 <= ended == logins["SCRAM-SHA-256"]
