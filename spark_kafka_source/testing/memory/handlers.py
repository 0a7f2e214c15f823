"""One small handler per API: it takes a request and returns a broker's answer."""

import re
from typing import Any
from uuid import UUID

from spark_kafka_source.client import CoordinatorKind
from spark_kafka_source.errors import ErrorCode, error_named
from spark_kafka_source.options.kinds import TOPIC_NAME
from spark_kafka_source.protocol import Request
from spark_kafka_source.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
)
from spark_kafka_source.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from spark_kafka_source.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from spark_kafka_source.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from spark_kafka_source.protocol.messages.membership import ConsumerGroupHeartbeatRequest
from spark_kafka_source.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from spark_kafka_source.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from spark_kafka_source.protocol.messages.produce import ProduceRequest
from spark_kafka_source.testing.memory.answers import code
from spark_kafka_source.testing.memory.cluster import HOST, MemoryCluster
from spark_kafka_source.testing.memory.consumer_coordinator import consumer_group_heartbeat
from spark_kafka_source.testing.memory.coordinator import GROUP_HANDLERS, Handler
from spark_kafka_source.testing.memory.group_admin import GROUP_ADMIN_HANDLERS
from spark_kafka_source.testing.memory.group_offsets import OFFSET_HANDLERS
from spark_kafka_source.testing.memory.log import PartitionLog
from spark_kafka_source.testing.memory.produce import produce
from spark_kafka_source.testing.memory.sessions import Context, FetchSessions, Place
from spark_kafka_source.testing.memory.telemetry import TELEMETRY_HANDLERS
from spark_kafka_source.testing.memory.topic_admin import TOPIC_ADMIN_HANDLERS, name_error
from spark_kafka_source.testing.memory.transaction_admin import TRANSACTION_ADMIN_HANDLERS
from spark_kafka_source.testing.memory.transactions import TRANSACTION_HANDLERS


def api_versions(
    cluster: MemoryCluster, node_id: int, request: ApiVersionsRequest, version: int
) -> ApiVersionsResponse:
    """v0-5. The answer to an unsupported version lists the supported versions (KIP-511)."""
    known = version in cluster.versions[ApiVersionsRequest.KEY]
    error_code = cluster.refusal or (0 if known else code("UNSUPPORTED_VERSION"))
    if not error_code and _is_meant_for_another(cluster, node_id, request):
        return ApiVersionsResponse(error_code=code("REBOOTSTRAP_REQUIRED"))
    return ApiVersionsResponse(
        error_code=error_code,
        api_keys=[
            ApiVersion(key, spoken.lowest, spoken.highest)
            for key, spoken in cluster.versions.items()
            if spoken and (not error_code or key == ApiVersionsRequest.KEY)
        ],
        finalized_features=[
            FinalizedFeatureKey(name, level, level) for name, level in cluster.features.items()
        ],
    )


def _is_meant_for_another(
    cluster: MemoryCluster, node_id: int, request: ApiVersionsRequest
) -> bool:
    is_other_node = request.node_id not in (-1, node_id)
    return is_other_node or request.cluster_id not in (None, cluster.cluster_id)


def metadata(
    cluster: MemoryCluster, node_id: int, request: MetadataRequest, version: int
) -> MetadataResponse:
    """v1-13, by name. From v10 on also by topic id. Null topics mean all topics."""
    asked = [MetadataRequestTopic(name=each) for each in cluster.topics]
    if request.topics is not None:
        asked = request.topics
    answer = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node, HOST, port, cluster.racks.get(node))
            for node, port in cluster.ports.items()
        ],
        cluster_id=cluster.cluster_id,
        controller_id=min(cluster.ports, default=-1),
        topics=[_describe_asked(cluster, each) for each in asked],
    )
    if request.allow_auto_topic_creation and cluster.creates_topics and not cluster.refusal:
        for each in asked:
            _create(cluster, each.name)  # The next request finds it.
    return answer


def _create(cluster: MemoryCluster, name: str | None) -> None:
    if name is not None and name not in cluster.topics and not name_error(cluster, name):
        cluster.create_topic(name, replication_factor=cluster.default_replication_factor)


def _describe_asked(cluster: MemoryCluster, asked: MetadataRequestTopic) -> MetadataResponseTopic:
    name = cluster.name_of(asked.topic_id) if asked.name is None else asked.name
    if name is None:
        return MetadataResponseTopic(code("UNKNOWN_TOPIC_ID"), None, asked.topic_id)
    return _describe(cluster, name)


def _describe(cluster: MemoryCluster, name: str) -> MetadataResponseTopic:
    topic = cluster.topics.get(name)
    if cluster.refusal or topic is None:
        is_name = re.fullmatch(TOPIC_NAME, name)
        unknown = code("UNKNOWN_TOPIC_OR_PARTITION" if is_name else "INVALID_TOPIC_EXCEPTION")
        return MetadataResponseTopic(cluster.refusal or unknown, name)
    partitions = [
        MetadataResponsePartition(
            error_code=0 if log.leader_id in cluster.ports else code("LEADER_NOT_AVAILABLE"),
            partition_index=index,
            leader_id=log.leader_id if log.leader_id in cluster.ports else -1,
            leader_epoch=log.leader_epoch,
            replica_nodes=cluster.replicas(topic, log),
            isr_nodes=[each for each in cluster.replicas(topic, log) if each in cluster.ports],
        )
        for index, log in enumerate(topic.logs)
    ]
    is_internal = name == "__consumer_offsets"
    return MetadataResponseTopic(0, name, topic.topic_id, is_internal, partitions)


def _refusal(
    cluster: MemoryCluster,
    log: PartitionLog | None,
    node_id: int,
    current_leader_epoch: int,
    *,
    log_reader: bool = False,
) -> int:
    """Return why this node refuses a partition (KIP-320), or 0. Replicas may be read from."""
    if cluster.refusal:
        return cluster.refusal
    if log is None:
        return code("UNKNOWN_TOPIC_OR_PARTITION")
    if log.leader_id != node_id and not (log_reader and node_id in log.replicas_by_rack.values()):
        return code("NOT_LEADER_OR_FOLLOWER")
    if 0 <= current_leader_epoch < log.leader_epoch:
        return code("FENCED_LEADER_EPOCH")
    return code("UNKNOWN_LEADER_EPOCH") if current_leader_epoch > log.leader_epoch else 0


def list_offsets(
    cluster: MemoryCluster, node_id: int, request: ListOffsetsRequest, version: int
) -> ListOffsetsResponse:
    """v1-11, by a time in ms, -2 (earliest) or -1 (latest; last stable with READ_COMMITTED).

    From v4 on the answer has the leader epoch. From v7 on -3 means the record with the greatest
    time. From v8 on -4 means the first local offset, from v9 on -5 the last in remote storage, from
    v11 on -6 the first that is to be uploaded. No log here has remote storage.
    """
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                topic.name,
                [
                    _list_offset(cluster, node_id, topic.name, each, request.isolation_level)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _list_offset(
    cluster: MemoryCluster,
    node_id: int,
    topic: str,
    asked: ListOffsetsPartition,
    isolation_level: int,
) -> ListOffsetsPartitionResponse:
    log = cluster.log(topic, asked.partition_index)
    refusal = _refusal(cluster, log, node_id, asked.current_leader_epoch)
    if refusal or log is None:
        return ListOffsetsPartitionResponse(asked.partition_index, refusal)
    timestamp, offset = _offset_for(log, asked.timestamp, log.visible_end(isolation_level))
    leader_epoch = log.leader_epoch if asked.timestamp == -1 else log.epoch_of(offset)
    return ListOffsetsPartitionResponse(asked.partition_index, 0, timestamp, offset, leader_epoch)


def _offset_for(log: PartitionLog, asked: int, visible_end: int) -> tuple[int, int]:
    """Return the time, if there is one, and the offset for a time in ms or one of Kafka's codes."""
    ends = {-1: visible_end, -2: log.log_start_offset, -4: log.log_start_offset, -5: -1, -6: -1}
    if asked in ends:
        return -1, ends[asked]
    timestamp, offset = log.greatest_time() if asked == -3 else log.offset_at(asked)
    return (timestamp, offset) if offset < visible_end else (-1, -1)


def offset_for_leader_epoch(
    cluster: MemoryCluster, node_id: int, request: OffsetForLeaderEpochRequest, version: int
) -> OffsetForLeaderEpochResponse:
    """v2-4, to a consumer (KIP-320). -1 means a later epoch than the present one."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic.topic,
                [_epoch_end(cluster, node_id, topic.topic, each) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _epoch_end(
    cluster: MemoryCluster, node_id: int, topic: str, asked: OffsetForLeaderPartition
) -> EpochEndOffset:
    log = cluster.log(topic, asked.partition)
    refusal = _refusal(cluster, log, node_id, asked.current_leader_epoch)
    if refusal or log is None:
        return EpochEndOffset(refusal, asked.partition)
    return EpochEndOffset(0, asked.partition, *log.epoch_end(asked.leader_epoch))


def fetch(
    cluster: MemoryCluster, node_id: int, request: FetchRequest, version: int
) -> FetchResponse:
    """v4-18: by topic name up to v12, by topic id from v13 on. `MemoryBroker` does the waiting."""
    context = fetch_context(cluster, node_id, request, version)
    return fetched(context, fetch_once(cluster, node_id, request, context))


def fetch_context(
    cluster: MemoryCluster, node_id: int, request: FetchRequest, version: int
) -> Context:
    """Return what to fetch, by the request or its session. Call it once for each request."""
    sessions = cluster.fetch_sessions.setdefault(node_id, FetchSessions())
    sessions.most = cluster.most_fetch_sessions
    return sessions.context(request, version)


def fetch_once(
    cluster: MemoryCluster, node_id: int, request: FetchRequest, context: Context
) -> dict[Place, PartitionData]:
    """Return the present data; repeatable. The first partition with records returns at least one
    batch. The others share the rest of `max_bytes`."""
    found: dict[Place, PartitionData] = {}
    left_bytes = request.max_bytes
    for place, asked in context.asked.items():
        data = _fetch_partition(cluster, node_id, request, _named(cluster, place, context), asked)
        is_first = left_bytes == request.max_bytes
        if not is_first and len(data.records or b"") > left_bytes:
            data.records = b""
        left_bytes = max(0, left_bytes - len(data.records or b""))
        found[place] = data
    return found


def _named(cluster: MemoryCluster, place: Place, context: Context) -> str | ErrorCode:
    """Return the topic's name, or the error of its id. A session keeps the name it first saw."""
    if place.topic:
        return place.topic
    former = context.names.get(place.topic_id)
    name = context.names[place.topic_id] = former or cluster.name_of(place.topic_id)
    if name is None:
        return error_named("UNKNOWN_TOPIC_ID")
    topic = cluster.topics.get(name)
    if topic is not None and topic.topic_id != place.topic_id:
        return error_named("INCONSISTENT_TOPIC_ID")
    return name


def fetched(context: Context, found: dict[Place, PartitionData]) -> FetchResponse:
    """Return the answer. In a session it has only changed partitions."""
    context.said(found)
    topics: dict[tuple[str, UUID], FetchableTopicResponse] = {}
    for place, data in found.items():
        key = place.topic, place.topic_id
        topics.setdefault(key, FetchableTopicResponse(*key, [])).partitions.append(data)
    return FetchResponse(
        error_code=context.error_code,
        session_id=context.session_id,
        responses=list(topics.values()),
    )


def _fetch_partition(
    cluster: MemoryCluster,
    node_id: int,
    request: FetchRequest,
    name: str | ErrorCode,
    asked: FetchPartition,
) -> PartitionData:
    if isinstance(name, ErrorCode):
        return _refused(asked, cluster.refusal or name.code)
    log = cluster.log(name, asked.partition)
    refusal = _refusal(cluster, log, node_id, asked.current_leader_epoch, log_reader=True)
    if log and not refusal and not log.log_start_offset <= asked.fetch_offset <= log.end_offset:
        refusal = code("OFFSET_OUT_OF_RANGE")
    if refusal or log is None:
        return _refused(asked, refusal)
    aborted = [
        AbortedTransaction(each.producer_id, each.first_offset)
        for each in log.aborted_since(asked.fetch_offset)
    ]
    preferred = log.preferred_replica(node_id, request.rack_id)
    visible_end = log.visible_end(request.isolation_level)
    most_bytes = min(asked.partition_max_bytes, request.max_bytes)
    return PartitionData(
        asked.partition,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        aborted_transactions=aborted if request.isolation_level else None,
        preferred_read_replica=preferred,
        records=b"" if preferred >= 0 else log.read(asked.fetch_offset, visible_end, most_bytes),
    )


def _refused(asked: FetchPartition, error_code: int) -> PartitionData:
    return PartitionData(asked.partition, error_code, -1, records=b"")


def find_coordinator(
    cluster: MemoryCluster, node_id: int, request: FindCoordinatorRequest, version: int
) -> FindCoordinatorResponse:
    """v0-3: one key. v4-6: several keys (KIP-699)."""
    if version >= 4:
        keys = request.coordinator_keys
        return FindCoordinatorResponse(
            coordinators=[_coordinator(cluster, request.key_type, key) for key in keys]
        )
    found = _coordinator(cluster, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=found.error_code, node_id=found.node_id, host=found.host, port=found.port
    )


def _coordinator(cluster: MemoryCluster, key_type: int, key: str) -> Coordinator:
    is_known = key_type in {each.value for each in CoordinatorKind}
    if error := cluster.refusal or (0 if is_known else code("INVALID_REQUEST")):
        return Coordinator(key, -1, "", -1, error)
    of_group = key_type == CoordinatorKind.GROUP.value
    node_id = cluster.coordinator(key) if of_group else cluster.transaction_coordinator(key)
    return Coordinator(key, node_id, HOST, cluster.ports[node_id])


HANDLERS: dict[type[Request[Any]], Handler] = {
    **GROUP_HANDLERS,
    **GROUP_ADMIN_HANDLERS,
    **OFFSET_HANDLERS,
    **TOPIC_ADMIN_HANDLERS,
    **TRANSACTION_HANDLERS,
    **TRANSACTION_ADMIN_HANDLERS,
    **TELEMETRY_HANDLERS,
    ConsumerGroupHeartbeatRequest: consumer_group_heartbeat,
    ApiVersionsRequest: api_versions,
    FetchRequest: fetch,
    FindCoordinatorRequest: find_coordinator,
    ListOffsetsRequest: list_offsets,
    MetadataRequest: metadata,
    ProduceRequest: produce,
    OffsetForLeaderEpochRequest: offset_for_leader_epoch,
}
