"""Finding the first broker: the client tries all addresses, and the error names all."""

import contextlib
import re
from collections.abc import Iterator

import pytest

from spark_kafka_source.client import Broker, ClientConfig, KafkaClient, Topic
from spark_kafka_source.errors import (
    BootstrapError,
    BrokerError,
    KafkaError,
    KafkaTimeoutError,
    ProtocolError,
    RebootstrapError,
    error_named,
)
from spark_kafka_source.net import (
    Address,
    Connection,
    ConnectionSettings,
    Deadline,
    parse_addresses,
)
from spark_kafka_source.protocol.messages.api_versions import (
    ApiVersionsRequest,
)
from spark_kafka_source.protocol.messages.metadata import MetadataRequest, MetadataResponse
from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.testing.memory import ONE_TRY, Action, MemoryBroker, Raw
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import longer_and_longer
from tools.ports import LOOPBACK, black_hole, refused_port

pytestmark = pytest.mark.memory(nodes=3)

HTTP = Raw(b"HTTP/1.1 400 Bad Request\r\n\r\n", close=True)


@pytest.fixture
def refused() -> Iterator[Address]:
    with refused_port() as port:
        yield Address(LOOPBACK, port)


def within(timeout_ms: int) -> ConnectionSettings:
    """Return settings of a client that gives an address this time."""
    return ConnectionSettings(socket_connection_setup_timeout_ms=timeout_ms)


def all_topics(client: KafkaClient) -> list[Topic]:
    return client.run(client.retrying("Metadata", lambda deadline: client.topics(None, deadline)))


def test_all_topics_and_brokers_are_learnt(broker: MemoryBroker) -> None:
    broker.create_topic("a", 2)
    broker.create_topic("b")
    with KafkaClient(broker.config()) as client:
        assert [topic.name for topic in all_topics(client)] == ["a", "b"]
        assert sorted(client.cluster.brokers) == [0, 1, 2]


def test_addresses_that_fail_are_passed_over(broker: MemoryBroker, refused: Address) -> None:
    broker.control(ApiVersionsRequest, HTTP, node_id=1, times=None)
    with black_hole() as silent:
        servers = (refused, silent, broker.address(1), broker.address(2))
        for timeout_ms in longer_and_longer(300):
            config = broker.config(settings=within(timeout_ms), bootstrap_servers=servers)
            with KafkaClient(config) as client, contextlib.suppress(BootstrapError, ProtocolError):
                all_topics(client)
                assert not client.history.is_suspect(broker.address(2))
                break
        else:
            pytest.fail("the last address was not found")
    # The client tries addresses in random order, so the last may have been the first.
    assert [seen.node_id for seen in broker.seen][-2:] == [2, 2]


def test_where_none_answers_each_address_is_named_with_its_reason(
    broker: MemoryBroker, refused: Address
) -> None:
    said_nothing = "took the connection and said nothing"
    with black_hole() as silent:
        for timeout_ms in longer_and_longer(300):
            config = broker.config(
                settings=within(timeout_ms), bootstrap_servers=(refused, silent), **ONE_TRY
            )
            with KafkaClient(config) as client, pytest.raises(BootstrapError) as caught:
                all_topics(client)
            if said_nothing in str(caught.value):
                break
    assert set(caught.value.failures) == {
        f"{refused} (127.0.0.1: Connection refused)",
        f"{silent}: timed out waiting for an answer (it {said_nothing}: is "
        "it a broker's listener, and one for this 'kafka.security.protocol'?)",
    }
    assert "kafka.bootstrap.servers" in str(caught.value)


def test_until_a_broker_was_reached_the_shorter_timeout_holds(refused: Address) -> None:
    """A wrong address is an error after `request.timeout.ms`, not `default.api.timeout.ms`."""
    with MemoryBroker() as broker:
        config = broker.config(
            settings=ConnectionSettings(request_timeout_ms=50),
            bootstrap_servers=(refused,),
            default_api_timeout_ms=3_600_000,
        )
        with KafkaClient(config) as client, pytest.raises(BootstrapError):
            all_topics(client)


def test_another_server_at_the_only_address_is_told_of_at_once(broker: MemoryBroker) -> None:
    broker.control(ApiVersionsRequest, HTTP, times=None)
    with (
        KafkaClient(broker.config()) as client,
        pytest.raises(ProtocolError, match="looks like an HTTP server") as caught,
    ):
        all_topics(client)
    assert str(broker.address()) in str(caught.value)
    assert len(broker.seen) == 1


def test_a_broker_that_comes_up_late_is_found(broker: MemoryBroker) -> None:
    broker.stop(0)
    with KafkaClient(broker.config()) as client:

        async def attempt(deadline: Deadline) -> list[Topic]:
            try:
                return await client.topics(None, deadline)
            except BootstrapError:
                broker.start(0)
                raise

        assert client.run(client.retrying("Metadata", attempt)) == []


def test_where_all_known_brokers_are_gone_the_bootstrap_addresses_have_their_turn(
    broker: MemoryBroker,
) -> None:
    """KIP-899. Here all nodes have moved, except the bootstrap node."""
    with KafkaClient(broker.config(bootstrap_servers=(broker.address(2),))) as client:
        broker.cluster.ports.pop(2)
        all_topics(client)
        assert sorted(client.cluster.brokers) == [0, 1]
        broker.stop(0)
        broker.stop(1)
        broker.hang_up(2)
        all_topics(client)


def test_of_many_brokers_that_are_gone_only_some_delay_the_bootstrap_addresses() -> None:
    with MemoryBroker(6) as broker:
        config = broker.config(bootstrap_servers=(broker.address(5),), **ONE_TRY)
        with KafkaClient(config) as client:
            broker.cluster.ports.pop(5)
            all_topics(client)
            for node_id in range(5):
                broker.stop(node_id)
            broker.control(ApiVersionsRequest, Action.CLOSE)
            broker.hang_up(5)
            with pytest.raises(BootstrapError) as caught:
                all_topics(client)
    assert len(caught.value.failures) == 4
    assert str(config.bootstrap_servers[0]) in caught.value.failures[-1]


def test_a_broker_that_asks_to_bootstrap_anew_is_obeyed(broker: MemoryBroker) -> None:
    """KIP-1102."""
    required = MetadataResponse(error_code=error_named("REBOOTSTRAP_REQUIRED").code)
    with KafkaClient(broker.config()) as client:
        all_topics(client)
        broker.forget()
        broker.control(MetadataRequest, required)
        all_topics(client)
        assert len(broker.requests(MetadataRequest)) == 2
    assert broker.seen[-1].node_id == 0


@pytest.fixture
def stranger() -> Iterator[MemoryBroker]:
    with MemoryBroker() as stranger:
        stranger.cluster.cluster_id = "another"
        yield stranger


def ask_leader(client: KafkaClient, topic_partition: TopicPartition) -> Broker:
    """Return the leader that answered."""

    async def attempt(deadline: Deadline) -> Broker:
        leader, _ = (await client.leaders([topic_partition], deadline))[topic_partition]
        await client.send(MetadataRequest(topics=[]), leader, deadline)
        return leader

    return client.run(client.retrying("a question", attempt))


@pytest.mark.parametrize("is_checked", [True, False])
def test_a_broker_of_another_cluster_is_asked_nothing(
    broker: MemoryBroker, stranger: MemoryBroker, is_checked: bool
) -> None:
    """KIP-1242: the address of a leader is another cluster's now, as addresses of pods may be."""
    broker.cluster.cluster_id = "ours"
    broker.create_topic("t")
    config = broker.config(metadata_cluster_check_enable=is_checked)
    with KafkaClient(config) as client:
        where = TopicPartition("t", 0)
        client.run(client.retrying("Metadata", lambda within: client.topics(["t"], within)))
        leader, _ = client.cluster.leader(where)
        moved = Broker(leader.node_id, stranger.address())
        client.cluster.brokers = {**client.cluster.brokers, leader.node_id: moved}
        assert ask_leader(client, where) == (leader if is_checked else moved)
    assert bool(stranger.requests(MetadataRequest)) is not is_checked


def test_an_address_that_leads_to_a_new_cluster_is_asked_anew(broker: MemoryBroker) -> None:
    """A cluster was set up again at the same address, which is the only one of the bootstrap."""
    broker.cluster.cluster_id = "before"
    with KafkaClient(broker.config()) as client:
        all_topics(client)
        broker.cluster.cluster_id = "after"
        for node_id in range(3):
            broker.hang_up(node_id)
        all_topics(client)
        assert client.cluster.cluster_id == "after"


def test_a_broker_that_is_never_the_right_one_is_an_error_that_says_so(
    broker: MemoryBroker,
) -> None:
    """As behind a proxy that changes the ids of brokers."""
    broker.create_topic("t")
    broker.cluster.cluster_id = "ours"
    ports = broker.cluster.ports
    ports[0], ports[1] = ports[1], ports[0]
    refusal = "is not broker 0 of cluster 'ours'"
    for timeout_ms in longer_and_longer(500):
        config = broker.config(default_api_timeout_ms=timeout_ms)
        with KafkaClient(config) as client, pytest.raises(KafkaError) as caught:
            ask_leader(client, TopicPartition("t", 0))
        if refusal in str(caught.value):
            break
    assert isinstance(caught.value, KafkaTimeoutError)
    assert refusal in str(caught.value)


@pytest.mark.kafka
def test_a_real_broker_checks_that_a_connection_is_meant_for_it(kafka: LocalKafka) -> None:
    """From Kafka 4.4 on."""
    servers = parse_addresses(kafka.bootstrap_servers)
    with KafkaClient(ClientConfig(servers)) as client:
        all_topics(client)
        (broker,) = client.cluster.brokers.values()
        right = client.cluster.identity(broker.address)
    assert right is not None
    settings, deadline = ConnectionSettings(), Deadline.after_ms(30_000)
    Connection.connect(broker.address, settings, deadline, identity=right).close()
    for wrong in (right._replace(node_id=7), right._replace(cluster_id="another")):
        with pytest.raises(RebootstrapError, match=re.escape(f"is not {wrong}")):
            Connection.connect(broker.address, settings, deadline, identity=wrong)


def test_an_error_of_all_metadata_is_raised(broker: MemoryBroker) -> None:
    error = error_named("CLUSTER_AUTHORIZATION_FAILED")
    broker.control(MetadataRequest, MetadataResponse(error_code=error.code))
    with KafkaClient(broker.config()) as client, pytest.raises(BrokerError) as caught:
        all_topics(client)
    assert caught.value.error == error


def test_silence_of_one_broker_leaves_time_to_ask_another(broker: MemoryBroker) -> None:
    with KafkaClient(broker.config()) as client:
        all_topics(client)
        client.config = broker.config(settings=ConnectionSettings(request_timeout_ms=300))
        broker.control(MetadataRequest, Action.SILENCE, node_id=0, times=None)
        all_topics(client)
    assert {seen.node_id for seen in broker.seen} > {0}


def test_garbage_for_metadata_is_a_protocol_error_that_names_the_broker(
    broker: MemoryBroker,
) -> None:
    broker.control(MetadataRequest, Raw(b"\x00\x00\x00\x08" + bytes(3) + b"\x01garb"), times=None)
    with KafkaClient(broker.config()) as client, pytest.raises(ProtocolError) as caught:
        all_topics(client)
    assert str(broker.address()) in str(caught.value)


def test_time_is_up_without_a_word_wasted(broker: MemoryBroker) -> None:
    """The error names the request and its last error."""
    with KafkaClient(broker.config(**ONE_TRY)) as client:
        all_topics(client)

        async def attempt(deadline: Deadline) -> None:
            raise BrokerError(error_named("REQUEST_TIMED_OUT"), "Fetch of t-0")

        with pytest.raises(
            KafkaTimeoutError, match=r"Fetch of t-0: no success .* 5000 ms; the last"
        ):
            client.run(client.retrying("Fetch of t-0", attempt, timeout_ms=5_000))
