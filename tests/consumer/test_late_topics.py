"""Topics that come after their consumer: how soon it reads them, and whether it makes them."""

import itertools
import time
from collections.abc import Iterator
from typing import Any

import confluent_kafka as ck
import pytest

from spark_kafka_source import KafkaAdmin
from spark_kafka_source.consumer.kafka_consumer import KafkaConsumer
from spark_kafka_source.errors import BrokerError, KafkaError, error_named
from spark_kafka_source.net import Deadline
from spark_kafka_source.producer import KafkaProducer
from spark_kafka_source.protocol.messages.membership import HeartbeatRequest, JoinGroupRequest
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.testing.memory import Action, MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import (
    IN_GROUP,
    T0,
    Place,
    consuming,
    fill,
    longer_and_longer,
    of,
    places,
    poll_all_until,
    poll_until,
    polled,
)

pytestmark = pytest.mark.memory(nodes=3)

PATIENCE_MS = 60_000
CLASSIC = {"group_id": "g", "partition_assignment_strategy": "range"}
COOPERATIVE = {"group_id": "g", "partition_assignment_strategy": "cooperative-sticky"}
NEWER = {"group_id": "g", "group_protocol": "consumer"}
EACH_WAY = pytest.mark.parametrize(
    "group",
    [{}, CLASSIC, COOPERATIVE, NEWER],
    ids=["alone", "eager", "cooperative", "kip-848"],
)


def creates(request: MetadataRequest) -> bool:
    return request.allow_auto_topic_creation


def names(request: MetadataRequest) -> set[str | None] | None:
    return None if request.topics is None else {each.name for each in request.topics}


# -- how soon --------------------------------------------------------------------------------------


def test_a_member_reads_a_topic_that_comes_after_it(broker: MemoryBroker) -> None:
    broker.cluster.coordinators["g"] = 1
    with consuming(broker, **IN_GROUP) as consumer:
        consumer.subscribe(["t"])
        poll_until(consumer, lambda: len(broker.requests(HeartbeatRequest)) >= 3)
        joined = len(broker.requests(JoinGroupRequest))
        broker.create_topic("t")
        fill(broker, T0, 1)
        assert polled(consumer, 10) == of(T0, range(10))
        beats = len(broker.requests(HeartbeatRequest))
        poll_until(consumer, lambda: len(broker.requests(HeartbeatRequest)) >= beats + 5)
        assert len(broker.requests(JoinGroupRequest)) == joined + 1


def test_of_two_topics_the_one_that_is_there_is_read_meanwhile(broker: MemoryBroker) -> None:
    broker.create_topic("t")
    fill(broker, T0, 1)
    with consuming(broker, **IN_GROUP) as consumer:
        consumer.subscribe(["t", "late"])
        assert polled(consumer, 10) == of(T0, range(10))
        late = TopicPartition("late", 0)
        broker.create_topic("late")
        fill(broker, late, 1)
        found: list[Place] = []
        # Nothing is committed, so the rebalance makes the member read the other topic again.
        poll_until(
            consumer,
            lambda: set(of(late, range(10))) <= set(found),
            lambda records: found.extend(places(records)),
        )


def test_a_topic_that_is_deleted_and_comes_again_is_read_again(broker: MemoryBroker) -> None:
    broker.create_topic("t")
    broker.create_topic("other")
    with consuming(broker, **IN_GROUP | {"metadata_max_age_ms": 200}) as consumer:
        consumer.subscribe(["t", "other"])
        poll_until(consumer, lambda: T0 in consumer.assignment())
        broker.delete_topic("t")
        poll_until(consumer, lambda: T0 not in consumer.assignment())
        broker.create_topic("t")
        fill(broker, T0, 1)
        assert polled(consumer, 10) == of(T0, range(10))


@pytest.mark.parametrize("group", [{}, IN_GROUP], ids=["alone", "group"])
def test_a_pattern_that_matches_nothing_looks_before_metadata_is_old(
    broker: MemoryBroker, group: dict[str, Any]
) -> None:
    with consuming(broker, **group) as consumer:
        consumer.subscribe(pattern="la.*")
        poll_until(consumer, lambda: bool(broker.requests(MetadataRequest)))
        late = TopicPartition("late", 0)
        broker.create_topic("late")
        fill(broker, late, 1)
        assert polled(consumer, 10) == of(late, range(10))


def test_followers_look_seldom_for_a_topic_that_never_comes(broker: MemoryBroker) -> None:
    """A member's own looks are for creation. Their pauses double up to the age of metadata."""
    broker.cluster.coordinators["g"] = 1
    quick = IN_GROUP | {"retry_backoff_ms": 50, "retry_backoff_max_ms": 50}
    with consuming(broker, **quick) as one, consuming(broker, **quick) as two:
        began_seconds = time.monotonic()
        for each in (one, two):
            each.subscribe(["t"])

        def heartbeats() -> int:
            return len(broker.requests(HeartbeatRequest))

        poll_all_until(one, two, done=lambda: heartbeats() >= 400)
        seconds = time.monotonic() - began_seconds
        # Each heartbeat took 20 ms at least, so two members sent 400 in 4 s at least. With 4 s an
        # exponential pause from 50 ms on has passed 7 times for each of them, and 12 times with
        # more than three minutes.
        creating = [each for each in broker.requests(MetadataRequest) if creates(each)]
        # Only one of them leads, and pauses for 50 ms between two looks.
        looking = [each for each in broker.requests(MetadataRequest) if not creates(each)]
        assert len(creating) <= 2 * 12
        assert len(looking) <= seconds / 0.04 + 4


# -- what is created -------------------------------------------------------------------------------


@EACH_WAY
def test_a_broker_creates_the_topics_that_are_subscribed_to(
    broker: MemoryBroker, group: dict[str, Any]
) -> None:
    broker.cluster.creates_topics = True
    with consuming(broker, **group) as consumer:
        consumer.subscribe(["t"])
        poll_until(consumer, lambda: consumer.assignment() == {T0})
        fill(broker, T0, 1)
        assert polled(consumer, 10) == of(T0, range(10))


def test_a_broker_creates_the_topic_of_an_assigned_partition(broker: MemoryBroker) -> None:
    broker.cluster.creates_topics = True
    with consuming(broker, T0) as consumer:
        poll_until(consumer, lambda: "t" in broker.cluster.topics)
        fill(broker, T0, 1)
        assert polled(consumer, 10) == of(T0, range(10))


@EACH_WAY
def test_nothing_is_created_unless_allowed(broker: MemoryBroker, group: dict[str, Any]) -> None:
    broker.cluster.creates_topics = True
    with consuming(broker, allow_auto_create_topics=False, **group) as consumer:
        consumer.subscribe(["t"])
        poll_until(consumer, lambda: bool(broker.requests(MetadataRequest)))
        consumer.unsubscribe()
        consumer.assign([T0])
        asked = len(broker.requests(MetadataRequest))
        poll_until(consumer, lambda: len(broker.requests(MetadataRequest)) > asked)
    assert broker.cluster.topics == {}
    assert not any(map(creates, broker.requests(MetadataRequest)))


@EACH_WAY
def test_a_deleted_topic_is_not_made_again_by_its_reader(
    broker: MemoryBroker, group: dict[str, Any]
) -> None:
    broker.cluster.creates_topics = True
    with consuming(broker, metadata_max_age_ms=100, **group) as consumer:
        consumer.subscribe(["t"])
        poll_until(consumer, lambda: consumer.assignment() == {T0})
        consumer.poll(timeout_ms=50)
        broker.delete_topic("t")
        asked = len(broker.requests(MetadataRequest))
        # With KIP-848 it is the coordinator that takes the partition away.
        poll_until(
            consumer,
            lambda: not consumer.assignment() or len(broker.requests(MetadataRequest)) >= asked + 5,
        )
        assert broker.cluster.topics == {}


def test_a_deleted_topic_is_not_made_again_for_its_assigned_partition(
    broker: MemoryBroker,
) -> None:
    broker.cluster.creates_topics = True
    with consuming(broker, T0, metadata_max_age_ms=100) as consumer:
        poll_until(consumer, lambda: "t" in broker.cluster.topics)
        fill(broker, T0, 1)
        polled(consumer, 10)
        broker.delete_topic("t")
        asked = len(broker.requests(MetadataRequest))
        poll_until(consumer, lambda: len(broker.requests(MetadataRequest)) >= asked + 5)
        assert broker.cluster.topics == {}


@pytest.mark.parametrize("group", [{}, IN_GROUP], ids=["alone", "group"])
def test_one_who_may_not_create_topics_waits_for_them(
    broker: MemoryBroker, group: dict[str, Any]
) -> None:
    """A broker that creates topics denies the request to one without the right to create them."""

    def deny(request: Any) -> Any:
        return error_named("TOPIC_AUTHORIZATION_FAILED") if creates(request) else Action.HANDLE

    broker.control(MetadataRequest, deny, times=None)
    with consuming(broker, **group) as consumer:
        consumer.subscribe(["t"])
        poll_until(consumer, lambda: any(map(creates, broker.requests(MetadataRequest))))
        broker.create_topic("t")
        fill(broker, T0, 1)
        assert polled(consumer, 10) == of(T0, range(10))


def test_what_only_asks_creates_nothing(broker: MemoryBroker) -> None:
    broker.cluster.creates_topics = True
    broker.create_topic("known")
    with consuming(broker) as consumer:
        consumer.subscribe(pattern="t|known")
        poll_until(consumer, lambda: bool(consumer.assignment()))
        for timeout_ms in longer_and_longer(300):
            with pytest.raises(KafkaError) as caught:
                consumer.partitions_for("t", timeout_ms=timeout_ms)
            if "UNKNOWN_TOPIC" in str(caught.value):
                break
        assert isinstance(caught.value, BrokerError)
        for ask in (consumer.beginning_offsets, consumer.end_offsets):
            with pytest.raises(KafkaError):
                ask([T0], timeout_ms=300)
        consumer.list_topics()
    address = broker.address()
    with KafkaAdmin(bootstrap_servers=str(address)) as admin:
        with pytest.raises(BrokerError, match="UNKNOWN_TOPIC"):
            admin.describe_topics(["t"])
        admin.list_topics()
    assert set(broker.cluster.topics) == {"known"}


# -- on real brokers -------------------------------------------------------------------------------


def first_value(consumer: KafkaConsumer) -> bytes | None:
    deadline = Deadline.after_ms(PATIENCE_MS)
    while not deadline.expired:
        for record in consumer.poll(timeout_ms=200):
            value: bytes = record.value
            return value
    raise AssertionError(f"no record within a minute: {consumer.assignment()}")


def settled(*consumers: KafkaConsumer) -> None:
    """Poll until the consumers that have a group are members, and have asked for their topics."""
    deadline = Deadline.after_ms(PATIENCE_MS)
    for polls in itertools.count():
        for each in consumers:
            each.poll(timeout_ms=100)
        if polls > 3 and all(each.group_metadata() for each in consumers):
            return
        assert not deadline.expired


def of_group(group: dict[str, Any], topic: str) -> dict[str, Any]:
    own = {"group_id": topic} if group else {}
    return {"auto_offset_reset": "earliest", **group, **own}


@pytest.mark.kafka
@EACH_WAY
def test_a_topic_that_comes_after_its_consumer(
    kafka: LocalKafka, topic: str, group: dict[str, Any]
) -> None:
    config = of_group(group, topic)
    with KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, **config) as consumer:
        consumer.subscribe([topic])
        if group:
            settled(consumer)
        else:
            consumer.poll(timeout_ms=500)
        kafka.create_topic(topic, 2)
        with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            producer.send(topic, b"first", partition=1).result(30)
        assert first_value(consumer) == b"first"
        assert consumer.assignment() == {TopicPartition(topic, 0), TopicPartition(topic, 1)}


@pytest.mark.kafka
def test_two_members_share_a_topic_that_comes_after_them(kafka: LocalKafka, topic: str) -> None:
    config: dict[str, Any] = {**of_group(CLASSIC, topic), "heartbeat_interval_ms": 300}
    with (
        KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, **config) as one,
        KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, **config) as two,
    ):
        for each in (one, two):
            each.subscribe([topic])
        settled(one, two)
        kafka.create_topic(topic, 4)
        deadline = Deadline.after_ms(PATIENCE_MS)
        while not len(one.assignment()) == len(two.assignment()) == 2:
            assert not deadline.expired, (one.assignment(), two.assignment())
            for each in (one, two):
                each.poll(timeout_ms=50)


@pytest.fixture(scope="module")
def creating_kafka() -> Iterator[LocalKafka]:
    """Run a broker that creates topics, as Kafka's default is."""
    with LocalKafka(properties={"auto.create.topics.enable": "true"}) as kafka:
        yield kafka


def topics_of(kafka: LocalKafka) -> set[str]:
    with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        return {each.name for each in admin.list_topics()}


@pytest.mark.kafka
@EACH_WAY
def test_a_consumer_may_start_before_its_producer(
    creating_kafka: LocalKafka, topic: str, group: dict[str, Any]
) -> None:
    servers = creating_kafka.bootstrap_servers
    with KafkaConsumer(bootstrap_servers=servers, **of_group(group, topic)) as consumer:
        consumer.subscribe([topic])
        deadline = Deadline.after_ms(PATIENCE_MS)
        while not consumer.assignment():
            assert not deadline.expired
            consumer.poll(timeout_ms=100)
        assert topic in topics_of(creating_kafka)
        peer = ck.Producer({"bootstrap.servers": servers, "log_level": 0})
        peer.produce(topic, b"first")
        assert peer.flush(30) == 0
        assert first_value(consumer) == b"first"


@pytest.mark.kafka
def test_a_real_broker_creates_only_what_is_subscribed_to_or_assigned(
    creating_kafka: LocalKafka, topic: str
) -> None:
    servers = creating_kafka.bootstrap_servers
    before = topics_of(creating_kafka)
    with KafkaConsumer(bootstrap_servers=servers) as consumer:
        consumer.subscribe(pattern=f"{topic}.*")
        consumer.poll(timeout_ms=500)
        for timeout_ms in longer_and_longer(1_000):
            with pytest.raises(KafkaError) as caught:
                consumer.partitions_for(f"{topic}-asked", timeout_ms=timeout_ms)
            if isinstance(caught.value, BrokerError):
                break
        assert isinstance(caught.value, BrokerError)
    with KafkaAdmin(bootstrap_servers=servers) as admin, pytest.raises(BrokerError):
        admin.describe_topics([f"{topic}-asked"])
    with KafkaConsumer(bootstrap_servers=servers, allow_auto_create_topics=False) as consumer:
        consumer.subscribe([f"{topic}-denied"])
        consumer.poll(timeout_ms=1_000)
    assert topics_of(creating_kafka) == before
    with KafkaConsumer(bootstrap_servers=servers) as consumer:
        consumer.assign([TopicPartition(f"{topic}-assigned", 0)])
        deadline = Deadline.after_ms(PATIENCE_MS)
        while f"{topic}-assigned" not in topics_of(creating_kafka):
            assert not deadline.expired
            consumer.poll(timeout_ms=100)
    assert topics_of(creating_kafka) - before == {f"{topic}-assigned"}
