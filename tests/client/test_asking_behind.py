"""Pipelined requests to one broker: one connection, sessions, throttling, failures."""

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from spark_kafka_source.client import Asked, Broker, Cluster, KafkaClient
from spark_kafka_source.errors import ClosedError, ConnectionFailedError
from spark_kafka_source.net import (
    Address,
    AuthenticationError,
    ConnectionSettings,
    Deadline,
    RequestTimeoutError,
    Running,
    SecuritySettings,
    wait_for,
    wait_of_all,
)
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.protocol.messages.find_coordinator import FindCoordinatorRequest
from spark_kafka_source.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseTopic,
)
from spark_kafka_source.protocol.messages.metadata import (
    MetadataResponsePartition as MetadataPartition,
)
from spark_kafka_source.protocol.messages.produce import ProduceRequest
from spark_kafka_source.protocol.messages.sasl import SaslAuthenticateRequest
from spark_kafka_source.testing.memory import MemoryBroker
from spark_kafka_source.testing.memory.cluster import RefusedError
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import eventually
from tests.net.session_clock import sessions_by_own_clock
from tools.ports import LOOPBACK, black_hole, refused_port

pytestmark = pytest.mark.memory(nodes=2, topics={"t": 1})

T0 = TopicPartition("t", 0)
HOUR_MS = 3_600_000


def in_time() -> Deadline:
    return Deadline.after_ms(30_000)


def node(broker: MemoryBroker, node_id: int = 0) -> Broker:
    return Broker(node_id, broker.address(node_id))


def behind(client: KafkaClient, broker: Broker, most: int = 5) -> Asked[MetadataResponse]:
    return client.ask(MetadataRequest(topics=[]), broker, in_time(), most_in_flight=most)


def sent(asked: Asked[Any]) -> Asked[Any]:
    eventually(lambda: asked.advance() or asked.is_sent)
    assert asked.is_sent
    return asked


def several(
    broker: MemoryBroker, client: KafkaClient, to: Broker, count: int
) -> list[Asked[MetadataResponse]]:
    """Begin `count` requests on one connection. The broker has the first and holds its answer."""
    first = sent(behind(client, to))
    broker.wait_for(MetadataRequest)
    return [first, *(behind(client, to) for _ in range(count - 1))]


# -- one connection --------------------------------------------------------------------------------


def test_requests_share_a_connection_as_far_as_they_may(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    held = broker.hold(MetadataRequest)
    to = node(broker)
    assert not client.connections.has_room(to.address, 5), "there is no connection yet"
    asked = several(broker, client, to, 4)
    assert client.connections.has_room(to.address, 5)
    asked.append(behind(client, to))
    assert not client.connections.has_room(to.address, 5)
    assert client.connections.has_room(to.address, 6)
    assert not any(each.advance() for each in asked)
    held.release()
    for each in reversed(asked):
        assert isinstance(each.answer(), MetadataResponse)
    assert broker.accepted() == 1


def test_an_answer_that_another_request_received_is_not_waited_for(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    held, to = broker.hold(MetadataRequest), node(broker)
    first, second = several(broker, client, to, 2)
    running = [Running(client.answer_of(each)) for each in (first, second)]
    for each in running:
        each.go_on()
    held_again = broker.hold(MetadataRequest)
    held.release()

    def is_received() -> bool:
        running[1].go_on()
        return first.has_answer

    eventually(is_received)
    assert wait_of_all(running).until.expired, "the socket has nothing more to read"
    running[0].go_on()
    assert isinstance(running[0].result(), MetadataResponse)
    assert not wait_of_all(running).until.expired
    held_again.release()
    assert isinstance(second.answer(), MetadataResponse)


def test_what_another_request_has_read_in_vain_is_dry(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    held, to = broker.hold(MetadataRequest), node(broker)
    first, second = several(broker, client, to, 2)
    before = time.monotonic()
    assert not second.is_dry_since(before), "nobody has read"
    assert not first.advance()
    assert second.is_dry_since(before)
    assert not second.is_dry_since(time.monotonic() + 1)
    held.release()
    assert isinstance(second.answer(), MetadataResponse), "it reads the first answer, too"
    assert first.has_answer
    assert not first.is_dry_since(before)


def test_a_closed_connection_is_not_dry(broker: MemoryBroker, client: KafkaClient) -> None:
    broker.hold(MetadataRequest)
    first, second = several(broker, client, node(broker), 2)
    assert not first.advance()
    assert second.is_dry_since(0)
    first.give_up("tried")
    assert not second.is_dry_since(0), "it has an error to raise"


def test_a_request_without_an_answer_is_not_dry(broker: MemoryBroker, client: KafkaClient) -> None:
    broker.hold(MetadataRequest)
    to = node(broker)
    (first,) = several(broker, client, to, 1)
    one_way = client.ask(ProduceRequest(None, 0, 1_000, []), to, in_time(), most_in_flight=5)
    assert not first.advance()
    assert not one_way.is_dry_since(0)


def test_requests_stay_on_one_connection_whatever_else_is_asked(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    """On two connections, a broker could take the batches of a partition in another order."""
    held, to = broker.hold(MetadataRequest), node(broker)
    (first,) = several(broker, client, to, 1)
    alone = client.ask(MetadataRequest(topics=[]), to, in_time())
    assert isinstance(alone.answer(), MetadataResponse), "it has a connection to itself"
    second = sent(behind(client, to))
    assert second._connection is first._connection
    third = sent(behind(client, to, most=3))
    assert third._connection is first._connection
    assert not client.connections.has_room(to.address, 3), (
        "the idle connection is no room behind the others"
    )
    held.release()
    for each in (first, second, third):
        assert isinstance(each.answer(), MetadataResponse)


def test_one_more_than_may_be_gets_a_connection_of_its_own(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    held = broker.hold(MetadataRequest)
    asked = several(broker, client, node(broker), 2)
    another = behind(client, node(broker), most=2)
    assert isinstance(another.answer(), MetadataResponse), "the first connection is held"
    held.release()
    for each in asked:
        each.answer()
    assert broker.accepted() == 2


def test_a_request_by_itself_does_not_go_behind_others(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    held = broker.hold(MetadataRequest)
    asked = several(broker, client, node(broker), 2)
    found = client.ask(FindCoordinatorRequest("g"), node(broker), in_time(), max_version=3)
    assert found.answer()
    held.release()
    assert all(each.answer() for each in asked)


def test_what_waits_for_several_returns_once_one_is_here(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    held = broker.hold(MetadataRequest)
    asked = several(broker, client, node(broker), 3)
    client.run(wait_for(asked, Deadline.after_ms(1)))
    assert not any(each.advance() for each in asked)
    held.release()
    while not all(each.advance() for each in asked):
        waiting = [each for each in asked if not each.advance()]
        client.run(wait_for(waiting, in_time()))


def test_other_brokers_go_on_while_one_reads_nothing(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    broker.hold(MetadataRequest, node_id=0)
    several(broker, client, node(broker, 0), 5)
    for _ in range(3):
        assert behind(client, node(broker, 1)).answer()


# -- failures --------------------------------------------------------------------------------------


def test_a_connection_that_is_cut_fails_all_on_it_and_the_next_has_another(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    broker.hold(MetadataRequest)
    asked = several(broker, client, node(broker), 3)
    broker.hang_up(0)
    for each in asked:
        with pytest.raises(ConnectionFailedError):
            each.answer()
    assert not client.connections.has_room(node(broker).address, 5)
    assert behind(client, node(broker)).answer()


def test_a_request_that_is_given_up_ends_the_requests_behind_it(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    broker.hold(MetadataRequest)
    first, second, third = several(broker, client, node(broker), 3)
    second.give_up("nobody wants it any more")
    for each in (first, second, third):
        with pytest.raises(RequestTimeoutError, match="nobody wants it any more waiting for an an"):
            each.answer()
    assert client.history.is_suspect(broker.address())


def test_a_request_whose_time_is_up_takes_along_the_others(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    broker.hold(MetadataRequest)
    (first,) = several(broker, client, node(broker), 1)
    impatient = sent(behind(client, node(broker)))
    impatient.deadline = Deadline.after_ms(0)
    assert impatient.is_over()
    for each in (impatient, first):
        with pytest.raises(RequestTimeoutError, match="timed out waiting for an answer"):
            each.answer()


def test_one_that_is_dropped_closes_the_connection(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    broker.hold(MetadataRequest)
    first, second = several(broker, client, node(broker), 2)
    del second
    with pytest.raises(ConnectionFailedError, match="the connection is closed"):
        first.answer()


def test_a_broker_that_cannot_be_reached_is_told_by_the_answer(client: KafkaClient) -> None:
    with refused_port() as port:
        asked = behind(client, Broker(9, Address(LOOPBACK, port)))
        with pytest.raises(ConnectionFailedError):
            asked.answer()
    assert not asked.is_sent


def test_a_broker_that_says_nothing_is_not_waited_for(client: KafkaClient) -> None:
    with black_hole() as silent:
        asked = behind(client, Broker(9, silent))
        assert not asked.advance()
        assert asked.is_silent
        assert not asked.is_sent
        asked.give_up("it is enough")
        with pytest.raises(RequestTimeoutError, match="it is enough connecting"):
            asked.answer()


def test_a_client_that_is_closed_ends_all(broker: MemoryBroker, client: KafkaClient) -> None:
    broker.hold(MetadataRequest)
    asked = several(broker, client, node(broker), 2)
    client.close()
    for each in asked:
        with pytest.raises((ClosedError, ConnectionFailedError)):
            each.answer()
    with pytest.raises(ClosedError):
        behind(client, node(broker)).answer()


def test_without_acknowledgement_the_answer_is_none(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    request = ProduceRequest(None, 0, 1_000, [])
    asked = client.ask(request, node(broker), in_time(), most_in_flight=2, max_version=12)
    found: Any = asked.answer()
    assert found is None
    question = client.ask(MetadataRequest(topics=[]), node(broker), in_time())
    assert isinstance(question.answer(), MetadataResponse)
    assert broker.accepted() == 2, "the broker may be busy with the first request still"
    again = client.ask(request, node(broker), in_time(), most_in_flight=2, max_version=12)
    found = again.answer()
    assert found is None
    assert again._connection is asked._connection
    broker.wait_for(ProduceRequest, 2)
    assert broker.accepted() == 2


# -- quotas ----------------------------------------------------------------------------------------


def test_a_broker_over_its_quota_says_for_how_long_to_leave_it_alone(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    to = node(broker)
    assert client.connections.throttled_seconds(to.address) == 0.0
    broker.cluster.throttle_time_ms[MetadataRequest] = HOUR_MS
    behind(client, to).answer()
    assert 3_000 < client.connections.throttled_seconds(to.address) <= 3_600
    assert client.connections.throttled_seconds(node(broker, 1).address) == 0.0
    client.connections._throttled_until_seconds[to.address] = 1.0
    assert client.connections.throttled_seconds(to.address) == 0.0


# -- sessions (KIP-368) ----------------------------------------------------------------------------


def plain(said: list[bytes]) -> bytes | None:
    if said != [b"\0alice\0right"]:
        raise RefusedError("the password has expired")
    return None


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Return the clock of sessions."""
    return sessions_by_own_clock(monkeypatch)


@pytest.fixture
def secured(broker: MemoryBroker, clock: SimpleNamespace) -> Iterator[KafkaClient]:
    """Run a client with sessions of ten seconds, by the clock."""
    broker.cluster.mechanisms["PLAIN"] = plain
    broker.cluster.session_lifetime_ms = 10_000
    options = {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.username": "alice",
        "kafka.sasl.password": "right",
    }
    security = SecuritySettings.from_settings(Settings(options))
    with KafkaClient(broker.config(settings=ConnectionSettings(security=security))) as client:
        yield client


def logins(broker: MemoryBroker) -> int:
    return len(broker.requests(SaslAuthenticateRequest))


def test_with_requests_in_flight_a_session_that_is_due_takes_no_more_until_they_are_answered(
    broker: MemoryBroker, secured: KafkaClient, clock: SimpleNamespace
) -> None:
    to = node(broker)
    held = broker.hold(MetadataRequest)
    asked = several(broker, secured, to, 2)
    assert secured.connections.has_room(to.address, 5)
    clock.now += 9
    assert not secured.connections.has_room(to.address, 5)
    held.release()
    for each in asked:
        each.answer()
    assert logins(broker) == 1
    login = broker.hold(SaslAuthenticateRequest)
    renewing = behind(secured, to)
    assert not secured.connections.has_room(to.address, 5), "it authenticates anew"
    login.release()
    assert renewing.answer()
    assert logins(broker) == 2
    assert broker.accepted() == 1
    assert secured.connections.has_room(to.address, 5)


def test_a_session_that_is_over_ends_with_what_is_in_flight_and_the_next_has_a_connection_anew(
    broker: MemoryBroker, secured: KafkaClient, clock: SimpleNamespace
) -> None:
    to = node(broker)
    held = broker.hold(MetadataRequest)
    (asked,) = several(broker, secured, to, 1)
    clock.now += 11
    assert not secured.connections.has_room(to.address, 5)
    held.release()
    assert asked.answer()
    assert behind(secured, to).answer()
    assert broker.accepted() == 2


def test_credentials_that_are_not_good_any_more_are_told_by_the_answer(
    broker: MemoryBroker, secured: KafkaClient, clock: SimpleNamespace
) -> None:
    behind(secured, node(broker)).answer()

    def withdrawn(_: list[bytes]) -> bytes | None:
        raise RefusedError("the password has expired")

    broker.cluster.mechanisms["PLAIN"] = withdrawn
    clock.now += 9
    with pytest.raises(AuthenticationError, match="the password has expired"):
        behind(secured, node(broker)).answer()


# -- leaders named in answers (KIP-951) ------------------------------------------------------------


def cluster_of(leader_epoch: int) -> Cluster:
    cluster = Cluster()
    partition = MetadataPartition(0, 0, 1, leader_epoch, [1], [1])
    cluster.update(MetadataResponse(topics=[MetadataResponseTopic(0, "t", partitions=[partition])]))
    return cluster


def test_a_newer_leader_is_learnt_with_its_address() -> None:
    cluster, newer = cluster_of(4), Broker(7, Address("b", 9))
    before = cluster.topics["t"]
    assert cluster.learn_leader(T0, 5, newer)
    assert cluster.leader(T0) == (newer, 5)
    assert before.partitions[0].leader_id == 1, "what others hold does not change"
    assert not cluster.missing([T0])


@pytest.mark.parametrize(
    ("where", "leader_epoch"),
    [(T0, 4), (T0, 3), (T0, -1), (TopicPartition("t", 1), 9), (TopicPartition("u", 0), 9)],
)
def test_what_is_not_newer_or_not_known_is_not_learnt(
    where: TopicPartition, leader_epoch: int
) -> None:
    cluster = cluster_of(4)
    assert not cluster.learn_leader(where, leader_epoch, Broker(7, Address("b", 9)))
    assert 7 not in cluster.brokers
    assert cluster.topics["t"].partitions[0].leader_id == 1


def test_topics_are_forgotten_one_by_one() -> None:
    cluster = cluster_of(4)
    cluster.learn_leader(T0, 5, Broker(7, Address("b", 9)))
    cluster.forget_leaders_of(["u"])
    assert not cluster.missing([T0])
    cluster.forget_leaders_of(["t"])
    assert cluster.missing([T0]) == ["t"]
