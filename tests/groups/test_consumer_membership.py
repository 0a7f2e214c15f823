"""KIP-848 members with threads and connections, and an in-memory coordinator."""

import uuid

import pytest

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import BrokerError, UnsupportedVersionError, error_named
from spark_kafka_source.groups.lookups import partitions_to_assign, topic_names
from spark_kafka_source.net import Deadline, run
from spark_kafka_source.protocol.messages.membership import ConsumerGroupHeartbeatRequest
from spark_kafka_source.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseTopic,
)
from spark_kafka_source.testing.memory import KAFKA_2_1, Action, MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition
from tests.groups.members import consumer, settle_all

pytestmark = pytest.mark.memory(nodes=3)

ALL = tuple(TopicPartition("t", partition) for partition in range(4))
IN_TIME_MS = 600_000


@pytest.fixture(autouse=True)
def topics(broker: MemoryBroker) -> None:
    broker.create_topic("t", 4)
    broker.cluster.coordinators["g"] = 1


def test_members_come_and_go(broker: MemoryBroker) -> None:
    with consumer(broker) as one:
        one.settle(*ALL)
        with consumer(broker) as two, consumer(broker) as three:
            settle_all(one, two, three, partitions=4)
        one.settle(*ALL)
        assert [what for what, _ in one.told.said].count("lost") == 0
    assert broker.consumer_group("g").members == {}


def test_nobody_gets_what_another_has_not_given_up(broker: MemoryBroker) -> None:
    with consumer(broker) as one, consumer(broker) as two:
        one.settle(*ALL)
        two.poll_until(lambda: two.is_stable)
        # `one` does not poll, so it revokes nothing.
        heartbeats = len(broker.requests(ConsumerGroupHeartbeatRequest))
        broker.wait_for(ConsumerGroupHeartbeatRequest, heartbeats + 4)
        run(two.membership.poll())
        assert two.membership.assignment == frozenset()
        settle_all(one, two, partitions=4)


def test_one_whose_session_is_over_has_lost_all_and_joins_anew(broker: MemoryBroker) -> None:
    with consumer(broker) as one:
        one.settle(*ALL)
        (member_id,) = broker.consumer_group("g").members
        broker.drop_consumer("g", member_id)
        one.poll_until(lambda: ("lost", ALL) in one.told.said)
        one.settle(*ALL)


def test_one_whose_group_is_gone_joins_anew(broker: MemoryBroker) -> None:
    with consumer(broker) as one:
        one.settle(*ALL)
        del broker.cluster.consumer_groups["g"]
        one.poll_until(lambda: ("lost", ALL) in one.told.said)
        one.settle(*ALL)


def test_static_members_come_back_to_what_they_had(broker: MemoryBroker) -> None:
    with consumer(broker, group_instance_id="i") as one:
        one.settle(*ALL)
    epoch = broker.consumer_group("g").epoch
    with consumer(broker, group_instance_id="i") as one:
        one.settle(*ALL)
        assert broker.consumer_group("g").epoch == epoch
        with consumer(broker, group_instance_id="i") as two:
            for _ in range(2):
                with pytest.raises(BrokerError, match=r"UNRELEASED.*kafka\.group\.instance\.id"):
                    two.poll_until(lambda: False)


def test_connections_that_break_cost_nothing(broker: MemoryBroker) -> None:
    with consumer(broker) as one:
        broker.control(ConsumerGroupHeartbeatRequest, Action.CLOSE, times=2)
        one.settle(*ALL)
        broker.cluster.coordinators["g"] = 2
        broker.cluster.consumer_groups["g"].members.clear()
        one.poll_until(lambda: ("lost", ALL) in one.told.said)
        one.settle(*ALL)


def test_a_broker_without_the_protocol_is_told_of() -> None:
    with (
        MemoryBroker(versions={**KAFKA_2_1}) as broker,
        consumer(broker) as one,
        pytest.raises(UnsupportedVersionError, match="ConsumerGroupHeartbeat"),
    ):
        del broker.cluster.versions[ConsumerGroupHeartbeatRequest.KEY]
        one.poll_until(lambda: False)


def soon() -> Deadline:
    return Deadline.after_ms(IN_TIME_MS)


def test_racks_and_names_are_looked_up(broker: MemoryBroker, client: KafkaClient) -> None:
    broker.cluster.racks.update({0: "a", 1: "b"})
    broker.create_topic("u", 3)
    found = client.run(partitions_to_assign(client, ["u", "none"], soon()))
    assert found == {"u": [TopicPartition("u", each) for each in range(3)]}
    assert [each.racks for each in found["u"]] == [frozenset("a"), frozenset("b"), frozenset()]
    assert [each.leader_id for each in found["u"]] == [0, 1, 2]
    assert [each.replica_ids for each in found["u"]] == [(0,), (1,), (2,)]
    assert client.run(partitions_to_assign(client, [], soon())) == {}
    u = broker.cluster.topics["u"].topic_id
    assert client.run(topic_names(client, [u, uuid.uuid4()], soon())) == {u: "u"}
    nameless = MetadataResponse(topics=[MetadataResponseTopic(0, None, u)])
    broker.control(MetadataRequest, nameless)
    assert client.run(topic_names(client, [u], soon())) == {}
    broker.control(MetadataRequest, error_named("TOPIC_AUTHORIZATION_FAILED"))
    with pytest.raises(BrokerError, match="Metadata of u, to assign its partitions"):
        client.run(partitions_to_assign(client, ["u"], soon()))
