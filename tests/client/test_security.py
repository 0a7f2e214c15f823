"""TLS and SASL of a client: it tries all servers, without useless retries."""

import pytest

from spark_kafka_source.client import Broker, KafkaClient
from spark_kafka_source.fetch import latest_offsets
from spark_kafka_source.net import (
    Address,
    AuthenticationError,
    ConnectionSettings,
    Deadline,
    SecuritySettings,
)
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.protocol.messages.sasl import SaslAuthenticateRequest
from spark_kafka_source.testing.memory import MemoryBroker
from spark_kafka_source.testing.memory.cluster import RefusedError
from spark_kafka_source.topic_partition import TopicPartition
from tools.ports import LOOPBACK, refused_port

pytestmark = pytest.mark.memory(nodes=2)


def security(password: str) -> ConnectionSettings:
    values = {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.username": "alice",
        "kafka.sasl.password": password,
    }
    return ConnectionSettings(security=SecuritySettings.from_settings(Settings(values)))


def plain(said: list[bytes]) -> bytes | None:
    if said != [b"\0alice\0right"]:
        raise RefusedError("Invalid username or password")
    return None


@pytest.fixture
def broker(broker: MemoryBroker) -> MemoryBroker:
    broker.cluster.mechanisms["PLAIN"] = plain
    return broker


def all_topics(client: KafkaClient) -> object:
    return client.run(client.retrying("Metadata", lambda deadline: client.topics(None, deadline)))


def test_a_wrong_password_goes_out_once_whatever_the_number_of_servers(
    broker: MemoryBroker,
) -> None:
    """Accounts are locked after a few wrong passwords."""
    servers = (broker.address(0), broker.address(1))
    config = broker.config(settings=security("wrong"), bootstrap_servers=servers)
    with KafkaClient(config) as client, pytest.raises(AuthenticationError):
        all_topics(client)
    assert len(logins(broker)) == 1


def test_a_password_that_is_withdrawn_goes_to_one_leader_only(broker: MemoryBroker) -> None:
    broker.create_topic("t", 2)
    with KafkaClient(broker.config(settings=security("right"))) as client:
        all_topics(client)
        broker.hang_up(0)
        broker.forget()
        broker.cluster.mechanisms["PLAIN"] = withdrawn
        with pytest.raises(AuthenticationError):
            client.run(latest_offsets(client, [TopicPartition("t", 0), TopicPartition("t", 1)]))
    assert len(logins(broker)) == 1


def withdrawn(_: list[bytes]) -> bytes | None:
    raise RefusedError("Invalid username or password")


def logins(broker: MemoryBroker) -> list[int]:
    """Return the nodes that got a password."""
    return [seen.node_id for seen in broker.seen if is_token(seen.request)]


def is_token(request: object) -> bool:
    return isinstance(request, SaslAuthenticateRequest)


def test_a_server_that_is_down_does_not_hide_why_the_others_refuse(broker: MemoryBroker) -> None:
    with refused_port() as port:
        servers = (Address(LOOPBACK, port), broker.address(0))
        config = broker.config(settings=security("wrong"), bootstrap_servers=servers)
        with KafkaClient(config) as client, pytest.raises(AuthenticationError):
            all_topics(client)


def test_every_connection_authenticates(broker: MemoryBroker) -> None:
    with KafkaClient(broker.config(settings=security("right"))) as client:
        all_topics(client)
        for node_id in (0, 1):
            node = Broker(node_id, broker.address(node_id))
            client.run(client.send(MetadataRequest(topics=[]), node, Deadline.after_ms(30_000)))
    assert logins(broker) == [0, 1]
