"""Fixtures for brokers in memory, and a client of them. `tests/conftest.py` has the real brokers.

A test, or a file by its `pytestmark`, says which brokers it wants:

    pytestmark = pytest.mark.memory(nodes=2, topics={"t": 2}, coordinators={"g": 1})
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from spark_kafka_source.client import KafkaClient, asked, race
from spark_kafka_source.client import client as client_module
from spark_kafka_source.fetch import fetcher, source
from spark_kafka_source.protocol import Versions
from spark_kafka_source.testing.memory import MemoryBroker, PartitionLog

_HOUR_MS = 3_600_000


@dataclass(frozen=True)
class Memory:
    """Arguments of the mark `memory`."""

    nodes: int = 1
    topics: Mapping[str, int] = field(default_factory=dict)
    """The number of partitions of each topic. The leaders are spread over all nodes."""
    coordinators: Mapping[str, int] = field(default_factory=dict)
    """The node of each group's coordinator; without it the lowest that is up."""
    versions: Mapping[int, Versions] = field(default_factory=dict)
    """Versions of APIs that are not the newest."""
    client: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the fixture `client`."""


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> Iterator[MemoryBroker]:
    """Run the brokers that the mark `memory` asks for, or else one broker without topics."""
    wanted = _wanted(request)
    with MemoryBroker(wanted.nodes, versions=dict(wanted.versions)) as broker:
        for name, partitions in wanted.topics.items():
            broker.create_topic(name, partitions)
        broker.cluster.coordinators.update(wanted.coordinators)
        yield broker


@pytest.fixture
def client(broker: MemoryBroker, request: pytest.FixtureRequest) -> Iterator[KafkaClient]:
    """Return a client of the brokers in memory that makes no pause between tries."""
    with KafkaClient(broker.config(**_wanted(request).client)) as client:
        yield client


@pytest.fixture
def log(broker: MemoryBroker) -> PartitionLog:
    """Create a topic `t` of one partition. Return its log."""
    (log,) = broker.create_topic("t")
    return log


@pytest.fixture
def unhurried(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no broker in memory seem silent: a test may count the requests to all of them.

    A healthy one may need half a second on a busy machine, and the client would ask another one,
    too. After two seconds it would look for new leaders and coordinators. Tests of silent brokers
    set these times themselves. Real brokers may be silent.
    """
    if request.node.get_closest_marker("kafka") is None:
        monkeypatch.setattr(race, "_TURN_MS", _HOUR_MS)
        silent_after(_HOUR_MS, monkeypatch)


def silent_after(milliseconds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a broker count as silent after this time without a byte."""
    for module in (asked, client_module, fetcher, race, source):
        monkeypatch.setattr(module, "LONGEST_SILENCE_MS", milliseconds)


def _wanted(request: pytest.FixtureRequest) -> Memory:
    mark = request.node.get_closest_marker("memory")
    return Memory(**mark.kwargs) if mark else Memory()
