"""Background look-ups of leaders: pauses, denials, and useless answers."""

from collections.abc import Iterator
from typing import Any

import pytest

from spark_kafka_source import KafkaProducer
from spark_kafka_source.client import Cluster, KafkaClient
from spark_kafka_source.denials import Access
from spark_kafka_source.errors import BootstrapError, BrokerError, error_named
from spark_kafka_source.net import Address, Conversations, keep_asking
from spark_kafka_source.producer.leaders import Leaders
from spark_kafka_source.protocol.messages.metadata import MetadataRequest, MetadataResponse
from spark_kafka_source.testing.memory import ONE_TRY, MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition
from tests.producer.blocking import end_pauses, is_pausing, settle
from tests.producer.writing import T0, T1
from tools.ports import LOOPBACK, refused_port

pytestmark = pytest.mark.memory(nodes=2, topics={"t": 2, "other": 1})

OTHER = TopicPartition("other", 0)


class Looking:
    """`Leaders`, with a method to go on with their look-ups."""

    def __init__(self, client: KafkaClient) -> None:
        self.conversations = Conversations()
        self.leaders = Leaders(client)
        self.conversations.begin(keep_asking(self.leaders.ask, client.pause_seconds))

    def look(self, *wanted: TopicPartition) -> list[int | None]:
        """Ask for partitions, step until there is an answer, and return their leaders."""
        self.leaders.of(wanted)
        settle(self.conversations)
        return [self.node(each) for each in wanted]

    def node(self, where: TopicPartition) -> int | None:
        found = self.leaders.of([where]).get(where)
        return None if found is None else found.node_id


@pytest.fixture
def looking(broker: MemoryBroker, request: pytest.FixtureRequest) -> Iterator[Looking]:
    known: dict[str, Any] = ONE_TRY | getattr(request, "param", {})
    with KafkaClient(broker.config(**known), Cluster(Access.WRITE)) as client:
        looking = Looking(client)
        yield looking
        looking.conversations.close()


def test_topics_are_asked_for_together_and_once(broker: MemoryBroker, looking: Looking) -> None:
    assert looking.look(T0, T1, OTHER) == [0, 1, 0]
    assert looking.look(T0, T1, OTHER) == [0, 1, 0]
    (request,) = broker.requests(MetadataRequest)
    assert [each.name for each in request.topics or ()] == ["other", "t"]
    assert not request.allow_auto_topic_creation
    assert not is_pausing(looking.conversations)


@pytest.mark.parametrize(
    "wanted", [TopicPartition("t", 7), TopicPartition("nope", 0), TopicPartition("t", 1)]
)
def test_where_metadata_says_nothing_of_use_there_is_a_pause(
    broker: MemoryBroker, looking: Looking, wanted: TopicPartition
) -> None:
    """A topic that was created again may have fewer partitions."""
    broker.stop(1)
    assert looking.look(wanted) == [None]
    assert looking.look(wanted) == [None]
    assert len(broker.requests(MetadataRequest)) == 1
    assert is_pausing(looking.conversations)


def test_a_denial_is_told_once_for_all_partitions_and_is_over_once_it_is_allowed(
    broker: MemoryBroker, looking: Looking
) -> None:
    broker.control(MetadataRequest, error_named("TOPIC_AUTHORIZATION_FAILED"))
    assert looking.look(T0) == [None]
    (denial,) = looking.leaders.take_denials().values()
    assert "the user needs WRITE on topic 't'" in str(denial)
    assert not looking.leaders.take_denials()
    end_pauses(looking.conversations)
    assert looking.look(T0) == [0]


def test_what_was_said_of_one_topic_is_not_forgotten_for_another(
    broker: MemoryBroker, looking: Looking
) -> None:
    broker.control(MetadataRequest, error_named("TOPIC_AUTHORIZATION_FAILED"))
    looking.look(T0)
    end_pauses(looking.conversations)
    looking.leaders._unknown.clear()
    looking.look(OTHER)
    assert list(looking.leaders.take_denials()) == ["t"]


def test_a_topic_that_is_not_there_yet_is_no_denial(broker: MemoryBroker, looking: Looking) -> None:
    looking.look(TopicPartition("nope", 0))
    assert not looking.leaders.take_denials()
    error = looking.leaders.error("nope")
    assert isinstance(error, BrokerError)
    assert error.error.name == "UNKNOWN_TOPIC_OR_PARTITION"


def test_brokers_that_are_all_down_are_no_denial(broker: MemoryBroker) -> None:
    with refused_port() as port:
        config = broker.config(bootstrap_servers=(Address(LOOPBACK, port),), **ONE_TRY)
        with KafkaClient(config) as client:
            looking = Looking(client)
            assert looking.look(T0) == [None]
            assert isinstance(looking.leaders.error("t"), BootstrapError)
            assert not looking.leaders.take_denials()
            looking.conversations.close()


@pytest.mark.parametrize("looking", [{"metadata_max_age_ms": 0}], indirect=True)
def test_what_is_old_is_asked_for_again_and_serves_meanwhile(
    broker: MemoryBroker, looking: Looking
) -> None:
    looking.look(T0)
    broker.move_leader(T0, 1)
    assert looking.node(T0) == 0
    looking.look(T0)
    assert looking.node(T0) == 1


def test_a_producer_goes_on_in_a_cluster_that_was_set_up_anew(broker: MemoryBroker) -> None:
    """KIP-1242: the brokers are told that they are of another cluster, and say so."""
    broker.cluster.cluster_id = "before"
    with KafkaProducer(bootstrap_servers=str(broker.address())) as producer:
        producer.send("t", b"1").result(30)
        broker.cluster.cluster_id = "after"
        for node_id in range(2):
            broker.hang_up(node_id)
        producer.send("t", b"2").result(30)


def test_a_producer_asks_the_bootstrap_servers_where_a_broker_asks_for_it(
    broker: MemoryBroker,
) -> None:
    """KIP-1102."""
    required = MetadataResponse(error_code=error_named("REBOOTSTRAP_REQUIRED").code)
    broker.control(MetadataRequest, required, times=3)
    with KafkaProducer(bootstrap_servers=str(broker.address())) as producer:
        producer.send("t", b"1").result(30)
