"""A real broker with a plugin gets what clients measure, and Kafka's own classes read it."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_kafka_source import KafkaAdmin, KafkaConsumer, KafkaProducer, TopicPartition
from tests.consumer.consumers import eventually, poll_until
from tests.telemetry.payloads import points, tags
from tests.telemetry.receiver import Receiver, receiving_broker

pytestmark = pytest.mark.kafka

FETCHES = "org.apache.kafka.consumer.fetch.manager."
COORDINATOR = "org.apache.kafka.consumer.coordinator."


@pytest.fixture(scope="module")
def receiver(
    kafka_jars: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Receiver]:
    with receiving_broker(kafka_jars, tmp_path_factory.mktemp("telemetry")) as receiver:
        yield receiver


def consumer_of(receiver: Receiver, name: str) -> KafkaConsumer:
    return KafkaConsumer(
        bootstrap_servers=receiver.kafka.bootstrap_servers,
        client_id=name,
        group_id=name,
        client_rack="here",
        auto_offset_reset="earliest",
    )


def fill(receiver: Receiver, topic: str, count: int) -> None:
    receiver.kafka.create_topic(topic, partitions=2)
    with KafkaProducer(bootstrap_servers=receiver.kafka.bootstrap_servers) as producer:
        for number in range(count):
            producer.send(topic, b"x", partition=number % 2)


@pytest.mark.usefixtures("patient")
def test_a_consumers_pushes_have_its_metrics_and_its_labels(receiver: Receiver) -> None:
    fill(receiver, "read", 60)
    receiver.subscribe("of-read", "read", f"{FETCHES},{COORDINATOR}rebalance")
    with consumer_of(receiver, "read") as consumer:
        consumer.subscribe(["read"])
        poll_until(
            consumer,
            lambda: any(
                each.metrics.keys() >= {f"{FETCHES}records.lag"} for each in receiver.pushes("read")
            ),
        )
        known = consumer.client_instance_id()
        member = consumer.group_metadata()
        assert member is not None
        shown = consumer.metrics()
    last = receiver.pushes("read")[-1]
    assert last.is_last
    assert (last.client_instance_id, last.interval_ms, last.content_type) == (known, 200, "OTLP")
    assert last.labels == {
        "group_id": "read",
        "group_member_id": member.member_id,
        "client_rack": "here",
    }
    assert all(each.startswith((FETCHES, f"{COORDINATOR}rebalance")) for each in last.metrics)
    # The pushes have deltas, as Kafka asks for them.
    consumed = [each.value(f"{FETCHES}records.consumed.total") for each in receiver.pushes("read")]
    assert sum(consumed) == shown["records-consumed-total"] == 60
    assert last.value(f"{FETCHES}fetch.size.max") == shown["fetch-size-max"]
    assert last.value(f"{COORDINATOR}rebalance.latency.max") == shown["rebalance-latency-max"]
    lags = {
        (tags(point)["topic"], tags(point)["partition"]): point.as_double
        for each in receiver.pushes("read")
        if f"{FETCHES}records.lag" in each.metrics
        for point in points(each.metrics[f"{FETCHES}records.lag"])
    }
    assert lags == {("read", "0"): 0, ("read", "1"): 0}


@pytest.mark.usefixtures("patient")
def test_a_producers_pushes_have_its_metrics_and_its_labels(receiver: Receiver) -> None:
    receiver.kafka.create_topic("written")
    receiver.subscribe("of-written", "written", "*")
    with KafkaProducer(
        bootstrap_servers=receiver.kafka.bootstrap_servers,
        client_id="written",
        transactional_id="telemetry",
    ) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        for _ in range(40):
            producer.send("written", b"x")
        producer.commit_transaction()
        eventually(lambda: len(receiver.pushes("written")) >= 2)
        known = producer.client_instance_id()
    shown = producer.metrics()
    first, *_, last = pushes = receiver.pushes("written")
    assert last.is_last
    assert not first.is_last
    assert first.labels == {"transactional_id": "telemetry"}
    assert last.client_instance_id == known
    of = "org.apache.kafka.producer."
    assert sum(each.value(f"{of}record.send.total") for each in pushes) == 40
    assert shown["record-send-total"] == 40
    for name in ("record-queue-time-max", "produce-throttle-time-avg", "batch-size-max"):
        assert last.value(of + name.replace("-", ".")) == shown[name]
    created = sum(each.value(f"{of}connection.creation.total") for each in pushes)
    assert created == shown["connection-creation-total"] >= 2
    (point,) = points(last.metrics[f"{of}node.request.latency.max"])
    assert tags(point) == {"node_id": "node-1"}
    assert point.as_double > 0


def test_pushes_end_with_their_subscription_and_come_again_with_another(
    receiver: Receiver,
) -> None:
    fill(receiver, "deleted", 1)
    receiver.subscribe("of-deleted", "deleted", FETCHES)
    with consumer_of(receiver, "deleted") as consumer:
        consumer.assign([TopicPartition("deleted", 0)])
        poll_until(consumer, lambda: len(receiver.pushes("deleted")) >= 2)
        receiver.unsubscribe("of-deleted")
        telemetry = consumer._telemetry
        assert telemetry is not None
        poll_until(consumer, lambda: telemetry._subscription is None)
        count = len(receiver.pushes("deleted"))
        for _ in range(10):
            consumer.poll(100)
        assert len(receiver.pushes("deleted")) == count
    assert len(receiver.pushes("deleted")) == count, "there is no last push either"


def test_a_frozen_broker_does_not_hold_up_a_close(receiver: Receiver) -> None:
    fill(receiver, "frozen", 1)
    receiver.subscribe("of-frozen", "frozen", "*")
    consumer = consumer_of(receiver, "frozen")
    consumer.assign([TopicPartition("frozen", 0)])
    producer = KafkaProducer(bootstrap_servers=receiver.kafka.bootstrap_servers, client_id="frozen")
    producer.send("frozen", b"x").result()
    known = {consumer.client_instance_id(), producer.client_instance_id()}
    poll_until(
        consumer,
        lambda: {each.client_instance_id for each in receiver.pushes("frozen")} == known,
    )
    consumer.commit()
    receiver.kafka.pause()
    try:
        began_seconds = time.monotonic()
        producer.close()
        assert time.monotonic() - began_seconds < 15
        began_seconds = time.monotonic()
        consumer.close(2_000)
        assert time.monotonic() - began_seconds < 15
    finally:
        receiver.kafka.resume()


def test_an_admin_client_has_an_id(receiver: Receiver) -> None:
    with KafkaAdmin(bootstrap_servers=receiver.kafka.bootstrap_servers) as admin:
        assert admin.client_instance_id() == admin.client_instance_id()
