"""A consumer, a producer and an admin client with brokers that want metrics, oddly or not."""

import asyncio
import threading
import time
import uuid
from itertools import count
from typing import Any

import pytest

from spark_kafka_source import AIOConsumer, AIOProducer, KafkaAdmin, KafkaConsumer, KafkaProducer
from spark_kafka_source.consumer import unreachable_brokers
from spark_kafka_source.errors import (
    KafkaTimeoutError,
    LocalError,
    UnsupportedVersionError,
    error_named,
)
from spark_kafka_source.net import Running
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.producer.config import ProducerConfig
from spark_kafka_source.protocol import Versions
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.protocol.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
)
from spark_kafka_source.records import Codec
from spark_kafka_source.records.compression import decompress
from spark_kafka_source.testing.memory import TELEMETRY, Action, MemoryBroker
from tests.consumer.consumers import T0, T1, T2, consuming, eventually, poll_until
from tests.telemetry.payloads import values

pytestmark = pytest.mark.memory(versions=TELEMETRY, topics={"t": 1})

SILENT_SECONDS = 3_600
FOR_EVER: dict[str, Any] = {"request_timeout_ms": 10**7, "delivery_timeout_ms": 2 * 10**7}


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what was logged, but for the warning that the first answer is late."""
    late = unreachable_brokers.__name__
    return [each.getMessage() for each in caplog.records if each.name != late]


def address(broker: MemoryBroker) -> str:
    return f"{broker.address().host}:{broker.address().port}"


def wants(broker: MemoryBroker, *names: str, **more: Any) -> None:
    given: dict[str, Any] = {
        "subscription_id": 1,
        "push_interval_ms": 100,
        "telemetry_max_bytes": 1 << 20,
        "requested_metrics": list(names),
    }
    broker.cluster.telemetry = GetTelemetrySubscriptionsResponse(**given | more)


def pushes(broker: MemoryBroker) -> list[PushTelemetryRequest]:
    return broker.requests(PushTelemetryRequest)


@pytest.mark.usefixtures("patient")
def test_a_consumer_pushes_beside_its_polls_and_a_last_time_at_its_close(
    broker: MemoryBroker,
) -> None:
    wants(broker, "org.apache.kafka.consumer.fetch.manager.fetch.")
    with consuming(broker, T0) as consumer:
        poll_until(consumer, lambda: len(pushes(broker)) >= 3)
        known = consumer.client_instance_id()
    *others, last = [each.terminating for each in pushes(broker)]
    assert last
    assert not any(others)
    assert {each.client_instance_id for each in pushes(broker)} == {known}
    found = values(pushes(broker)[-1].metrics)
    assert {each.rpartition(".")[0] for each in found} == {
        "org.apache.kafka.consumer.fetch.manager.fetch",
        "org.apache.kafka.consumer.fetch.manager.fetch.latency",
        "org.apache.kafka.consumer.fetch.manager.fetch.size",
    }
    assert found["org.apache.kafka.consumer.fetch.manager.fetch.total"] > 0


@pytest.mark.usefixtures("patient")
def test_an_idle_producer_pushes(broker: MemoryBroker) -> None:
    wants(broker, "*")
    with KafkaProducer(bootstrap_servers=address(broker)) as producer:
        producer.send("t", b"x").result()
        eventually(lambda: len(pushes(broker)) >= 2)
        known = producer.client_instance_id()
    found = values(pushes(broker)[-1].metrics)
    assert found["org.apache.kafka.producer.record.send.total"] == 1
    assert pushes(broker)[-1].terminating
    assert pushes(broker)[-1].client_instance_id == known


@pytest.mark.parametrize("versions", [{}, dict.fromkeys(TELEMETRY, Versions(5, 9))])
def test_brokers_that_take_no_metrics_are_asked_for_nothing(
    caplog: pytest.LogCaptureFixture, versions: dict[int, Versions]
) -> None:
    with MemoryBroker(versions=versions) as broker:
        broker.create_topic("t")
        with consuming(broker, T0) as consumer:
            consumer.poll(100)
            with pytest.raises(UnsupportedVersionError, match="client instance id"):
                consumer.client_instance_id()
        with KafkaProducer(bootstrap_servers=address(broker)) as producer:
            producer.send("t", b"x").result()
            with pytest.raises(UnsupportedVersionError, match="client instance id"):
                producer.client_instance_id()
        asked = {type(each.request) for each in broker.seen}
    assert not asked & {GetTelemetrySubscriptionsRequest, PushTelemetryRequest}
    assert logged(caplog) == []


def test_a_client_that_pushes_nothing_by_its_setting_asks_nothing(broker: MemoryBroker) -> None:
    wants(broker, "*")
    with consuming(broker, T0, enable_metrics_push=False) as consumer:
        consumer.poll(100)
        with pytest.raises(LocalError, match="'enable_metrics_push' is false"):
            consumer.client_instance_id()
    dotted: dict[str, Any] = {"enable.metrics.push": "false"}
    with KafkaProducer(bootstrap_servers=address(broker), **dotted) as producer:
        producer.send("t", b"x").result()
        with pytest.raises(LocalError, match=r"'enable\.metrics\.push' is false"):
            producer.client_instance_id()
    assert not broker.requests(GetTelemetrySubscriptionsRequest)


def test_a_task_pushes_nothing(broker: MemoryBroker) -> None:
    wants(broker, "*")
    settings = Settings({"kafka.bootstrap.servers": address(broker)})
    with KafkaProducer.of(ProducerConfig.from_settings(settings)) as producer:
        producer.send("t", b"x").result()
    assert not broker.requests(GetTelemetrySubscriptionsRequest)


def test_the_id_is_known_before_the_first_poll(broker: MemoryBroker) -> None:
    with KafkaConsumer(bootstrap_servers=address(broker)) as consumer:
        known = consumer.client_instance_id()
        assert isinstance(known, uuid.UUID)
        assert known.int
        assert consumer.client_instance_id(0) == known
    with KafkaProducer(bootstrap_servers=address(broker)) as producer:
        assert producer.client_instance_id() not in {known, uuid.UUID(int=0)}


def test_an_admin_client_has_an_id_and_pushes_nothing(broker: MemoryBroker) -> None:
    wants(broker, "*")
    with KafkaAdmin(bootstrap_servers=address(broker)) as admin:
        known = admin.client_instance_id()
        assert admin.client_instance_id() == known
    assert len(broker.requests(GetTelemetrySubscriptionsRequest)) == 1
    assert pushes(broker) == []


@pytest.mark.parametrize("request_type", [GetTelemetrySubscriptionsRequest, MetadataRequest])
def test_a_silent_broker_gives_no_id_in_time(broker: MemoryBroker, request_type: type[Any]) -> None:
    broker.control(request_type, Action.SILENCE, times=None)
    began_seconds = time.monotonic()
    with (
        KafkaConsumer(bootstrap_servers=address(broker)) as consumer,
        KafkaProducer(bootstrap_servers=address(broker)) as producer,
    ):
        with pytest.raises(KafkaTimeoutError, match="within 50 ms"):
            consumer.client_instance_id(50)
        with pytest.raises(KafkaTimeoutError, match="within 50 ms"):
            producer.client_instance_id(0.05)
    assert time.monotonic() - began_seconds < 20


def test_a_silent_broker_does_not_hold_up_a_close(broker: MemoryBroker) -> None:
    wants(broker, "*", push_interval_ms=SILENT_SECONDS * 1_000)
    broker.control(PushTelemetryRequest, Action.SILENCE, times=None)
    with consuming(broker, T0, request_timeout_ms=10**7) as consumer:
        poll_until(consumer, lambda: consumer._telemetry.client_instance_id is not None)
    with KafkaProducer(bootstrap_servers=address(broker), **FOR_EVER) as producer:
        producer.send("t", b"x").result()
        producer.client_instance_id()
    eventually(lambda: len(pushes(broker)) == 2)
    assert [each.terminating for each in pushes(broker)] == [True, True]


@pytest.mark.usefixtures("patient")
def test_a_push_on_its_way_keeps_its_connection_for_the_last_one(broker: MemoryBroker) -> None:
    wants(broker, "*")
    held = broker.hold(PushTelemetryRequest)
    with KafkaProducer(bootstrap_servers=address(broker)) as producer:
        producer.send("t", b"x").result()
        broker.wait_for(PushTelemetryRequest)
        telemetry = producer._sender._telemetry
        assert telemetry is not None
        eventually(lambda: telemetry._is_asking)
        connections = broker.accepted()
        threading.Timer(0.1, held.release).start()
    assert [each.terminating for each in pushes(broker)] == [False, True]
    assert broker.accepted() == connections


def test_a_silent_broker_holds_up_no_records(broker: MemoryBroker) -> None:
    wants(broker, "*")
    broker.control(PushTelemetryRequest, Action.SILENCE, times=None)
    with (
        consuming(broker, T0, request_timeout_ms=10**7) as consumer,
        KafkaProducer(bootstrap_servers=address(broker), linger_ms=0, **FOR_EVER) as producer,
    ):
        poll_until(consumer, lambda: len(pushes(broker)) >= 1)
        producer.client_instance_id()
        eventually(lambda: len(pushes(broker)) >= 2)
        for number in range(20):
            producer.send("t", b"x").result(60)
            records = consumer.poll(60_000)
            assert [each.offset for each in records] == [number]


@pytest.mark.parametrize(
    "odd",
    [
        {"push_interval_ms": 1},
        {"push_interval_ms": 0},
        {"push_interval_ms": -5},
        {"accepted_compression_types": [99, -1, 5, 77]},
        {"telemetry_max_bytes": 0},
        {"telemetry_max_bytes": -(2**31)},
        {"requested_metrics": [f"org.{each}" for each in range(50_000)]},
        {"requested_metrics": ["", "", "*"]},
    ],
    ids=lambda odd: str(odd)[:40],
)
def test_odd_answers_make_no_client_busy(
    broker: MemoryBroker, odd: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    wants(broker, **{"requested_metrics": ["*"], **odd})
    assert_at_rest(broker)
    assert logged(caplog) == []


@pytest.mark.parametrize(
    "name",
    [
        *("UNKNOWN_SUBSCRIPTION_ID", "UNSUPPORTED_COMPRESSION_TYPE", "TELEMETRY_TOO_LARGE"),
        *("THROTTLING_QUOTA_EXCEEDED", "INVALID_RECORD", "NOT_CONTROLLER"),
    ],
)
@pytest.mark.parametrize("request_type", [GetTelemetrySubscriptionsRequest, PushTelemetryRequest])
def test_errors_without_end_make_no_client_busy(
    broker: MemoryBroker, name: str, request_type: type[Any]
) -> None:
    wants(broker, "*", accepted_compression_types=[4, 3, 2, 1])
    response: type[Any] = request_type.RESPONSE
    broker.control(request_type, response(error_code=error_named(name).code), times=None)
    assert_at_rest(broker)


@pytest.mark.parametrize("action", [Action.CLOSE, Action.LOSE, Action.SILENCE])
def test_lost_answers_make_no_client_busy(broker: MemoryBroker, action: Action) -> None:
    wants(broker, "*")
    broker.control(GetTelemetrySubscriptionsRequest, action, times=None)
    assert_at_rest(broker)


def assert_at_rest(broker: MemoryBroker) -> None:
    """Run a consumer and a producer for half a second, and count their requests and steps."""
    steps, go_on = count(), Running.go_on

    def counted(running: Running[Any]) -> None:
        next(steps)
        go_on(running)

    began_seconds = time.monotonic()
    with (
        pytest.MonkeyPatch.context() as patch,
        KafkaProducer(bootstrap_servers=address(broker)) as producer,
        consuming(broker, T0, fetch_max_wait_ms=10_000) as consumer,
    ):
        patch.setattr(Running, "go_on", counted)
        producer.send("t", b"x").result()
        poll_until(consumer, lambda: bool(broker.requests(GetTelemetrySubscriptionsRequest)))
        until_seconds = time.monotonic() + 0.5
        while time.monotonic() < until_seconds:
            consumer.poll(100)
        seconds = time.monotonic() - began_seconds
        seen = len(broker.seen)
    asked = len(broker.requests(GetTelemetrySubscriptionsRequest)) + len(pushes(broker))
    # Two clients, with a push and a question in half an interval at least.
    assert asked <= 2 * 2 * (seconds / 0.05 + 1)
    assert seen <= asked + 40
    assert next(steps) < 2_000


def test_a_payload_of_any_codec_is_readable(broker: MemoryBroker) -> None:
    for codec in Codec:
        broker.forget()
        wants(broker, "*", accepted_compression_types=[codec])
        with consuming(broker, T0) as consumer:
            poll_until(consumer, lambda: len(pushes(broker)) >= 1)
        (request, *_) = pushes(broker)
        assert request.compression_type == codec
        found = values(bytes(decompress(codec, request.metrics, 1 << 20)))
        assert "org.apache.kafka.consumer.poll.idle.ratio.avg" in found


def test_a_new_subscription_takes_the_place_of_the_old_one(broker: MemoryBroker) -> None:
    wants(broker, "org.apache.kafka.consumer.poll.")
    with consuming(broker, T0) as consumer:
        poll_until(consumer, lambda: len(pushes(broker)) >= 1)
        wants(broker, "org.apache.kafka.consumer.coordinator.commit.", subscription_id=2)
        poll_until(consumer, lambda: pushes(broker)[-1].subscription_id == 2)
    first, *_, last = pushes(broker)
    assert all(".poll." in each for each in values(first.metrics))
    assert all(".commit." in each for each in values(last.metrics))


def test_the_same_broker_gets_all_requests_and_another_one_when_it_is_gone() -> None:
    with MemoryBroker(3, versions=TELEMETRY) as broker:
        broker.create_topic("t", 3)
        wants(broker, "*")
        with consuming(broker, T0, T1, T2) as consumer:
            poll_until(consumer, lambda: len(pushes(broker)) >= 3)
            kinds = GetTelemetrySubscriptionsRequest, PushTelemetryRequest
            nodes = {each.node_id for each in broker.seen if isinstance(each.request, kinds)}
            assert len(nodes) == 1
            (gone,) = nodes
            broker.stop(gone)
            broker.forget()
            poll_until(consumer, lambda: len(pushes(broker)) >= 1)
        ids = {each.client_instance_id for each in pushes(broker)}
        assert len(ids) == 1


@pytest.mark.usefixtures("patient")
def test_clients_on_asyncio_push_as_well(broker: MemoryBroker) -> None:
    wants(broker, "*")

    async def use() -> set[uuid.UUID]:
        async with (
            AIOConsumer(bootstrap_servers=address(broker)) as consumer,
            AIOProducer(bootstrap_servers=address(broker)) as producer,
        ):
            consumer.assign([T0])
            await producer.send_and_wait("t", b"x")
            known = {await consumer.client_instance_id(), await producer.client_instance_id()}
            while {each.client_instance_id for each in pushes(broker)} != known:
                await consumer.poll(50)
            return known

    known = asyncio.run(use())
    last = {each.client_instance_id for each in pushes(broker) if each.terminating}
    assert last == known
