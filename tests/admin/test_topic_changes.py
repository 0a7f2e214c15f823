"""Topics made, grown and deleted, with faults: each has its outcome, and a new one is ready."""

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spark_kafka_source import KafkaAdmin, NewTopic
from spark_kafka_source.admin import TopicExistsError
from spark_kafka_source.errors import (
    BrokerError,
    ConfigurationError,
    ErrorCode,
    KafkaTimeoutError,
    ProtocolError,
    TopicNotFoundError,
    error_named,
)
from spark_kafka_source.protocol.messages.admin import (
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
)
from spark_kafka_source.protocol.messages.list_offsets import ListOffsetsRequest
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.testing.memory import Action, MemoryBroker
from tests.admin.conftest import address
from tests.consumer.consumers import longer_and_longer

NOT_LEADER = error_named("NOT_LEADER_OR_FOLLOWER")
UNKNOWN = error_named("UNKNOWN_TOPIC_OR_PARTITION")


def told(error: object) -> str:
    """Return the text of an error, the same after its way through a pickle."""
    assert isinstance(error, Exception)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    return str(error)


# -- a new topic is ready --------------------------------------------------------------------------


def test_a_new_topic_is_done_when_the_leader_of_each_partition_serves_it(
    broker: MemoryBroker, admin: KafkaAdmin
) -> None:
    broker.control(ListOffsetsRequest, NOT_LEADER, times=3, node_id=1)
    broker.control(ListOffsetsRequest, UNKNOWN, times=2, node_id=2)
    assert admin.create_topics([NewTopic("new", 3)]) == {"new": None}
    asked = [each for each in broker.seen if isinstance(each.request, ListOffsetsRequest)]
    assert [sum(each.node_id == node for each in asked) for node in range(3)] == [1, 4, 3]


def test_a_new_topic_is_done_when_all_brokers_know_it(
    broker: MemoryBroker, admin: KafkaAdmin
) -> None:
    left = [UNKNOWN] * 4

    def knows_it_late(request: MetadataRequest) -> ErrorCode | Action:
        return left.pop() if left and request.topics else Action.HANDLE

    broker.control(MetadataRequest, knows_it_late, times=None, node_id=2)
    admin.create_topic("new", 3)
    assert not left


def test_new_partitions_are_done_when_they_are_served(
    broker: MemoryBroker, admin: KafkaAdmin
) -> None:
    broker.control(ListOffsetsRequest, NOT_LEADER, times=3, node_id=2)
    assert admin.create_partitions({"t": 3}) == {"t": None}
    assert not [each for each in broker._controls if each.times]


def test_a_topic_that_is_not_served_in_time_is_said_to_be_created(
    broker: MemoryBroker, hasty: KafkaAdmin
) -> None:
    broker.control(ListOffsetsRequest, NOT_LEADER, times=None, node_id=1)
    (error,) = hasty.create_topics([NewTopic("new", 2)]).values()
    assert isinstance(error, KafkaTimeoutError)
    assert "Topic 'new' is created, but brokers do not serve it within 300 ms" in told(error)
    assert "NOT_LEADER_OR_FOLLOWER" in str(error)


def test_a_user_who_may_create_a_topic_and_not_see_it_does_not_wait(
    broker: MemoryBroker, hasty: KafkaAdmin
) -> None:
    broker.control(MetadataRequest, error_named("TOPIC_AUTHORIZATION_FAILED"), times=None)
    assert hasty.create_topics([NewTopic("new")]) == {"new": None}


def test_a_validation_makes_nothing_and_waits_for_nothing(
    broker: MemoryBroker, admin: KafkaAdmin
) -> None:
    assert admin.create_topics([NewTopic("new")], validate_only=True) == {"new": None}
    assert admin.create_partitions({"t": 9}, validate_only=True) == {"t": None}
    assert "new" not in broker.cluster.topics
    assert not broker.requests(ListOffsetsRequest)


# -- each topic has its outcome --------------------------------------------------------------------


def test_one_topic_that_is_refused_hides_no_other(admin: KafkaAdmin) -> None:
    found = admin.create_topics([NewTopic("new", 2), NewTopic("t"), NewTopic("big", 1, 7)])
    assert found["new"] is None
    assert isinstance(found["t"], TopicExistsError)
    assert told(found["t"]) == "Topic 't' exists already: TOPIC_ALREADY_EXISTS (36)"
    assert "INVALID_REPLICATION_FACTOR (38): Give at most the number of brokers, which is 3" in (
        told(found["big"])
    )


def test_a_topic_that_there_is_not_has_the_name_of_one_like_it(
    broker: MemoryBroker, admin: KafkaAdmin
) -> None:
    broker.create_topic("orders")
    for found in (admin.delete_topics(["order"]), admin.create_partitions({"order": 2})):
        assert isinstance(found["order"], TopicNotFoundError)
        assert told(found["order"]).endswith("Did you mean 'orders'?")
    with pytest.raises(TopicNotFoundError, match="Did you mean 'orders'"):
        admin.describe_topics(["order"])
    with pytest.raises(TopicNotFoundError, match="Did you mean 'orders'"):
        admin.describe_configs(["order"])


def test_partitions_only_grow(admin: KafkaAdmin) -> None:
    found = admin.create_partitions({"t": 2, "u": 2})
    assert found["u"] is None
    assert "Partitions can only be added: it has 2, so give more" in told(found["t"])


@pytest.mark.parametrize(
    ("request_type", "right"),
    [
        (CreateTopicsRequest, "CREATE on topic 'a', or on the cluster"),
        (DeleteTopicsRequest, "DELETE on topic 'a'"),
        (CreatePartitionsRequest, "ALTER on topic 'a'"),
    ],
)
def test_a_denial_names_the_right(
    broker: MemoryBroker, admin: KafkaAdmin, request_type: type, right: str
) -> None:
    broker.control(request_type, error_named("TOPIC_AUTHORIZATION_FAILED"))
    found = {
        CreateTopicsRequest: lambda: admin.create_topics([NewTopic("a")]),
        DeleteTopicsRequest: lambda: admin.delete_topics(["a"]),
        CreatePartitionsRequest: lambda: admin.create_partitions({"a": 2}),
    }[request_type]()
    assert f"(29): the user needs {right}: have it granted" in told(found["a"])


def test_a_misspelt_configuration_has_the_name_of_one_like_it(
    broker: MemoryBroker, admin: KafkaAdmin
) -> None:
    broker.control(CreateTopicsRequest, error_named("INVALID_CONFIG"))
    found = admin.create_topics([NewTopic("a", configs={"retenton.ms": 1, "segment.ms": 1})])
    assert told(found["a"]).endswith("Did you mean 'retention.ms' in place of 'retenton.ms'?")


def test_where_topics_cannot_be_deleted_it_is_said_why(
    broker: MemoryBroker, admin: KafkaAdmin
) -> None:
    broker.control(DeleteTopicsRequest, error_named("TOPIC_DELETION_DISABLED"))
    with pytest.raises(BrokerError, match=r"'delete\.topic\.enable' is false"):
        admin.delete_topic("t")


# -- temporary errors ------------------------------------------------------------------------------


def test_a_temporary_error_is_tried_again_for_its_topic_alone(
    broker: MemoryBroker, admin: KafkaAdmin
) -> None:
    def one_is_throttled(request: CreateTopicsRequest) -> CreateTopicsResponse:
        with_errors = broker_answer(request)
        with_errors.topics[1].error_code = error_named("THROTTLING_QUOTA_EXCEEDED").code
        return with_errors

    broker.control(CreateTopicsRequest, one_is_throttled)
    broker.create_topic("a")  # As the answer above says.
    assert admin.create_topics([NewTopic("a"), NewTopic("b")]) == {"a": None, "b": None}
    asked = [[each.name for each in it.topics] for it in broker.requests(CreateTopicsRequest)]
    assert asked == [["a", "b"], ["b"]]


def broker_answer(request: CreateTopicsRequest) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[CreatableTopicResult(each.name) for each in request.topics])


def test_requests_go_to_the_controller(broker: MemoryBroker) -> None:
    with KafkaAdmin(bootstrap_servers=str(broker.address(2)), retry_backoff_ms=1) as admin:
        admin.create_topic("new")
        asked = [
            each.node_id for each in broker.seen if isinstance(each.request, CreateTopicsRequest)
        ]
        assert asked == [2, 0], "the first one refuses it"
        broker.stop(0)  # Another broker becomes the controller.
        assert admin.create_partitions({"t": 3}) == {"t": None}
    grown = [
        each.node_id for each in broker.seen if isinstance(each.request, CreatePartitionsRequest)
    ]
    assert grown[-1] == 1


def test_a_broker_that_was_never_reached_has_done_nothing(broker: MemoryBroker) -> None:
    broker.control(MetadataRequest, Action.CLOSE, times=3)
    with KafkaAdmin(bootstrap_servers=address(broker), retry_backoff_ms=1) as admin:
        admin.list_topics()
        broker.control(MetadataRequest, Action.HANDLE)  # The ids before the deletion.
        broker.control(MetadataRequest, Action.CLOSE, times=4)
        (error,) = admin.delete_topics(["nope"]).values()
    assert isinstance(error, TopicNotFoundError)


def test_after_a_lost_answer_a_topic_that_exists_may_be_the_own_one(
    broker: MemoryBroker, admin: KafkaAdmin
) -> None:
    broker.control(CreateTopicsRequest, Action.LOSE)
    (error,) = admin.create_topics([NewTopic("new")]).values()
    assert isinstance(error, TopicExistsError)
    assert "An earlier try of this call may have created it: its answer was lost" in told(error)


def test_after_a_lost_answer_a_topic_that_is_gone_or_grown_is_as_wanted(
    broker: MemoryBroker, admin: KafkaAdmin
) -> None:
    broker.control(DeleteTopicsRequest, Action.LOSE)
    assert admin.delete_topics(["u"]) == {"u": None}
    broker.control(CreatePartitionsRequest, Action.LOSE)
    assert admin.create_partitions({"t": 4}) == {"t": None}


def test_a_timeout_of_one_topic_keeps_the_outcome_of_the_others(
    broker: MemoryBroker, hasty: KafkaAdmin
) -> None:
    def always_late(request: CreateTopicsRequest) -> CreateTopicsResponse:
        answer = broker_answer(request)
        for each in answer.topics:
            each.error_code = (
                UNKNOWN if each.name == "a" else error_named("REQUEST_TIMED_OUT")
            ).code
        return answer

    broker.control(CreateTopicsRequest, always_late, times=None)
    found = hasty.create_topics([NewTopic("a"), NewTopic("b")])
    assert isinstance(found["a"], BrokerError)
    assert isinstance(found["b"], KafkaTimeoutError)
    with pytest.raises(KafkaTimeoutError, match="REQUEST_TIMED_OUT"):
        hasty.create_topic("b")


def test_a_topic_that_the_answer_leaves_out_is_no_success(
    broker: MemoryBroker, admin: KafkaAdmin
) -> None:
    broker.control(CreateTopicsRequest, CreateTopicsResponse(topics=[]))
    with pytest.raises(ProtocolError, match="CreateTopics of topic 'new': the answer"):
        admin.create_topic("new")


# -- the end of topics -----------------------------------------------------------------------------


def test_a_topic_is_deleted_when_no_broker_knows_it(
    broker: MemoryBroker, hasty: KafkaAdmin
) -> None:
    before = broker.cluster.topics["t"]

    def still_there(request: MetadataRequest) -> Action:
        broker.cluster.topics.setdefault("t", before)
        return Action.HANDLE

    assert hasty.delete_topics(["u"]) == {"u": None}
    broker.control(MetadataRequest, still_there, times=None, node_id=2)
    (error,) = hasty.delete_topics(["t"]).values()
    assert isinstance(error, KafkaTimeoutError)
    assert "Topic 't' is deleted, but not gone within 300 ms" in told(error)


def test_a_broker_that_had_no_time_to_answer_is_not_left_out(
    broker: MemoryBroker, admin: KafkaAdmin
) -> None:
    def silent_once_deleted(_: MetadataRequest) -> Action:
        return Action.HANDLE if "t" in broker.cluster.topics else Action.SILENCE

    assert admin.delete_topics(["u"]) == {"u": None}
    broker.control(MetadataRequest, silent_once_deleted, times=None, node_id=2)
    for timeout_ms in longer_and_longer(300):
        if "t" not in broker.cluster.topics:
            broker.create_topic("t")
        client = admin.client
        client.config = replace(client.config, default_api_timeout_ms=timeout_ms)
        (error,) = admin.delete_topics(["t"]).values()
        if "Topic 't' is deleted" in str(error):
            break
    assert isinstance(error, KafkaTimeoutError)
    assert f"Topic 't' is deleted, but not gone within {timeout_ms} ms" in told(error)


# -- arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"name": ""}, "Option 'name': found ''"),
        (
            {"name": "a", "partitions": 0},
            "Option 'partitions': found 0. Give a whole number from 1",
        ),
        ({"name": "a", "replication_factor": 1 << 15}, "Option 'replication_factor': found 32768"),
        ({"name": "a", "partitions": True}, "Option 'partitions': found True"),
        (
            {"name": "a", "partitions": 1, "replicas": [[1]]},
            "'partitions': is given with 'replicas",
        ),
        ({"name": "a", "configs": {"x": None}}, "Option 'configs': 'x' has a value of type None"),
        ({"name": "a", "configs": "a=1"}, "Option 'configs': found a str. Give a dict"),
        ({"name": "a", "replicas": [1, 1]}, "Option 'replicas': found [1, 1]. Give the node ids"),
        ({"name": "a", "replicas": []}, "Option 'replicas': found []"),
        ({"name": "a", "replicas": [[]]}, "Option 'replicas': found [[]]"),
    ],
)
def test_what_cannot_be_a_topic_is_refused_at_once(arguments: dict[str, object], text: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        NewTopic(**arguments)  # type: ignore[arg-type]
    assert text in str(refused.value)


@pytest.mark.parametrize("topics", ["x", ["x"], NewTopic("x"), None, 7])
def test_topics_to_create_are_new_topics(admin: KafkaAdmin, topics: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"'topics': found .*Give a list of NewTopic"):
        admin.create_topics(topics)


def test_names_are_texts(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    for names in ([None], None, [""]):
        with pytest.raises(ConfigurationError, match="'names': found "):
            admin.delete_topics(names)  # type: ignore[arg-type]
    assert [each.name for each in admin.describe_topics("t")] == ["t"]
    with pytest.raises(ConfigurationError, match=r"'totals': found a list\. Give a dict"):
        admin.create_partitions(["x3"])  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="'configs': found a str"):
        admin.create_topic("new", configs="a=1")  # type: ignore[arg-type]


def test_numbers_may_be_numpys(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    admin.create_topic("new", np.int64(2))  # type: ignore[arg-type]
    assert admin.create_partitions({"new": np.int32(3)}) == {"new": None}  # type: ignore[dict-item]
    assert len(broker.cluster.topics["new"].logs) == 3


def test_a_topic_twice_and_a_growth_to_nothing_are_refused(admin: KafkaAdmin) -> None:
    with pytest.raises(ConfigurationError, match="a topic is given twice"):
        admin.create_topics([NewTopic("a"), NewTopic("a")])
    with pytest.raises(ConfigurationError, match="'partitions': found 0"):
        admin.create_partitions({"t": 0})
