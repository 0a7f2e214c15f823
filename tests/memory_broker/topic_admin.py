"""The controller's answers to admin clients: topics and configurations made, changed and shown."""

from typing import Any

from spark_kafka_source.protocol import Request
from spark_kafka_source.protocol.messages.admin import (
    CreatableTopic,
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from spark_kafka_source.protocol.messages.alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from spark_kafka_source.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tests.memory_broker.cluster import MemoryCluster
from tests.memory_broker.coordinator import Handler, code
from tests.memory_broker.log import PartitionLog

# The kinds of resources with configurations, and the places that their values come from.
_TOPIC, _BROKER = 2, 4
_OF_TOPIC, _OF_BROKER = 1, 4


def _refusal(cluster: MemoryCluster, node_id: int) -> int:
    is_controller = node_id == min(cluster.ports)
    return cluster.refusal or (0 if is_controller else code("NOT_CONTROLLER"))


def create_topics(
    cluster: MemoryCluster, node_id: int, request: CreateTopicsRequest, version: int
) -> CreateTopicsResponse:
    """v2-7: -1 for a number of the broker's from v4 on, the new shape in the answer from v5 on."""

    def result(topic: CreatableTopic) -> CreatableTopicResult:
        error = _refusal(cluster, node_id) or _not_created(cluster, topic)
        count = max(topic.num_partitions, 1)
        if not error and not request.validate_only:
            cluster.create_topic(topic.name, count)
            settings = {each.name: each.value or "" for each in topic.configs}
            cluster.topic_settings[topic.name] = settings
        return CreatableTopicResult(
            topic.name, error_code=error, num_partitions=-1 if error else count
        )

    return CreateTopicsResponse(topics=[result(each) for each in request.topics])


def _not_created(cluster: MemoryCluster, topic: CreatableTopic) -> int:
    if topic.name in cluster.topics:
        return code("TOPIC_ALREADY_EXISTS")
    too_many = topic.replication_factor > len(cluster.ports)
    return code("INVALID_REPLICATION_FACTOR") if too_many else 0


def delete_topics(
    cluster: MemoryCluster, node_id: int, request: DeleteTopicsRequest, version: int
) -> DeleteTopicsResponse:
    """v1-5, by name."""

    def result(name: str) -> DeletableTopicResult:
        unknown = 0 if name in cluster.topics else code("UNKNOWN_TOPIC_OR_PARTITION")
        error = _refusal(cluster, node_id) or unknown
        if not error:
            del cluster.topics[name]
        return DeletableTopicResult(name, error_code=error)

    return DeleteTopicsResponse(responses=[result(each) for each in request.topic_names])


def create_partitions(
    cluster: MemoryCluster, node_id: int, request: CreatePartitionsRequest, version: int
) -> CreatePartitionsResponse:
    """v0-3."""

    def result(topic: CreatePartitionsTopic) -> CreatePartitionsTopicResult:
        error = _refusal(cluster, node_id) or _not_grown(cluster, topic)
        if not error and not request.validate_only:
            logs = cluster.topics[topic.name].logs
            logs += [PartitionLog(each % cluster.nodes) for each in range(len(logs), topic.count)]
        return CreatePartitionsTopicResult(topic.name, error)

    return CreatePartitionsResponse(results=[result(each) for each in request.topics])


def _not_grown(cluster: MemoryCluster, topic: CreatePartitionsTopic) -> int:
    if topic.name not in cluster.topics:
        return code("UNKNOWN_TOPIC_OR_PARTITION")
    is_growth = topic.count > len(cluster.topics[topic.name].logs)
    return 0 if is_growth else code("INVALID_PARTITIONS")


def describe_configs(
    cluster: MemoryCluster, node_id: int, request: DescribeConfigsRequest, version: int
) -> DescribeConfigsResponse:
    """v1-4, of topics, and of this node only."""
    return DescribeConfigsResponse(
        results=[_described(cluster, node_id, each) for each in request.resources]
    )


def _described(
    cluster: MemoryCluster, node_id: int, asked: DescribeConfigsResource
) -> DescribeConfigsResult:
    is_topic = asked.resource_type == _TOPIC
    error = cluster.refusal or _no_resource(cluster, node_id, is_topic, asked.resource_name)
    of_topic = cluster.topic_settings.get(asked.resource_name, {})
    settings = {} if error else of_topic if is_topic else cluster.broker_settings
    return DescribeConfigsResult(
        error_code=error,
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
        configs=[
            DescribeConfigsResourceResult(
                name, value, config_source=_OF_TOPIC if is_topic else _OF_BROKER
            )
            for name, value in settings.items()
            if asked.configuration_keys is None or name in asked.configuration_keys
        ],
    )


def _no_resource(cluster: MemoryCluster, node_id: int, is_topic: bool, name: str) -> int:
    if is_topic:
        return 0 if name in cluster.topics else code("UNKNOWN_TOPIC_OR_PARTITION")
    return 0 if name == str(node_id) else code("INVALID_REQUEST")


def alter_configs(
    cluster: MemoryCluster, node_id: int, request: IncrementalAlterConfigsRequest, version: int
) -> IncrementalAlterConfigsResponse:
    """v0-1. It sets and deletes values, of topics, and of this node only."""

    def result(changed: AlterConfigsResource) -> AlterConfigsResourceResponse:
        name, is_topic = changed.resource_name, changed.resource_type == _TOPIC
        error = cluster.refusal or _no_resource(cluster, node_id, is_topic, name)
        if not error and not request.validate_only:
            of_topic = cluster.topic_settings.setdefault(name, {})
            settings = of_topic if is_topic else cluster.broker_settings
            for each in changed.configs:
                settings.pop(each.name, None)
                if each.value is not None:
                    settings[each.name] = each.value
        return AlterConfigsResourceResponse(error, None, changed.resource_type, name)

    return IncrementalAlterConfigsResponse(responses=[result(each) for each in request.resources])


TOPIC_ADMIN_HANDLERS: dict[type[Request[Any]], Handler] = {
    CreatePartitionsRequest: create_partitions,
    CreateTopicsRequest: create_topics,
    DeleteTopicsRequest: delete_topics,
    DescribeConfigsRequest: describe_configs,
    IncrementalAlterConfigsRequest: alter_configs,
}
