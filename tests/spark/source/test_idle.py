"""An idle query of a large cluster sends few requests, and sees new records and topics at once."""

from collections.abc import Iterator

import pytest

from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol.messages.fetch import FetchRequest
from spark_kafka_source.protocol.messages.list_offsets import ListOffsetsRequest
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.spark.options import parse_source_options
from spark_kafka_source.spark.source import idle_pace
from spark_kafka_source.spark.source.stream import KafkaStreamReader
from spark_kafka_source.testing.memory import MemoryBroker
from tests.spark.source.engine import Json, initial, latest

BROKERS = 12
PATIENCE_MS = 60_000


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryBroker]:
    """Twelve brokers that hold fetches back, and a topic with a record in each partition."""
    monkeypatch.setattr(idle_pace, "_WATCHED_PAUSE_SECONDS", 0.1)
    monkeypatch.setattr(idle_pace, "LEAST_PAUSE_SECONDS", 0.1)
    with MemoryBroker(BROKERS) as cluster:
        cluster.held_step_seconds = 0.01
        for log in cluster.create_topic("t", partitions=BROKERS):
            log.append(b"x")
        yield cluster


@pytest.fixture
def reader(cluster: MemoryBroker) -> Iterator[KafkaStreamReader]:
    options = {
        "kafka.bootstrap.servers": str(cluster.address()),
        # Leaders hold a fetch back for most of it.
        "kafka.request.timeout.ms": "600000",
        "subscribePattern": "t.*",
        "startingOffsets": "earliest",
    }
    reader = KafkaStreamReader(parse_source_options(options))
    yield reader
    reader.stop()


def fallen_idle(cluster: MemoryBroker, reader: KafkaStreamReader) -> Json:
    """Read everything, until the query watches all leaders. Return its position.

    The connections to the leaders are made meanwhile, and each look waits a second for them.
    """
    end = latest(reader, initial(reader))
    deadline = Deadline.after_ms(PATIENCE_MS)
    is_idle = False
    while not is_idle:
        assert not deadline.expired
        cluster.forget()
        assert latest(reader, end) == end
        asked = cluster.requests(ListOffsetsRequest), cluster.requests(FetchRequest)
        is_idle = not any(asked)
    return end


def test_no_leader_is_asked_again_and_again(
    cluster: MemoryBroker, reader: KafkaStreamReader
) -> None:
    end = fallen_idle(cluster, reader)
    cluster.forget()
    for _ in range(3):
        assert latest(reader, end) == end
    assert len(cluster.requests(MetadataRequest)) == 3
    assert not cluster.requests(ListOffsetsRequest)
    assert not cluster.requests(FetchRequest)


def test_a_new_record_is_seen(cluster: MemoryBroker, reader: KafkaStreamReader) -> None:
    """The leader tells of it: the pause ends early, and no look for safety is due after it."""
    end = fallen_idle(cluster, reader)
    reader._pace.pause_seconds = idle_pace._WATCHED_LOOK_SECONDS / 2
    cluster.cluster.topics["t"].logs[7].append(b"y")
    assert latest(reader, end)["offsets"]["t"]["7"] == 2


def test_a_new_topic_is_seen(cluster: MemoryBroker, reader: KafkaStreamReader) -> None:
    end = fallen_idle(cluster, reader)
    cluster.create_topic("t2")[0].append(b"y")
    assert latest(reader, end)["offsets"]["t2"] == {"0": 1}


def test_it_falls_idle_again(cluster: MemoryBroker, reader: KafkaStreamReader) -> None:
    fallen_idle(cluster, reader)
    cluster.cluster.topics["t"].logs[7].append(b"y")
    end = fallen_idle(cluster, reader)
    cluster.forget()
    assert latest(reader, end) == end
    assert not cluster.requests(ListOffsetsRequest)
