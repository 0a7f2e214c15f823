"""Silent brokers: the client asks others, and takes new roles from their answers."""

from typing import Any

import pytest

from spark_kafka_source.client import Asked, Broker, CoordinatorKey, KafkaClient, asked
from spark_kafka_source.client import client as client_module
from spark_kafka_source.client import race as race_module
from spark_kafka_source.errors import BootstrapError, KafkaTimeoutError
from spark_kafka_source.net import (
    Address,
    ConnectionSettings,
    Deadline,
    RequestTimeoutError,
    Running,
    pause,
    readable,
)
from spark_kafka_source.protocol.messages.find_coordinator import FindCoordinatorRequest
from spark_kafka_source.protocol.messages.groups import OffsetFetchRequest
from spark_kafka_source.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.testing.memory import Action, MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition
from tests.client.clock import Clock, deadlines_by
from tests.consumer.consumers import longer_and_longer
from tools.ports import LOOPBACK, black_hole, dropping_port

T0 = TopicPartition("t", 0)
GROUP = CoordinatorKey.of_group("g")
HOUR = ConnectionSettings(
    request_timeout_ms=3_600_000, socket_connection_setup_timeout_ms=3_600_000
)
pytestmark = pytest.mark.memory(
    nodes=3,
    topics={"t": 3},
    coordinators={"g": 2},
    client={"settings": HOUR, "default_api_timeout_ms": 3_600_000},
)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker counts as silent after hundredths of a second. Other timeouts are hours."""
    monkeypatch.setattr(asked, "LONGEST_SILENCE_MS", 30)
    monkeypatch.setattr(client_module, "LONGEST_SILENCE_MS", 30)
    monkeypatch.setattr(race_module, "LONGEST_SILENCE_MS", 200)
    monkeypatch.setattr(race_module, "_TURN_MS", 20)


def topics(client: KafkaClient, deadline_ms: int = 3_600_000) -> list[Any]:
    return client.run(client.topics(["t"], Deadline.after_ms(deadline_ms)))


# -- any broker ------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [0, 1])
def test_a_bootstrap_address_that_says_nothing_is_passed_over(
    broker: MemoryBroker, order: int
) -> None:
    with black_hole() as silent, dropping_port() as dropping:
        servers = [silent, Address(LOOPBACK, dropping), broker.address()]
        servers = servers[order:] + servers[:order]
        config = broker.config(settings=HOUR, bootstrap_servers=tuple(servers))
        with KafkaClient(config) as client:
            for _ in range(10):  # The client tries brokers in random order.
                client.cluster.brokers = {}
                assert topics(client)
            assert client.history.was_reached


def test_what_failed_once_is_the_last_to_be_tried(broker: MemoryBroker) -> None:
    with black_hole() as silent:
        servers = (silent, broker.address())
        config = broker.config(settings=HOUR, bootstrap_servers=servers)
        with KafkaClient(config) as client:
            while not broker.requests(MetadataRequest) or not client.history.is_suspect(silent):
                client.cluster.brokers = {}
                client.connections.close_all()
                assert topics(client)
            for _ in range(10):
                assert client._candidates(None)[-1] == silent


def test_a_known_broker_that_froze_is_not_waited_for(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    topics(client)
    broker.control(MetadataRequest, Action.SILENCE, node_id=0, times=None)
    topics(client)
    assert {each.node_id for each in broker.seen if isinstance(each.request, MetadataRequest)} > {0}


def test_an_answer_that_comes_late_still_counts(broker: MemoryBroker, client: KafkaClient) -> None:
    """The client does not give up a slow broker while no other broker has answered."""
    topics(client)
    for node_id in (1, 2):
        broker.control(MetadataRequest, Action.SILENCE, node_id=node_id, times=None)
    held = broker.hold(MetadataRequest, node_id=0)
    asked_of = client.ask(
        MetadataRequest(topics=[]), client.cluster.brokers[0], Deadline.after_ms(20_000)
    )
    assert not asked_of.advance()
    held.release()
    assert asked_of.answer().brokers


def test_where_all_are_silent_each_is_named(broker: MemoryBroker) -> None:
    with black_hole() as one, black_hole() as other:
        config = broker.config(settings=HOUR, bootstrap_servers=(one, other))
        for timeout_ms in longer_and_longer(500):
            with KafkaClient(config) as client, pytest.raises(BootstrapError) as caught:
                topics(client, deadline_ms=timeout_ms)
            if len(caught.value.failures) == 2:
                break
    assert {text.split(": ")[0] for text in caught.value.failures} == {str(one), str(other)}


def test_without_any_time_an_address_is_named_all_the_same(broker: MemoryBroker) -> None:
    with KafkaClient(broker.config()) as client, pytest.raises(BootstrapError) as caught:
        topics(client, deadline_ms=0)
    (failure,) = caught.value.failures
    # The connection may exist already: another thread opens it.
    assert failure.startswith(f"{broker.address()}: timed out ")


def test_a_request_that_changes_something_goes_to_one_broker_only(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    topics(client)
    broker.forget()
    broker.control(MetadataRequest, Action.SILENCE, node_id=0, times=None)
    deadline = Deadline.after_ms(20_000)
    broker_asked = client.run(client.responsive_broker(deadline))
    client.run(client.send(FindCoordinatorRequest("g"), broker_asked, deadline, max_version=3))
    (seen,) = [each for each in broker.seen if isinstance(each.request, FindCoordinatorRequest)]
    assert seen.node_id != 0


def test_a_throttled_broker_is_asked_last(broker: MemoryBroker, client: KafkaClient) -> None:
    topics(client)
    client.connections._throttled_until_seconds[client.cluster.brokers[0].address] = float("inf")
    broker.forget()
    for _ in range(5):
        topics(client)
    asked_of = {each.node_id for each in broker.seen if isinstance(each.request, MetadataRequest)}
    assert asked_of <= {1, 2}


# -- a broker with a role --------------------------------------------------------------------------


def asked_for_offsets(client: KafkaClient, leader: Broker) -> Asked[Any]:
    request = ListOffsetsRequest(topics=[ListOffsetsTopic("t", [ListOffsetsPartition(0, -1, -1)])])
    return client.ask(request, leader, Deadline.after_ms(3_600_000))


def list_offsets(client: KafkaClient, leader: Broker) -> Any:
    asked_of = asked_for_offsets(client, leader)
    return client.run(client.answer_of(asked_of, lambda: client.still_leads(leader, [T0])))


def test_a_leader_that_froze_is_left_once_another_leads(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    topics(client)
    leader = client.cluster.leader(T0)[0]
    broker.control(ListOffsetsRequest, Action.SILENCE, times=None)

    def moved_on_the_second_look(_: Any) -> Action:
        broker.move_leader(T0, 1)
        return Action.HANDLE

    broker.control(MetadataRequest, Action.HANDLE)
    broker.control(MetadataRequest, moved_on_the_second_look)
    with pytest.raises(RequestTimeoutError, match="another broker has its role"):
        list_offsets(client, leader)
    looked = [each.node_id for each in broker.seen if isinstance(each.request, MetadataRequest)]
    assert leader.node_id not in looked[1:], "the silent one is not asked about itself"
    assert client.cluster.leader(T0)[0].node_id == 1
    assert client.history.is_suspect(leader.address)


def test_where_nobody_can_be_asked_about_the_role_the_wait_goes_on(
    broker: MemoryBroker, client: KafkaClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics(client)
    broker.control(ListOffsetsRequest, Action.SILENCE)
    deadlines_by(clock := Clock(), monkeypatch)
    answer = Running(client.answer_of(asked_for_offsets(client, client.cluster.leader(T0)[0])))
    for _ in range(3):
        answer.go_on()
        assert answer.wait.until.remaining_seconds() == pytest.approx(0.03), "no hot loop"
        clock.now_seconds += 0.04
    assert not answer.is_done


@pytest.mark.parametrize("keeps_role", [True, False])
def test_an_answer_that_comes_while_the_others_are_asked_counts(
    broker: MemoryBroker, client: KafkaClient, *, keeps_role: bool
) -> None:
    topics(client)
    held = broker.hold(ListOffsetsRequest)
    asked_of = asked_for_offsets(client, client.cluster.leader(T0)[0])

    async def still() -> bool:
        held.release()
        assert readable([asked_of], Deadline.after_ms(20_000))
        return keeps_role

    answer = client.run(client.answer_of(asked_of, still))
    assert [each.name for each in answer.topics] == ["t"]


def test_a_leader_that_is_slow_keeps_its_request(broker: MemoryBroker, client: KafkaClient) -> None:
    topics(client)
    leader = client.cluster.leader(T0)[0]
    held = broker.hold(ListOffsetsRequest)
    looks = 0

    def third_time(_: Any) -> Action:
        nonlocal looks
        looks += 1
        if looks == 3:
            held.release()
        return Action.HANDLE

    broker.control(MetadataRequest, third_time, times=None)
    assert list_offsets(client, leader).topics
    assert len(broker.requests(ListOffsetsRequest)) == 1


def test_a_leader_that_nobody_else_can_tell_of_keeps_its_request() -> None:
    with MemoryBroker() as broker:
        broker.create_topic("t")
        with KafkaClient(broker.config(settings=HOUR)) as client:
            topics(client)
            leader = client.cluster.leader(T0)[0]
            assert client.run(client.still_leads(leader, [T0]))


def test_a_coordinator_that_froze_is_left_once_the_group_has_another(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    topics(client)
    broker.control(OffsetFetchRequest, Action.SILENCE, node_id=2, times=None)

    looks = 0

    def moved_on_the_second_look(_: Any) -> Action:
        nonlocal looks
        # Before the first look-up the client may ask several brokers if one is slow.
        looks += bool(broker.requests(OffsetFetchRequest))
        if looks == 2:
            broker.cluster.coordinators["g"] = 1
        return Action.HANDLE

    broker.control(FindCoordinatorRequest, moved_on_the_second_look, times=None)

    async def attempt(deadline: Deadline) -> Any:
        return await client.send_to_coordinator(
            OffsetFetchRequest("g"), GROUP, deadline, max_version=7
        )

    client.run(client.retrying("OffsetFetch", attempt))
    asked_of = [
        each.node_id for each in broker.seen if isinstance(each.request, OffsetFetchRequest)
    ]
    assert asked_of == [2, 1]


def test_the_time_for_first_contact_is_over_once_any_broker_answered(broker: MemoryBroker) -> None:
    """A client that only asks a coordinator knows no brokers, but has reached one."""
    settings = ConnectionSettings(request_timeout_ms=50)
    with KafkaClient(broker.config(settings=settings)) as client:
        client.run(client.coordinator(GROUP, Deadline.after_ms(20_000)))
        broker.control(OffsetFetchRequest, Action.SILENCE, times=2)

        async def attempt(deadline: Deadline) -> Any:
            return await client.send_to_coordinator(
                OffsetFetchRequest("g"), GROUP, deadline, max_version=7
            )

        client.run(client.retrying("OffsetFetch", attempt, timeout_ms=20_000))
    # There are more if an answer takes longer than that.
    assert len(broker.requests(OffsetFetchRequest)) >= 3


def test_a_broker_that_answers_amid_the_last_try_of_first_contact_is_reached(
    broker: MemoryBroker,
) -> None:
    """It answers what it speaks, and no time is left for the request itself."""
    settings = ConnectionSettings(request_timeout_ms=1)
    with KafkaClient(broker.config(settings=settings)) as client:
        tries = 0

        async def attempt(deadline: Deadline) -> str:
            nonlocal tries
            tries += 1
            if tries == 1:
                client.history.answered((LOOPBACK, 9092))
                await pause(deadline.remaining_seconds())
                raise BootstrapError(["timed out before the request was sent"])
            return "answer"

        assert client.run(client.retrying("Metadata", attempt, timeout_ms=20_000)) == "answer"


def test_the_time_is_up_all_the_same(broker: MemoryBroker, client: KafkaClient) -> None:
    client.run(client.coordinator(GROUP, Deadline.after_ms(20_000)))
    broker.control(OffsetFetchRequest, Action.SILENCE, times=None)

    async def attempt(deadline: Deadline) -> Any:
        return await client.send_to_coordinator(
            OffsetFetchRequest("g"), GROUP, deadline, max_version=7
        )

    with pytest.raises(KafkaTimeoutError):
        client.run(client.retrying("OffsetFetch", attempt, timeout_ms=200))


def test_what_one_client_learns_its_siblings_know(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    with client.sibling() as sibling:
        topics(client)
        client.run(client.coordinator(GROUP, Deadline.after_ms(20_000)))
        broker.forget()
        sibling.run(sibling.leaders([T0], Deadline.after_ms(20_000)))
        sibling.run(sibling.coordinator(GROUP, Deadline.after_ms(20_000)))
        assert not broker.seen
