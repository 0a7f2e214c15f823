"""Questions about many keys to the brokers that have a role for them."""

from collections.abc import Iterable, Sequence

import pytest

from spark_kafka_source.client import (
    COORDINATOR,
    Broker,
    CoordinatorKey,
    KafkaClient,
    Told,
    ask_each,
)
from spark_kafka_source.errors import BrokerError, ProtocolError, error_named
from spark_kafka_source.protocol.messages.find_coordinator import FindCoordinatorRequest
from spark_kafka_source.protocol.messages.group_admin import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from spark_kafka_source.testing.memory import MemoryBroker

pytestmark = pytest.mark.memory(nodes=3, coordinators={"a": 0, "b": 1, "c": 1})

A, B, C = (CoordinatorKey.of_group(each) for each in "abc")
OLD = 5
"""A version whose answer has no error for a group that does not exist."""
DENIED = error_named("GROUP_AUTHORIZATION_FAILED")


def describe(keys: Sequence[CoordinatorKey]) -> DescribeGroupsRequest:
    return DescribeGroupsRequest([each.key for each in keys])


def told(
    response: DescribeGroupsResponse, broker: Broker
) -> Iterable[Told[CoordinatorKey, int | BrokerError]]:
    for each in response.groups:
        yield Told(CoordinatorKey.of_group(each.group_id), broker.node_id, each.error_code)


def asked(broker: MemoryBroker) -> list[list[str]]:
    return [sorted(each.groups) for each in broker.requests(DescribeGroupsRequest)]


def coordinators(client: KafkaClient) -> dict[CoordinatorKey, int | BrokerError]:
    return client.run(
        ask_each(
            client,
            "DescribeGroups",
            COORDINATOR,
            [A, B, C, A],
            request=describe,
            answers=told,
            max_version=OLD,
            instead=lambda error: error,
        )
    )


def test_each_broker_gets_one_request_about_all_its_keys(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    assert coordinators(client) == {A: 0, B: 1, C: 1}
    assert sorted(asked(broker)) == [["a"], ["b", "c"]]


def test_keys_whose_broker_has_lost_the_role_are_asked_about_again_alone(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    coordinators(client)
    broker.cluster.coordinators["c"] = 2
    assert coordinators(client) == {A: 0, B: 1, C: 2}
    assert asked(broker)[-1] == ["c"]


def test_without_an_answer_in_its_place_a_lasting_error_is_raised(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    broker.control(FindCoordinatorRequest, DENIED, times=None)
    question = ask_each(
        client, "DescribeGroups", COORDINATOR, [A], request=describe, answers=told, max_version=OLD
    )
    with pytest.raises(BrokerError, match="needs READ on group 'a'"):
        client.run(question)


def test_a_lasting_error_may_be_the_answer_for_its_key_alone(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    coordinators(client)
    del client.cluster.coordinators[A]
    broker.control(FindCoordinatorRequest, DENIED)
    found = coordinators(client)
    assert isinstance(found.pop(A), BrokerError)
    assert found == {B: 1, C: 1}


def test_an_answer_that_leaves_a_key_out_is_named(client: KafkaClient) -> None:
    question = ask_each(
        client,
        "DescribeGroups",
        COORDINATOR,
        [A, B],
        request=lambda keys: describe([each for each in keys if each == A]),
        answers=told,
        max_version=OLD,
    )
    with pytest.raises(ProtocolError, match="DescribeGroups of group 'b': the answer leaves it"):
        client.run(question)


def test_of_a_silent_coordinator_no_more_groups_are_asked_about_than_needed(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    silent = Broker(1, broker.address(1))
    assert client.run(COORDINATOR.keeps_role(client, silent, [A, B, C]))
    assert [each.key for each in broker.requests(FindCoordinatorRequest)] == ["a", "b"]
    broker.cluster.coordinators.update(b=2, c=0)
    assert not client.run(COORDINATOR.keeps_role(client, silent, [B, C]))
    assert [each.node_id for each in map(client.cluster.coordinators.get, (B, C)) if each] == [2, 0]


def test_no_keys_are_no_question(broker: MemoryBroker, client: KafkaClient) -> None:
    question = ask_each(
        client, "DescribeGroups", COORDINATOR, [], request=describe, answers=told, max_version=OLD
    )
    assert client.run(question) == {}
    assert not asked(broker)
