"""All error codes of Kafka as answers about a group or a topic. None is ignored."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from spark_kafka_source import KafkaAdmin
from spark_kafka_source.admin import GroupNotEmptyError, GroupNotFoundError, TopicExistsError
from spark_kafka_source.errors import (
    ERRORS,
    ErrorCode,
    KafkaError,
    TopicNotFoundError,
    error_code,
)
from spark_kafka_source.protocol import Request
from spark_kafka_source.protocol.messages.admin import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from spark_kafka_source.protocol.messages.alter_configs import IncrementalAlterConfigsRequest
from spark_kafka_source.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
)
from spark_kafka_source.protocol.messages.describe_configs import DescribeConfigsRequest
from spark_kafka_source.protocol.messages.group_admin import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
    OffsetDeleteRequest,
)
from spark_kafka_source.protocol.messages.groups import OffsetFetchRequest
from spark_kafka_source.testing.memory import MemoryBroker
from tests.admin.conftest import T0

CODES = [error for error in ERRORS.values() if error.code] + [error_code(999)]
NOT_FOUND, NOT_EMPTY = "GROUP_ID_NOT_FOUND", {"NON_EMPTY_GROUP", "UNKNOWN_MEMBER_ID"}

SETTING = {"retention.ms": 5}

CALLS: dict[type[Request[Any]], Callable[[KafkaAdmin], object]] = {
    ListGroupsRequest: lambda admin: admin.list_groups(),
    DescribeGroupsRequest: lambda admin: admin.describe_group("g"),
    ConsumerGroupDescribeRequest: lambda admin: admin.describe_group("g"),
    OffsetFetchRequest: lambda admin: admin.group_lag("g"),
    DeleteGroupsRequest: lambda admin: admin.delete_group("g"),
    OffsetDeleteRequest: lambda admin: admin.delete_offsets("g", [T0]),
}

OF_TOPICS: dict[type[Request[Any]], Callable[[KafkaAdmin], object]] = {
    CreateTopicsRequest: lambda admin: admin.create_topic("new", validate_only=True),
    CreatePartitionsRequest: lambda admin: only(
        admin.create_partitions({"t": 9}, validate_only=True)
    ),
    DeleteTopicsRequest: lambda admin: admin.delete_topic("d"),
    DescribeConfigsRequest: lambda admin: admin.describe_configs(["t"]),
    IncrementalAlterConfigsRequest: lambda admin: only(admin.alter_configs({"t": SETTING})),
}


def only(errors: Mapping[str, KafkaError | None]) -> None:
    """Raise the error of the only topic."""
    for error in errors.values():
        if error is not None:
            raise error


def raised(call: Callable[[KafkaAdmin], object], admin: KafkaAdmin) -> KafkaError | None:
    try:
        call(admin)
    except KafkaError as error:
        return error
    return None


def is_told(request_type: type[Request[Any]], error: ErrorCode, found: KafkaError | None) -> bool:
    # Then the group is a classic one, or has no offsets.
    nothing = (ConsumerGroupDescribeRequest, OffsetFetchRequest)
    if error.name == NOT_FOUND and request_type in nothing:
        return found is None
    if error.retriable:
        return found is None
    if request_type is not ListGroupsRequest:
        if error.name == NOT_FOUND:
            return isinstance(found, GroupNotFoundError)
        if error.name in NOT_EMPTY:
            return isinstance(found, GroupNotEmptyError)
    return f"{error}" in str(found)


@pytest.mark.parametrize("request_type", CALLS, ids=lambda each: each.__name__)
def test_an_error_is_tried_again_or_raised_by_its_name(
    broker: MemoryBroker, admin: KafkaAdmin, request_type: type[Request[Any]]
) -> None:
    silent = []
    for error in CODES:
        broker.cluster.committed["g"] = {T0: 1}
        broker.control(request_type, error)
        found = raised(CALLS[request_type], admin)
        if not is_told(request_type, error, found):
            silent.append((error.name, found))
    assert not silent


@pytest.mark.parametrize("request_type", OF_TOPICS, ids=lambda each: each.__name__)
def test_an_error_of_a_topic_is_tried_again_or_is_its_outcome(
    broker: MemoryBroker, admin: KafkaAdmin, request_type: type[Request[Any]]
) -> None:
    silent = []
    for error in CODES:
        broker.create_topic("d")
        broker.control(request_type, error)
        found = raised(OF_TOPICS[request_type], admin)
        unknown = error.name == "UNKNOWN_TOPIC_OR_PARTITION"
        is_told = found is None if error.retriable and not unknown else f"{error}" in str(found)
        if unknown and request_type is not CreateTopicsRequest:
            is_told = isinstance(found, TopicNotFoundError)
        if error.name == "TOPIC_ALREADY_EXISTS" and request_type is CreateTopicsRequest:
            is_told = isinstance(found, TopicExistsError)
        if not is_told:
            silent.append((error.name, found))
    assert not silent
