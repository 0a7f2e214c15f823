"""An idle query of a large cluster sends few requests, and sees new records and topics at once."""

from collections.abc import Iterator

import pytest

from spark_kafka_source.protocol.messages.fetch import FetchRequest
from spark_kafka_source.protocol.messages.list_offsets import ListOffsetsRequest
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.spark.options import parse_source_options
from spark_kafka_source.spark.source import pace
from spark_kafka_source.spark.source.stream import KafkaStreamReader
from tests.memory_broker import MemoryBroker
from tests.spark.source.engine import Json, initial, latest

BROKERS = 12


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryBroker]:
    """Twelve brokers that hold fetches back, and a topic with a record in each partition."""
    monkeypatch.setattr(pace, "_WATCHED_PAUSE_SECONDS", 0.1)
    monkeypatch.setattr(pace, "LEAST_PAUSE_SECONDS", 0.1)
    with MemoryBroker(BROKERS) as cluster:
        cluster.held_step_seconds = 0.01
        for log in cluster.create_topic("t", partitions=BROKERS):
            log.append(b"x")
        yield cluster


@pytest.fixture
def reader(cluster: MemoryBroker) -> Iterator[KafkaStreamReader]:
    options = {
        "kafka.bootstrap.servers": str(cluster.address()),
        "subscribePattern": "t.*",
        "startingOffsets": "earliest",
    }
    reader = KafkaStreamReader(parse_source_options(options))
    yield reader
    reader.stop()


def fallen_idle(reader: KafkaStreamReader) -> Json:
    """Read everything, until the query watches the leaders. Return its position."""
    end = latest(reader, initial(reader))
    for _ in range(3):
        assert latest(reader, end) == end
    return end


def test_no_leader_is_asked_again_and_again(
    cluster: MemoryBroker, reader: KafkaStreamReader
) -> None:
    end = fallen_idle(reader)
    cluster.forget()
    for _ in range(3):
        assert latest(reader, end) == end
    assert len(cluster.requests(MetadataRequest)) == 3
    assert not cluster.requests(ListOffsetsRequest)
    assert not cluster.requests(FetchRequest)


def test_a_new_record_is_seen(cluster: MemoryBroker, reader: KafkaStreamReader) -> None:
    end = fallen_idle(reader)
    cluster.cluster.topics["t"].logs[7].append(b"y")
    assert latest(reader, end)["offsets"]["t"]["7"] == 2


def test_a_new_topic_is_seen(cluster: MemoryBroker, reader: KafkaStreamReader) -> None:
    end = fallen_idle(reader)
    cluster.create_topic("t2")[0].append(b"y")
    assert latest(reader, end)["offsets"]["t2"] == {"0": 1}


def test_it_falls_idle_again(cluster: MemoryBroker, reader: KafkaStreamReader) -> None:
    fallen_idle(reader)
    cluster.cluster.topics["t"].logs[7].append(b"y")
    end = fallen_idle(reader)
    cluster.forget()
    assert latest(reader, end) == end
    assert not cluster.requests(ListOffsetsRequest)
