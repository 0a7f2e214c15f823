"""Requests by role: leaders, coordinators, throttling, idle connections, `close`."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from spark_kafka_source.client import (
    Broker,
    Cluster,
    CoordinatorKey,
    CoordinatorKind,
    KafkaClient,
    connections,
)
from spark_kafka_source.denials import Access
from spark_kafka_source.errors import (
    BrokerError,
    ClosedError,
    ConnectionFailedError,
    KafkaError,
    KafkaTimeoutError,
    error_code,
    error_named,
)
from spark_kafka_source.net import Address, ConnectionSettings, Deadline
from spark_kafka_source.protocol.messages.api_versions import ApiVersionsRequest
from spark_kafka_source.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from spark_kafka_source.protocol.messages.groups import OffsetFetchRequest
from spark_kafka_source.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.testing.memory import ONE_TRY, Action, MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition
from tests.client.clock import Clock, deadlines_by
from tests.consumer.consumers import eventually
from tools.ports import LOOPBACK, refused_port

pytestmark = pytest.mark.memory(nodes=3, topics={"t": 3})

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
GROUP = CoordinatorKey.of_group("g")
TRANSACTION = CoordinatorKey.of_transaction("g")


def leader(client: KafkaClient, where: TopicPartition) -> int:
    """Return the leader's node id, looked up as for any request."""

    async def attempt(deadline: Deadline) -> int:
        return (await client.leaders([where], deadline))[where][0].node_id

    return client.run(client.retrying(f"leader of {where}", attempt))


def ask_leader(client: KafkaClient, where: TopicPartition) -> int:
    """Return the offset in the leader's answer, with retries by the errors' remedies."""

    async def attempt(deadline: Deadline) -> int:
        broker, leader_epoch = (await client.leaders([where], deadline))[where]
        partition = ListOffsetsPartition(where.partition, leader_epoch, -1)
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(where.topic, [partition])])
        (found,) = (await client.send(request, broker, deadline)).topics[0].partitions
        if found.error_code:
            raise BrokerError(error_code(found.error_code), f"ListOffsets of {where}")
        return found.offset

    return client.run(client.retrying(f"ListOffsets of {where}", attempt))


def coordinator(client: KafkaClient, key: CoordinatorKey = GROUP) -> int:
    async def attempt(deadline: Deadline) -> int:
        return (await client.coordinator(key, deadline)).node_id

    return client.run(client.retrying("FindCoordinator", attempt, timeout_ms=60_000))


# -- leaders ---------------------------------------------------------------------------------------


def test_leaders_are_asked_for_once(broker: MemoryBroker, client: KafkaClient) -> None:
    assert [leader(client, TopicPartition("t", each)) for each in (0, 1, 2)] == [0, 1, 2]
    assert len(broker.requests(MetadataRequest)) == 1


def test_topics_are_not_created_by_asking_for_them(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    leader(client, T0)
    assert not any(each.allow_auto_topic_creation for each in broker.requests(MetadataRequest))


def test_a_leader_that_moved_is_looked_up_and_asked(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    assert ask_leader(client, T0) == 0
    broker.move_leader(T0, 2)
    assert ask_leader(client, T0) == 0
    asked = [seen.node_id for seen in broker.seen if isinstance(seen.request, ListOffsetsRequest)]
    assert asked == [0, 0, 2]
    assert len(broker.requests(MetadataRequest)) == 2


def test_a_leader_that_died_is_looked_up_and_its_successor_asked(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    assert ask_leader(client, T1) == 0
    broker.stop(1)
    broker.move_leader(T1, 2)
    assert ask_leader(client, T1) == 0


def test_a_partition_without_a_leader_is_waited_for(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    broker.move_leader(T0, 7)
    broker.control(MetadataRequest, Action.HANDLE)

    def elected(_: Any) -> Action:
        broker.move_leader(T0, 1)
        return Action.HANDLE

    broker.control(MetadataRequest, elected)
    assert leader(client, T0) == 1
    assert len(broker.requests(MetadataRequest)) == 2


def test_a_topic_that_does_not_come_is_named(broker: MemoryBroker) -> None:
    with (
        KafkaClient(broker.config(**ONE_TRY)) as client,
        pytest.raises(KafkaTimeoutError, match=r"Metadata of x-0: UNKNOWN_TOPIC_OR_PARTITION"),
    ):
        leader(client, TopicPartition("x", 0))


def test_old_metadata_is_asked_for_again(broker: MemoryBroker) -> None:
    with KafkaClient(broker.config(metadata_max_age_ms=0)) as client:
        leader(client, T0)
        leader(client, T0)
    assert len(broker.requests(MetadataRequest)) == 2


# -- coordinators ----------------------------------------------------------------------------------


def test_a_coordinator_is_found_once(broker: MemoryBroker, client: KafkaClient) -> None:
    broker.cluster.coordinators["g"] = 2
    assert coordinator(client) == 2
    assert coordinator(client) == 2
    (request,) = broker.requests(FindCoordinatorRequest)
    assert (request.key, request.key_type) == ("g", 0)


def test_a_group_and_a_transactional_id_of_one_name_have_coordinators_of_their_own(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    broker.cluster.coordinators["g"] = 2
    broker.cluster.transaction_coordinators["g"] = 1
    found = [coordinator(client, key) for key in (GROUP, TRANSACTION, GROUP, TRANSACTION)]
    assert found == [2, 1, 2, 1]
    assert [each.key_type for each in broker.requests(FindCoordinatorRequest)] == [0, 1]


def test_coordinators_of_several_transactional_ids_are_learnt_at_once(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    broker.cluster.transaction_coordinators.update(g=1, h=2)
    deadline = Deadline.after_ms(20_000)
    client.run(client.learn_coordinators(CoordinatorKind.TRANSACTION, ["g", "h"], deadline))
    assert coordinator(client, TRANSACTION) == 1
    assert coordinator(client, CoordinatorKey.of_transaction("h")) == 2
    (request,) = broker.requests(FindCoordinatorRequest)
    assert request.coordinator_keys == ["g", "h"]
    assert coordinator(client, GROUP) == 0


def test_a_coordinator_that_another_thread_forgets_at_once_is_still_the_answer(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    class Forgetful(dict[CoordinatorKey, Broker]):
        def __setitem__(self, key: CoordinatorKey, found: Broker) -> None:
            """Simulate another thread's `recover` right after this."""

    client.cluster.coordinators = Forgetful()
    broker.cluster.coordinators["g"] = 2
    assert coordinator(client) == 2


@pytest.mark.parametrize(
    ("name", "found_again"),
    [
        ("NOT_COORDINATOR", 1),
        ("COORDINATOR_NOT_AVAILABLE", 1),
        ("COORDINATOR_LOAD_IN_PROGRESS", 0),
    ],
)
def test_a_coordinator_is_found_again_where_the_error_says_so(
    broker: MemoryBroker, client: KafkaClient, name: str, found_again: int
) -> None:
    errors = [BrokerError(error_named(name), "OffsetFetch of group 'g'")]

    async def attempt(deadline: Deadline) -> Broker:
        found = await client.coordinator(GROUP, deadline)
        if errors:
            raise errors.pop()
        return found

    client.run(client.retrying("OffsetFetch", attempt))
    assert len(broker.requests(FindCoordinatorRequest)) == 1 + found_again


def test_a_coordinator_that_cannot_be_reached_is_looked_for_again(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    broker.cluster.coordinators["g"] = 2
    coordinator(client)
    broker.stop(2)
    broker.cluster.coordinators["g"] = 1

    async def attempt(deadline: Deadline) -> int:
        found = await client.coordinator(GROUP, deadline)
        await client.send(OffsetFetchRequest("g"), found, deadline, max_version=7)
        return found.node_id

    assert client.run(client.retrying("OffsetFetch", attempt)) == 1


def test_no_coordinator_yet_is_waited_for(broker: MemoryBroker, client: KafkaClient) -> None:
    broker.control(FindCoordinatorRequest, error_named("COORDINATOR_NOT_AVAILABLE"), times=2)
    assert coordinator(client) == 0
    assert len(broker.requests(FindCoordinatorRequest)) == 3


def test_no_right_to_a_group_is_told_at_once_with_the_brokers_own_words(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    error = error_named("GROUP_AUTHORIZATION_FAILED")
    broker.control(FindCoordinatorRequest, FindCoordinatorResponse(0, error.code, "ask the owner"))
    said = r"group 'g': GROUP_AUTHORIZATION_FAILED.*ask the owner. The user needs READ on group 'g'"
    with pytest.raises(BrokerError, match=said):
        coordinator(client)


def test_no_right_to_a_transactional_id_names_it(broker: MemoryBroker, client: KafkaClient) -> None:
    broker.control(FindCoordinatorRequest, error_named("TRANSACTIONAL_ID_AUTHORIZATION_FAILED"))
    with pytest.raises(BrokerError, match="needs WRITE on transactional id 'g'"):
        coordinator(client, TRANSACTION)


def test_no_right_to_a_topic_names_what_its_client_wants_of_it(broker: MemoryBroker) -> None:
    broker.control(MetadataRequest, error_named("TOPIC_AUTHORIZATION_FAILED"), times=None)
    for access, right in ((Access.READ, "READ"), (Access.WRITE, "WRITE")):
        with (
            KafkaClient(broker.config(), Cluster(access)) as client,
            pytest.raises(BrokerError, match=f"the user needs {right} on topic 't'"),
        ):
            leader(client, T0)


def test_a_coordinator_at_an_address_of_no_use(broker: MemoryBroker) -> None:
    nowhere = FindCoordinatorResponse(node_id=9, host="", port=-1)
    broker.control(FindCoordinatorRequest, nowhere, times=None)

    with KafkaClient(broker.config(**ONE_TRY)) as client:

        async def attempt(deadline: Deadline) -> object:
            return await client.send(
                OffsetFetchRequest("g"), await client.coordinator(GROUP, deadline), deadline
            )

        with pytest.raises(KafkaTimeoutError, match="-1 is not a port number"):
            client.run(client.retrying("OffsetFetch", attempt))


# -- several brokers at once -----------------------------------------------------------------------


def test_each_broker_is_asked_and_the_failure_of_one_is_its_own(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    leader(client, T0)
    with refused_port() as port:
        gone = Broker(9, Address(LOOPBACK, port))
        brokers = [*client.cluster.brokers.values(), gone]
        broker.control(MetadataRequest, Action.CLOSE, node_id=1)
        answers = client.run(
            client.send_to_each(
                {each: MetadataRequest(topics=[]) for each in brokers}, Deadline.after_ms(30_000)
            )
        )
    failed = {each.node_id for each, answer in answers.items() if isinstance(answer, KafkaError)}
    assert set(answers) == set(brokers)
    assert failed == {1, 9}


# -- throttling ------------------------------------------------------------------------------------


def test_a_throttled_broker_is_left_alone_for_so_long(
    broker: MemoryBroker, client: KafkaClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KIP-219: the broker answers at once. The client then pauses, but only for this broker."""
    clock = Clock()
    monkeypatch.setattr(connections, "time", SimpleNamespace(monotonic=clock.monotonic))
    deadlines_by(clock, monkeypatch)
    monkeypatch.setattr(client, "_block", clock.block)
    broker.cluster.throttle_time_ms[ListOffsetsRequest] = 1_500
    ask_leader(client, T0)
    ask_leader(client, T1)
    assert clock.pauses == []
    ask_leader(client, T0)
    assert clock.pauses == [1.5]
    clock.now_seconds += 1
    ask_leader(client, T1)
    assert clock.pauses == [1.5]
    ask_leader(client, T1)
    assert clock.pauses == [1.5, 1.5]


def test_throttling_beyond_the_deadline_is_a_timeout_and_nothing_is_sent(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    broker.cluster.throttle_time_ms[MetadataRequest] = 3_600_000
    leader(client, T0)
    node = client.cluster.brokers[0]
    for _ in range(2):
        with pytest.raises(KafkaTimeoutError):
            client.run(client.send(MetadataRequest(topics=[]), node, Deadline.after_ms(20)))
    assert len(broker.requests(MetadataRequest)) == 1


# -- connections -----------------------------------------------------------------------------------


def test_one_connection_a_broker(broker: MemoryBroker, client: KafkaClient) -> None:
    for _ in range(5):
        ask_leader(client, T0)
        ask_leader(client, T1)
    assert [broker.accepted(node) for node in range(3)] == [1, 1, 0]


def test_a_connection_that_was_closed_for_idleness_is_replaced_unnoticed(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    ask_leader(client, T0)
    broker.forget()
    (idle,) = client.connections._open[broker.address()]
    broker.hang_up(0)
    eventually(lambda: not idle.usable)
    ask_leader(client, T0)
    assert [type(seen.request) for seen in broker.seen] == [ApiVersionsRequest, ListOffsetsRequest]


def test_a_broker_that_stays_silent_is_given_up_on_and_asked_anew(broker: MemoryBroker) -> None:
    with KafkaClient(broker.config()) as client:
        ask_leader(client, T0)
        client.config = broker.config(settings=ConnectionSettings(request_timeout_ms=100))
        broker.control(ListOffsetsRequest, Action.SILENCE)
        assert ask_leader(client, T0) == 0
    assert broker.accepted(0) >= 2


# -- close -----------------------------------------------------------------------------------------


def raised_by(call: Any) -> tuple[threading.Thread, list[KafkaError]]:
    raised: list[KafkaError] = []

    def run() -> None:
        try:
            call()
        except KafkaError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, raised


def ended(thread: threading.Thread) -> bool:
    thread.join(60)
    return not thread.is_alive()


@pytest.mark.parametrize("waits_for", [ApiVersionsRequest, MetadataRequest, ListOffsetsRequest])
def test_close_wakes_whoever_waits_for_an_answer(broker: MemoryBroker, waits_for: Any) -> None:
    broker.control(waits_for, Action.SILENCE, times=None)
    client = KafkaClient(broker.config())
    thread, raised = raised_by(lambda: ask_leader(client, T0))
    broker.wait_for(waits_for)
    client.close()
    assert ended(thread)
    assert isinstance(raised[0], ClosedError)


def test_close_ends_a_pause_between_two_tries(broker: MemoryBroker) -> None:
    hour_ms = 3_600_000
    config = broker.config(
        retry_backoff_ms=hour_ms, retry_backoff_max_ms=hour_ms, default_api_timeout_ms=2 * hour_ms
    )
    client = KafkaClient(config)
    leader(client, T0)
    broker.control(ListOffsetsRequest, error_named("NOT_LEADER_OR_FOLLOWER"), times=None)
    thread, raised = raised_by(lambda: ask_leader(client, T0))
    broker.wait_for(ListOffsetsRequest)
    client.close()
    assert ended(thread)
    assert isinstance(raised[0], ClosedError | ConnectionFailedError)


def test_close_ends_a_throttled_wait(broker: MemoryBroker) -> None:
    hour_ms = 3_600_000
    settings = ConnectionSettings(request_timeout_ms=2 * hour_ms)
    broker.cluster.throttle_time_ms[MetadataRequest] = hour_ms
    client = KafkaClient(broker.config(settings=settings, default_api_timeout_ms=2 * hour_ms))
    leader(client, T0)
    thread, raised = raised_by(lambda: ask_leader(client, T0))
    client.close()
    assert ended(thread)
    assert isinstance(raised[0], ClosedError)


def test_a_closed_client_answers_nothing(client: KafkaClient) -> None:
    client.close()
    client.close()
    assert client.closed
    with pytest.raises(ClosedError):
        leader(client, T0)


def test_a_connection_that_opens_while_the_client_closes_does_not_outlive_it(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pytest turns an unclosed socket into an error."""
    client = KafkaClient(broker.config())
    dialed = client.connections.dialed

    def closed_first(dial: Any) -> Any:
        client.close()
        return dialed(dial)

    monkeypatch.setattr(client.connections, "dialed", closed_first)
    with pytest.raises((ClosedError, ConnectionFailedError)):
        leader(client, T0)
