"""Configurations with faults: each resource goes to its broker, and no secret is told."""

import logging
from typing import Any

import pytest

from spark_kafka_source import AlterConfigOp, ConfigResource, KafkaAdmin, Secret
from spark_kafka_source.errors import (
    BootstrapError,
    BrokerError,
    ConfigurationError,
    KafkaTimeoutError,
    ProtocolError,
    TopicNotFoundError,
    error_named,
)
from spark_kafka_source.protocol.messages.alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from spark_kafka_source.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from spark_kafka_source.testing.memory import ONE_TRY, Action, MemoryBroker
from tests.admin.conftest import T0, address
from tests.consumer.consumers import longer_and_longer

TOPIC, BROKER = ConfigResource.topic("t"), ConfigResource.broker(2)


def test_each_resource_goes_to_its_broker(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    broker.cluster.broker_settings["log.retention.ms"] = "7"
    broker.cluster.topic_settings["t"] = {"retention.ms": "5"}
    found = admin.describe_configs([TOPIC, BROKER])
    assert found[TOPIC]["retention.ms"].value == "5"
    assert found[TOPIC]["retention.ms"].source == "DYNAMIC_TOPIC_CONFIG"
    assert found[BROKER]["log.retention.ms"].value == "7"
    assert not found[BROKER]["log.retention.ms"].is_default
    assert admin.alter_configs(
        {TOPIC: {"retention.ms": None, "preallocate": True}, BROKER: {"log.retention.ms": 8}}
    ) == {TOPIC: None, BROKER: None}
    assert broker.cluster.topic_settings["t"] == {"preallocate": "true"}
    asked = [
        each.node_id
        for each in broker.seen
        if isinstance(each.request, IncrementalAlterConfigsRequest)
        and each.request.resources[0].resource_name == BROKER.name
    ]
    assert asked == [2]


def test_a_validation_changes_nothing(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    assert admin.alter_configs({"t": {"retention.ms": 1}}, validate_only=True) == {"t": None}
    assert not broker.cluster.topic_settings.get("t")


def test_lists_are_added_to_and_taken_from(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    admin.alter_configs(
        {
            "t": {
                "a": AlterConfigOp.append("x"),
                "b": AlterConfigOp.subtract("y"),
                "preallocate": None,
            }
        }
    )
    (request,) = broker.requests(IncrementalAlterConfigsRequest)
    (resource,) = request.resources
    found = [(each.name, each.config_operation, each.value) for each in resource.configs]
    assert found == [("a", 2, "x"), ("b", 3, "y"), ("preallocate", 1, None)]


def test_only_settings_of_the_topic_can_be_removed(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    broker.cluster.topic_settings["t"] = {"plugin.x": "5", "retention.ms": "5"}
    found = admin.alter_configs({"t": {"retention.mss": None, "y": None}, "u": {"retention.ms": 1}})
    assert isinstance(found["t"], BrokerError)
    assert str(found["t"]) == (
        "IncrementalAlterConfigs of topic 't': INVALID_CONFIG (40): It has no 'retention.mss' and "
        "no 'y' to take away. Did you mean 'retention.ms' in place of 'retention.mss'?"
    )
    assert found["u"] is None
    assert admin.alter_configs({"t": {"plugin.x": None}}) == {"t": None}
    assert isinstance(admin.alter_configs({"no": {"x": None}})["no"], TopicNotFoundError)
    assert broker.cluster.topic_settings["t"] == {"retention.ms": "5"}


def test_a_user_without_describe_may_remove_settings_of_a_topic(
    broker: MemoryBroker, admin: KafkaAdmin
) -> None:
    broker.control(DescribeConfigsRequest, error_named("TOPIC_AUTHORIZATION_FAILED"), times=None)
    assert admin.alter_configs({"t": {"plugin.x": None}}) == {"t": None}


def test_one_may_be_given_in_place_of_several(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    broker.cluster.topic_settings["t"] = {"preallocate": "true", "retention.ms": "5"}
    assert admin.describe_configs("t", "retention.ms")["t"].keys() == {"retention.ms"}
    assert admin.describe_configs(TOPIC)[TOPIC].keys() == {"preallocate", "retention.ms"}
    with pytest.raises(ConfigurationError, match="'names': has no name"):
        admin.describe_configs("t", [])


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"t": "password=1"}, "'changes': found a str. Give a dict"),
        ({"t": None}, "'changes': found a NoneType. Give a dict"),
        ({"t": {7: "x"}}, "'changes': found the name 7. Give names"),
        ({None: {"x": 1}}, "'changes': found None. Give the topic's name"),
        (["t"], "'changes': found a list. Give a dict"),
        ({"t": {"x": 1}, TOPIC: {"x": 2}}, "'changes': a resource is given twice"),
    ],
    ids=["text", "none", "name", "resource", "list", "twice"],
)
def test_what_cannot_be_a_change_is_refused(admin: KafkaAdmin, changes: Any, text: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        admin.alter_configs(changes)
    assert text in str(refused.value)


def test_a_partition_has_no_configurations(admin: KafkaAdmin) -> None:
    with pytest.raises(ConfigurationError, match=r"'resources': found TopicPartition\("):
        admin.describe_configs([T0])  # type: ignore[type-var]


def test_a_sensitive_value_is_not_shown_even_if_the_broker_sends_it(
    broker: MemoryBroker, admin: KafkaAdmin
) -> None:
    row = DescribeConfigsResourceResult("ssl.key.password", "canary", is_sensitive=True)
    result = DescribeConfigsResult(0, None, 4, "2", [row])
    broker.control(DescribeConfigsRequest, DescribeConfigsResponse(results=[result]))
    found = admin.describe_configs([BROKER])
    assert found[BROKER]["ssl.key.password"].is_sensitive
    assert "canary" not in repr(found)


def refusing(error: str, said: str) -> IncrementalAlterConfigsResponse:
    code = error_named(error).code
    rows = [AlterConfigsResourceResponse(code, said, 2, "t")]
    return IncrementalAlterConfigsResponse(responses=rows)


def test_no_error_tells_a_secret(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    broker.control(IncrementalAlterConfigsRequest, refusing("INVALID_CONFIG", "bad value canary."))
    found = admin.alter_configs({"t": {"retenton.ms": Secret("canary")}})
    assert isinstance(found["t"], BrokerError)
    assert str(found["t"]) == (
        "IncrementalAlterConfigs of topic 't': INVALID_CONFIG (40): bad value "
        "*********(redacted). Did you mean 'retention.ms' in place of 'retenton.ms'?"
    )


@pytest.mark.parametrize(
    ("given", "right"),
    [("t", "ALTER_CONFIGS on topic 't'"), (BROKER, "ALTER_CONFIGS on the cluster")],
    ids=["topic", "broker"],
)
def test_a_denial_names_the_right(
    broker: MemoryBroker, admin: KafkaAdmin, given: Any, right: str
) -> None:
    broker.control(IncrementalAlterConfigsRequest, error_named("CLUSTER_AUTHORIZATION_FAILED"))
    (error,) = admin.alter_configs({given: {"x": 1}}).values()
    assert f"the user needs {right}: have it granted" in str(error)
    broker.control(DescribeConfigsRequest, error_named("TOPIC_AUTHORIZATION_FAILED"))
    with pytest.raises(BrokerError, match="needs DESCRIBE_CONFIGS on"):
        admin.describe_configs([given])


def test_a_name_that_brokers_do_not_know_is_warned_of(
    broker: MemoryBroker, admin: KafkaAdmin, caplog: pytest.LogCaptureFixture
) -> None:
    def all_of_them(request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        rows = [
            DescribeConfigsResourceResult("log.cleaner.threads", "1", config_type=3),
            DescribeConfigsResourceResult("log.cleaner.thread", "1", config_type=0),
        ]
        name = request.resources[0].resource_name
        return DescribeConfigsResponse(results=[DescribeConfigsResult(0, None, 4, name, rows)])

    broker.control(DescribeConfigsRequest, all_of_them, times=None)
    names = {"log.cleaner.thread": 1, "listener.name.a.log.cleaner.threads": 1}
    assert admin.alter_configs({BROKER: names}) == {BROKER: None}
    assert caplog.messages == [
        "Brokers have no such configuration, and keep it without effect. Did you mean "
        "'log.cleaner.threads' in place of 'log.cleaner.thread'?"
    ]
    caplog.clear()
    admin.alter_configs({BROKER: {"log.cleaner.threads": 1}})
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


@pytest.mark.parametrize("error", ["REQUEST_TIMED_OUT", "NOT_CONTROLLER"])
def test_a_temporary_error_is_tried_again(
    broker: MemoryBroker, admin: KafkaAdmin, error: str
) -> None:
    broker.control(IncrementalAlterConfigsRequest, error_named(error), times=2)
    broker.control(DescribeConfigsRequest, error_named(error), times=2)
    assert admin.alter_configs({"t": {"retention.ms": 1}}) == {"t": None}
    assert admin.describe_configs(["t"])["t"]["retention.ms"].value == "1"


def test_what_the_answer_leaves_out_is_no_success(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    broker.control(IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse())
    with pytest.raises(ProtocolError, match="topic 't': the answer leaves it out"):
        admin.alter_configs({"t": {"retention.ms": 1}})
    broker.control(DescribeConfigsRequest, DescribeConfigsResponse())
    with pytest.raises(ProtocolError, match="topic 't': the answer leaves it out"):
        admin.describe_configs(["t"])


def test_a_timeout_of_one_keeps_the_outcome_of_the_other(
    broker: MemoryBroker, hasty: KafkaAdmin
) -> None:
    late = error_named("REQUEST_TIMED_OUT")
    broker.control(IncrementalAlterConfigsRequest, late, times=None, node_id=2)
    found = hasty.alter_configs({TOPIC: {"retention.ms": 1}, BROKER: {"x": 1}})
    assert found[TOPIC] is None
    assert isinstance(found[BROKER], KafkaTimeoutError)


def test_a_timeout_keeps_what_was_found_before(broker: MemoryBroker) -> None:
    broker.control(IncrementalAlterConfigsRequest, error_named("REQUEST_TIMED_OUT"))
    with KafkaAdmin(bootstrap_servers=address(broker), **ONE_TRY) as admin:
        found = admin.alter_configs({"t": {"retention.mss": None}, "u": {"retention.ms": 1}})
        assert "It has no 'retention.mss' to take away" in str(found["t"])
        assert isinstance(found["u"], KafkaTimeoutError)
        broker.control(IncrementalAlterConfigsRequest, error_named("REQUEST_TIMED_OUT"))
        with pytest.raises(KafkaTimeoutError):
            admin.alter_configs({"u": {"retention.ms": 1}})


def test_the_time_is_for_the_look_ups_and_the_change_together(broker: MemoryBroker) -> None:
    broker.control(DescribeConfigsRequest, Action.SILENCE, times=None)
    for timeout_ms in longer_and_longer(200):
        with (
            KafkaAdmin(
                bootstrap_servers=address(broker), default_api_timeout_ms=timeout_ms
            ) as admin,
            pytest.raises((KafkaTimeoutError, BootstrapError)),
        ):
            admin.alter_configs({each: {"plugin.x": None} for each in ("t", "u")})
        if asked := broker.requests(DescribeConfigsRequest):
            break
    assert {each.resources[0].resource_name for each in asked} == {"t"}
    assert not broker.requests(IncrementalAlterConfigsRequest)


def test_a_broker_that_is_not_up_is_refused_at_once(admin: KafkaAdmin) -> None:
    with pytest.raises(ConfigurationError, match=r"no broker 7 is up\. There are these: 0, 1, 2"):
        admin.describe_configs([ConfigResource.broker(7)])
    with pytest.raises(ConfigurationError, match="'x' has a value of type list"):
        admin.alter_configs({"t": {"x": ["a"]}})  # type: ignore[dict-item]


def test_resources_have_readable_names() -> None:
    assert [str(each) for each in (BROKER, ConfigResource.all_brokers())] == [
        "broker 2",
        "all brokers",
    ]
    assert str(ConfigResource.broker_loggers(3)) == "broker logger 3"
