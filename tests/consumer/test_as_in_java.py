"""Features that follow Java's consumer: patterns on the broker, kept offsets, times."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from spark_kafka_source.consumer.kafka_consumer import KafkaConsumer
from spark_kafka_source.errors import BrokerError, ConfigurationError, LocalError
from spark_kafka_source.fetch.offsets import OffsetAndTimestamp
from spark_kafka_source.groups import OffsetAndMetadata
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol.messages.membership import ConsumerGroupHeartbeatRequest
from spark_kafka_source.records import Record
from spark_kafka_source.testing import LocalKafka, Producer
from spark_kafka_source.testing.memory import MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import PATIENCE_MS

pytestmark = pytest.mark.memory(nodes=3)

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
BY_THE_BROKER = {"group_id": "g", "group_protocol": "consumer"}


@contextmanager
def consuming(broker: MemoryBroker, **config: Any) -> Iterator[KafkaConsumer]:
    quick: dict[str, Any] = {
        "auto_offset_reset": "earliest",
        "retry_backoff_ms": 1,
        "enable_auto_commit": False,
    }
    servers = str(broker.address())
    with KafkaConsumer(bootstrap_servers=servers, **quick | config) as consumer:
        yield consumer


def poll_until_assigned(consumer: KafkaConsumer, *partitions: TopicPartition) -> None:
    deadline = Deadline.after_ms(PATIENCE_MS)
    while consumer.assignment() != set(partitions):
        assert not deadline.expired
        consumer.poll(timeout_ms=10)


# -- patterns on the coordinator -------------------------------------------------------------------


@pytest.fixture
def topics(broker: MemoryBroker) -> None:
    for name, partitions in (("t", 2), ("u", 1), ("ut", 1)):
        broker.create_topic(name, partitions)
    broker.cluster.coordinators["g"] = 1


@pytest.mark.usefixtures("topics")
def test_the_coordinator_finds_what_matches_a_pattern(broker: MemoryBroker) -> None:
    with consuming(broker, **BY_THE_BROKER) as consumer:
        consumer.subscribe(server_pattern="[tu]")
        assert consumer.subscription() == set()
        poll_until_assigned(consumer, T0, T1, U0)
        assert consumer.subscription() == {"t", "u"}
        consumer.subscribe(["u"])
        poll_until_assigned(consumer, U0)
        assert consumer.subscription() == {"u"}
        consumer.unsubscribe()
        consumer.assign([T0])
        assert consumer.subscription() == set()
    asked = [each.subscribed_topic_regex for each in broker.requests(ConsumerGroupHeartbeatRequest)]
    assert {"[tu]", ""} <= set(asked)


@pytest.mark.usefixtures("topics")
def test_a_pattern_that_the_broker_cannot_read(broker: MemoryBroker) -> None:
    with consuming(broker, **BY_THE_BROKER) as consumer:
        consumer.subscribe(server_pattern="[")
        with pytest.raises(BrokerError, match=r"INVALID_REGULAR_EXPRESSION.*RE2"):
            poll_until_assigned(consumer, T0)


@pytest.mark.parametrize(
    ("config", "name"),
    [({}, "group_id"), ({"group_id": "g"}, "group_protocol")],
)
def test_only_the_newer_protocol_has_such_patterns(
    broker: MemoryBroker, config: dict[str, str], name: str
) -> None:
    with consuming(broker, **config) as consumer:
        with pytest.raises(ConfigurationError, match=name):
            consumer.subscribe(server_pattern="t.*")
        assert consumer.subscription() == set()


@pytest.mark.parametrize(
    "given",
    [
        {"server_pattern": ""},
        {"server_pattern": "t", "pattern": "t"},
        {"server_pattern": "t", "topics": ["t"]},
    ],
)
def test_one_thing_is_subscribed_to(broker: MemoryBroker, given: dict[str, Any]) -> None:
    with consuming(broker, **BY_THE_BROKER) as consumer, pytest.raises(LocalError, match="either"):
        consumer.subscribe(**given)


# -- the records of a poll -------------------------------------------------------------------------


def test_records_of_one_topic_and_where_to_go_on(broker: MemoryBroker) -> None:
    for name, partitions in (("t", 2), ("u", 1)):
        for log in broker.create_topic(name, partitions):
            log.append(*(Record(value=b"v") for _ in range(3)))
    with consuming(broker, max_poll_records=100) as consumer:
        consumer.assign([T0, T1, U0])
        consumer.seek(U0, 1)
        found: dict[TopicPartition, OffsetAndMetadata] = {}
        deadline = Deadline.after_ms(PATIENCE_MS)
        while len(found) < 3 and not deadline.expired:
            records = consumer.poll(timeout_ms=1_000)
            assert records.next_offsets.keys() == set(records.partitions)
            of_t = records.of("t")
            assert len(of_t) == len(records.of(T0)) + len(records.of(T1))
            assert of_t.next_offsets.keys() == set(of_t.partitions)
            found |= records.next_offsets
    assert {each: at.offset for each, at in found.items()} == {T0: 3, T1: 3, U0: 3}


def test_the_first_record_at_a_time_has_a_time(broker: MemoryBroker) -> None:
    for log in broker.create_topic("t", 2):
        log.append(Record(value=b"a", timestamp_ms=1_000), Record(value=b"b", timestamp_ms=2_000))
    with consuming(broker) as consumer:
        found = consumer.offsets_for_times({T0: 1_500, T1: 2_001})
        assert found == {T0: OffsetAndTimestamp(1, 0, 2_000), T1: None}


# -- a real broker ---------------------------------------------------------------------------------


@pytest.mark.kafka
def test_a_real_coordinator_finds_what_matches_a_pattern(kafka: LocalKafka, topic: str) -> None:
    names = [f"{topic}-{each}" for each in ("a", "b", "c")]
    for name in names:
        kafka.create_topic(name)
    with Producer(kafka.bootstrap_servers) as producer:
        for name in names:
            producer.send(name, 0, [Record(value=name.encode())])
    config: dict[str, Any] = {"group_id": topic, "group_protocol": "consumer"}
    config["auto_offset_reset"] = "earliest"
    with KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, **config) as consumer:
        consumer.subscribe(server_pattern=f"{topic}-[ab]")
        found: set[bytes] = set()
        deadline = Deadline.after_ms(60_000)
        while len(found) < 2:
            assert not deadline.expired
            records = consumer.poll()
            found |= {each.value for each in records}
            consumer.commit(records.next_offsets)
        assert found == {name.encode() for name in names[:2]}
        assert consumer.subscription() == set(names[:2])
        ends = dict.fromkeys(consumer.assignment(), OffsetAndMetadata(1, 0))
        assert consumer.committed(ends) == ends
        consumer.subscribe(server_pattern="(")
        with pytest.raises(BrokerError, match="INVALID_REGULAR_EXPRESSION"):
            poll_until_assigned(consumer)
