"""The controller's answers to admin clients: topics and configurations made, changed and shown."""

import re
from typing import Any

from spark_kafka_source.admin.refusals import TOPIC_CONFIGS
from spark_kafka_source.options.kinds import TOPIC_NAME
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
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
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
from spark_kafka_source.testing.memory.answers import code
from spark_kafka_source.testing.memory.cluster import MemoryCluster
from spark_kafka_source.testing.memory.coordinator import Handler
from spark_kafka_source.testing.memory.log import PartitionLog

# The kinds of resources with configurations, and the places that their values come from.
_TOPIC, _BROKER = 2, 4
_OF_TOPIC, _OF_BROKER = 1, 4

# A number that the client leaves to the broker.
_DEFAULT = -1
# The ends of the names of configurations whose values are whole numbers.
_NUMBERS = (".ms", ".bytes", ".level", "flush.messages", "min.insync.replicas")


def _refusal(cluster: MemoryCluster, node_id: int) -> int:
    is_controller = node_id == min(cluster.ports)
    return cluster.refusal or (0 if is_controller else code("NOT_CONTROLLER"))


def create_topics(
    cluster: MemoryCluster, node_id: int, request: CreateTopicsRequest, version: int
) -> CreateTopicsResponse:
    """v2-7: -1 for a number of the broker's from v4 on, the new shape in the answer from v5 on."""

    def result(topic: CreatableTopic) -> CreatableTopicResult:
        error = _refusal(cluster, node_id) or _not_created(cluster, topic)
        if error:
            return CreatableTopicResult(topic.name, error_code=error)
        assigned = sorted(topic.assignments, key=lambda each: each.partition_index)
        count, factor = len(assigned) or topic.num_partitions, topic.replication_factor
        count = 1 if count == _DEFAULT else count
        factor = cluster.default_replication_factor if factor == _DEFAULT else factor
        factor = len(assigned[0].broker_ids) if assigned else factor
        if not request.validate_only:
            logs = cluster.create_topic(topic.name, count, replication_factor=factor)
            for log, each in zip(logs, assigned, strict=False):
                log.leader_id = each.broker_ids[0]
            settings = {each.name: each.value or "" for each in topic.configs}
            cluster.topic_settings[topic.name] = settings
        return CreatableTopicResult(topic.name, num_partitions=count, replication_factor=factor)

    return CreateTopicsResponse(topics=[result(each) for each in request.topics])


def _not_created(cluster: MemoryCluster, topic: CreatableTopic) -> int:
    """Return why a topic is not created, or 0. Kafka checks in this order."""
    if error := name_error(cluster, topic.name):
        return error
    if topic.name in cluster.topics:
        return code("TOPIC_ALREADY_EXISTS")
    if any(_is_bad_config(each.name, each.value) for each in topic.configs):
        return code("INVALID_CONFIG")
    return _shape_error(cluster, topic)


def _shape_error(cluster: MemoryCluster, topic: CreatableTopic) -> int:
    """Return why no topic can have these numbers of partitions and replicas, or 0."""
    if topic.assignments:
        assigned = [each.broker_ids for each in topic.assignments]
        is_known = all(ids and set(ids) <= set(cluster.node_ids) for ids in assigned)
        return 0 if is_known else code("INVALID_REPLICA_ASSIGNMENT")
    if not (topic.replication_factor == _DEFAULT or topic.replication_factor > 0):
        return code("INVALID_REPLICATION_FACTOR")
    if not (topic.num_partitions == _DEFAULT or topic.num_partitions > 0):
        return code("INVALID_PARTITIONS")
    too_many = topic.replication_factor > len(cluster.ports)
    return code("INVALID_REPLICATION_FACTOR") if too_many else 0


def name_error(cluster: MemoryCluster, name: str) -> int:
    """Return why no topic can have this name, or 0. Metrics need one of '.' and '_' only."""
    alike = name.replace(".", "_")
    collides = any(each != name and each.replace(".", "_") == alike for each in cluster.topics)
    is_bad = collides or not re.fullmatch(TOPIC_NAME, name)
    return code("INVALID_TOPIC_EXCEPTION") if is_bad else 0


def _is_bad_config(name: str, value: str | None) -> bool:
    """Whether a topic has no such configuration, or the value is no number where it must be one."""
    if name not in TOPIC_CONFIGS or value is None:
        return True
    return name.endswith(_NUMBERS) and not re.fullmatch(r"\s*[+-]?[0-9]+\s*", value)


def delete_topics(
    cluster: MemoryCluster, node_id: int, request: DeleteTopicsRequest, version: int
) -> DeleteTopicsResponse:
    """v1-5, by name."""

    def result(name: str) -> DeletableTopicResult:
        unknown = 0 if name in cluster.topics else code("UNKNOWN_TOPIC_OR_PARTITION")
        error = _refusal(cluster, node_id) or unknown
        if not error:
            cluster.delete_topic(name)
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
            new = range(len(logs), topic.count)
            logs += [PartitionLog(cluster.new_leader(each)) for each in new]
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
        given = [each for each in changed.configs if each.value is not None]
        if is_topic and not error and any(_is_bad_config(each.name, each.value) for each in given):
            error = code("INVALID_CONFIG")
        if not error and not request.validate_only:
            of_topic = cluster.topic_settings.setdefault(name, {})
            settings = of_topic if is_topic else cluster.broker_settings
            for each in changed.configs:
                settings.pop(each.name, None)
                if each.value is not None:
                    settings[each.name] = each.value
        return AlterConfigsResourceResponse(error, None, changed.resource_type, name)

    return IncrementalAlterConfigsResponse(responses=[result(each) for each in request.resources])


def delete_records(
    cluster: MemoryCluster, node_id: int, request: DeleteRecordsRequest, version: int
) -> DeleteRecordsResponse:
    """v0-2. -1 means the high watermark."""

    def result(topic: str, asked: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
        log = cluster.log(topic, asked.partition_index)
        if log is None or cluster.refusal:
            error = cluster.refusal or code("UNKNOWN_TOPIC_OR_PARTITION")
            return DeleteRecordsPartitionResult(asked.partition_index, -1, error)
        before = log.high_watermark if asked.offset == -1 else asked.offset
        error = 0 if log.leader_id == node_id else code("NOT_LEADER_OR_FOLLOWER")
        if not error and not 0 <= before <= log.high_watermark:
            error = code("OFFSET_OUT_OF_RANGE")
        if not error:
            log.log_start_offset = max(before, log.log_start_offset)
        low_watermark = -1 if error else log.log_start_offset
        return DeleteRecordsPartitionResult(asked.partition_index, low_watermark, error)

    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(each.name, [result(each.name, one) for one in each.partitions])
            for each in request.topics
        ]
    )


TOPIC_ADMIN_HANDLERS: dict[type[Request[Any]], Handler] = {
    CreatePartitionsRequest: create_partitions,
    CreateTopicsRequest: create_topics,
    DeleteRecordsRequest: delete_records,
    DeleteTopicsRequest: delete_topics,
    DescribeConfigsRequest: describe_configs,
    IncrementalAlterConfigsRequest: alter_configs,
}
