"""Errors of a consumer and an admin client name their arguments."""

from typing import Any

import pytest

from spark_kafka_source import KafkaAdmin, KafkaConsumer
from spark_kafka_source.errors import (
    BootstrapError,
    BrokerError,
    ConfigurationError,
    KafkaError,
    error_named,
)
from spark_kafka_source.protocol.messages.groups import OffsetCommitRequest, OffsetFetchRequest
from spark_kafka_source.protocol.messages.membership import JoinGroupRequest
from spark_kafka_source.testing.memory import MemoryBroker
from tests.consumer.consumers import IN_GROUP, T0, consuming, eventually

pytestmark = pytest.mark.memory(nodes=3)

NOWHERE = "127.0.0.1:1"


def said(error: KafkaError) -> str:
    """Return an error's text. Check that it names no Spark option."""
    assert "kafka." not in str(error)
    return str(error)


@pytest.mark.parametrize("name", ["bootstrap_servers", "bootstrap.servers"])
@pytest.mark.parametrize("front", [KafkaConsumer, KafkaAdmin])
def test_nobody_there(front: type[KafkaConsumer] | type[KafkaAdmin], name: str) -> None:
    # The pause after the first try is longer than the remaining time.
    pauses = {"retry_backoff_ms": 3_600_000, "retry_backoff_max_ms": 3_600_000}
    given: dict[str, Any] = {name: NOWHERE, **pauses}
    with front(**given) as made, pytest.raises(BootstrapError) as caught:
        made.list_topics()
    assert said(caught.value).startswith(f"No broker of '{name}' could be reached; tried 127.")


def test_settings_that_are_not_given_have_the_form_of_those_that_are() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"client.id": "x"}, "bootstrap.servers"),
        ({"client_id": "x"}, "bootstrap_servers"),
        ({}, "bootstrap_servers"),
    ]
    for given, missing in cases:
        with pytest.raises(ConfigurationError, match="is missing") as caught:
            KafkaConsumer(**given)
        assert caught.value.option == missing


def test_a_right_that_is_missing(broker: MemoryBroker) -> None:
    broker.create_topic("t")
    broker.control(OffsetFetchRequest, error_named("GROUP_AUTHORIZATION_FAILED"), times=None)
    with consuming(broker, T0, **IN_GROUP) as consumer, pytest.raises(BrokerError) as caught:
        consumer.committed([T0])
    assert said(caught.value).endswith("or give another 'group_id'")


def test_the_advice_for_an_error_of_the_groups_own_thread(broker: MemoryBroker) -> None:
    broker.create_topic("t")
    broker.control(JoinGroupRequest, error_named("INCONSISTENT_GROUP_PROTOCOL"), times=None)
    with consuming(broker, **IN_GROUP) as consumer:
        consumer.subscribe(["t"])
        with pytest.raises(BrokerError) as caught:
            eventually(lambda: bool(consumer.poll(50)))
    assert said(caught.value).endswith("'partition_assignment_strategy' and 'group_protocol'")


def test_what_a_callback_is_told_of_a_commit(broker: MemoryBroker) -> None:
    broker.create_topic("t")
    broker.control(OffsetCommitRequest, error_named("GROUP_AUTHORIZATION_FAILED"), times=None)
    told: list[Any] = []
    with consuming(broker, T0, **IN_GROUP) as consumer:
        consumer.commit_async({T0: 1}, lambda _, error: told.append(error))
        eventually(lambda: bool(consumer.poll(0)) or bool(told))
    assert said(told[0]).endswith("or give another 'group_id'")


def test_without_a_group(broker: MemoryBroker) -> None:
    broker.create_topic("t")
    with consuming(broker, T0) as consumer:
        with pytest.raises(ConfigurationError) as caught:
            consumer.commit()
        assert said(caught.value).startswith("Option 'group_id': is missing")
        with pytest.raises(ConfigurationError, match="Give a 'group_id' and 'consumer' as its 'g"):
            consumer.subscribe(server_pattern="t.*")
