"""Requests in flight: their number, their brokers, TLS, and a broker that does not read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_kafka_source.producer import KafkaProducer
from spark_kafka_source.protocol.messages.produce import ProduceRequest
from spark_kafka_source.protocol.messages.sasl import SaslAuthenticateRequest
from spark_kafka_source.testing.memory import MemoryBroker
from tests.client.test_asking_behind import plain
from tests.consumer.consumers import eventually
from tests.net.session_clock import sessions_by_own_clock
from tests.producer.test_sender import Steps
from tests.producer.writing import IN_TIME, in_flight, producing, values
from tools.certificates import Certified, authority, certified_by
from tools.ports import LOOPBACK

MIB = 1 << 20


@pytest.fixture
def two() -> Iterator[MemoryBroker]:
    """Run two nodes. Each leads one partition of topic t."""
    with MemoryBroker(2) as broker:
        broker.create_topic("t", 2)
        yield broker


def known(producer: KafkaProducer, *partitions: int) -> None:
    """Make the producer known to the leaders, so that several requests may be in flight."""
    for each in partitions:
        producer.send("t", b"", partition=each).result(IN_TIME)


def flights(producer: KafkaProducer, node_id: int) -> int:
    return sum(each.broker.node_id == node_id for each in list(producer._sender._requests))


@pytest.mark.parametrize("most", [1, 2, 5])
def test_as_many_are_in_flight_to_a_broker_as_may_be(two: MemoryBroker, most: int) -> None:
    settings = {"batch_size": 1, "max_in_flight_requests_per_connection": most}
    with producing(two, **settings) as producer:
        known(producer, 0, 1)
        held = [two.hold(ProduceRequest, node_id=each) for each in (0, 1)]
        futures = [producer.send("t", b"%d" % each, partition=each % 2) for each in range(20)]
        in_flight(producer, 2 * most)
        assert (flights(producer, 0), flights(producer, 1)) == (most, most)
        for each in held:
            each.release()
        assert [each.result(IN_TIME).offset for each in futures] == [
            1 + each // 2 for each in range(20)
        ]


def test_without_idempotence_more_than_five_may_be_in_flight(two: MemoryBroker) -> None:
    settings: dict[str, Any] = {
        "batch_size": 1,
        "enable_idempotence": False,
        "max_in_flight_requests_per_connection": 8,
    }
    with producing(two, **settings) as producer:
        known(producer, 0)
        held = two.hold(ProduceRequest)
        for _ in range(20):
            producer.send("t", b"", partition=0)
        in_flight(producer, 8)
        held.release()
        producer.flush(IN_TIME)


def test_other_brokers_get_requests_while_one_reads_nothing(two: MemoryBroker) -> None:
    """The broker's socket is full. Only requests to this broker wait."""
    two.cluster.max_message_bytes = 1 << 30
    settings = {"send_buffer_bytes": 64 * 1024, "batch_size": MIB, "buffer_memory": 64 * MIB}
    with producing(two, **settings) as producer:
        known(producer, 0, 1)
        held = two.hold(ProduceRequest, node_id=0)
        futures = [producer.send("t", bytes(MIB - 200), partition=0) for _ in range(8)]
        eventually(lambda: any(each.asked.has_unsent for each in producer._sender._requests))
        # From now on the broker reads nothing: a read would wake the producer.
        two.wait_for(ProduceRequest, 3)
        Steps(producer).are_few()
        for number in range(20):
            assert producer.send("t", b"", partition=1).result(IN_TIME).offset == 1 + number
        assert not any(each.done() for each in futures)
        held.release()
        assert [each.result(IN_TIME).offset for each in futures] == list(range(1, 9))
    assert len(values(two.cluster.topics["t"].logs[0])) == 9


def test_a_connection_is_made_once_for_many_batches(two: MemoryBroker) -> None:
    with producing(two, batch_size=1) as producer:
        producer.partitions_for("t")
        before = two.accepted(1)
        futures = [producer.send("t", b"", partition=1) for _ in range(30)]
        assert [each.result(IN_TIME).offset for each in futures] == list(range(30))
        # The connection of the producer's thread, and perhaps one for the producer id.
        assert two.accepted(1) - before <= 2


def test_over_tls_large_and_small_batches_keep_their_order(tmp_path: Path) -> None:
    ca: Certified = authority()
    server = certified_by(ca, LOOPBACK)
    with MemoryBroker(tls=server.server_context(tmp_path)) as broker:
        (log,) = broker.create_topic("t")
        settings = {
            "security_protocol": "SSL",
            "ssl_truststore_type": "PEM",
            "ssl_truststore_certificates": ca.certificate_pem,
            "batch_size": 1,
        }
        sizes = [1, 700_000, 3, 1_000_000, 5, 60_000, 7, 200_000]
        with producing(broker, **settings) as producer:
            known(producer, 0)
            futures = [producer.send("t", bytes(each)) for each in sizes]
            assert [each.result(IN_TIME).offset for each in futures] == list(range(1, 9))
        assert [len(each or b"") for each in values(log)] == [0, *sizes]


def test_a_session_is_renewed_between_requests_and_nothing_is_lost(
    two: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = sessions_by_own_clock(monkeypatch)
    two.cluster.mechanisms["PLAIN"] = plain
    two.cluster.session_lifetime_ms = 10_000
    settings = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_username": "alice",
        "sasl_password": "right",
        "batch_size": 1,
    }
    with producing(two, **settings) as producer:
        known(producer, 0)
        for round_ in range(3):
            held = two.hold(ProduceRequest, node_id=0)
            logins = len(two.requests(SaslAuthenticateRequest))
            futures = [producer.send("t", b"", partition=0) for _ in range(3)]
            in_flight(producer, 3)
            clock.now += 9  # The renewal is due with requests in flight.
            futures += [producer.send("t", b"", partition=0) for _ in range(3)]
            held.release()
            expected = [1 + 6 * round_ + each for each in range(6)]
            assert [each.result(IN_TIME).offset for each in futures] == expected
            assert len(two.requests(SaslAuthenticateRequest)) > logins
