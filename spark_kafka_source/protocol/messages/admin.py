"""Creation, deletion and growth of topics, and deletion of records.

CreateTopics, DeleteTopics (KIP-4), CreatePartitions (KIP-195), DeleteRecords (KIP-107).
"""

import uuid

from spark_kafka_source.protocol.declaration import Request, Response, array, message, wire
from spark_kafka_source.protocol.wire import BOOLEAN, INT8, INT16, INT32, INT64, STRING, UUID


@message
class CreatableTopicConfigs:
    """Resulting configuration of the new topic."""

    name: str = wire(STRING, "5+")
    value: str | None = wire(STRING, "5+", nullable="5+")
    read_only: bool = wire(BOOLEAN, "5+")
    config_source: int = wire(INT8, "5+", default=-1, ignorable=True)
    is_sensitive: bool = wire(BOOLEAN, "5+")


@message
class CreatableTopicResult:
    """Result for one topic. The topic's shape is present from v5 on."""

    name: str = wire(STRING, "0+")
    topic_id: uuid.UUID = wire(UUID, "7+", ignorable=True)
    error_code: int = wire(INT16, "0+")
    error_message: str | None = wire(STRING, "1+", nullable="0+", ignorable=True)
    topic_config_error_code: int = wire(INT16, "5+", tag=0, tagged="5+", ignorable=True)
    num_partitions: int = wire(INT32, "5+", default=-1, ignorable=True)
    replication_factor: int = wire(INT16, "5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = wire(
        array(CreatableTopicConfigs), "5+", nullable="5+", ignorable=True
    )


@message
class CreateTopicsResponse(Response):
    """Results for each topic."""

    throttle_time_ms: int = wire(INT32, "2+", ignorable=True)
    topics: list[CreatableTopicResult] = wire(array(CreatableTopicResult), "0+")


@message
class CreatableReplicaAssignment:
    """Brokers that hold one partition."""

    partition_index: int = wire(INT32, "0+")
    broker_ids: list[int] = wire(array(INT32), "0+")


@message
class CreatableTopicConfig:
    """Requested configuration of the new topic."""

    name: str = wire(STRING, "0+")
    value: str | None = wire(STRING, "0+", nullable="0+")


@message
class CreatableTopic:
    """Topic to create. -1 leaves a number to the assignments, or from v4 on to the broker."""

    name: str = wire(STRING, "0+")
    num_partitions: int = wire(INT32, "0+")
    replication_factor: int = wire(INT16, "0+")
    assignments: list[CreatableReplicaAssignment] = wire(array(CreatableReplicaAssignment), "0+")
    configs: list[CreatableTopicConfig] = wire(array(CreatableTopicConfig), "0+")


@message
class CreateTopicsRequest(Request[CreateTopicsResponse]):
    """Request to create these topics. Send it to the controller, or from Kafka 4 to any broker."""

    KEY, VERSIONS, FLEXIBLE = 19, "2-7", "5+"
    topics: list[CreatableTopic] = wire(array(CreatableTopic), "0+")
    timeout_ms: int = wire(INT32, "0+", default=60000)
    validate_only: bool = wire(BOOLEAN, "1+")


@message
class DeletableTopicResult:
    """Result for one topic."""

    name: str | None = wire(STRING, "0+", nullable="6+")
    topic_id: uuid.UUID = wire(UUID, "6+", ignorable=True)
    error_code: int = wire(INT16, "0+")
    error_message: str | None = wire(STRING, "5+", nullable="5+", default=None, ignorable=True)


@message
class DeleteTopicsResponse(Response):
    """Results for each topic."""

    throttle_time_ms: int = wire(INT32, "1+", ignorable=True)
    responses: list[DeletableTopicResult] = wire(array(DeletableTopicResult), "0+")


@message
class DeleteTopicState:
    """Topic by name or by id."""

    name: str | None = wire(STRING, "6+", nullable="6+", default=None)
    topic_id: uuid.UUID = wire(UUID, "6+")


@message
class DeleteTopicsRequest(Request[DeleteTopicsResponse]):
    """Request to delete these topics: `topic_names` up to v5, `topics` from v6 on."""

    KEY, VERSIONS, FLEXIBLE = 20, "1-6", "4+"
    topics: list[DeleteTopicState] = wire(array(DeleteTopicState), "6+")
    topic_names: list[str] = wire(array(STRING), "0-5", ignorable=True)
    timeout_ms: int = wire(INT32, "0+")


@message
class CreatePartitionsTopicResult:
    """Result for one topic."""

    name: str = wire(STRING, "0+")
    error_code: int = wire(INT16, "0+")
    error_message: str | None = wire(STRING, "0+", nullable="0+", default=None)


@message
class CreatePartitionsResponse(Response):
    """Results for each topic."""

    throttle_time_ms: int = wire(INT32, "0+")
    results: list[CreatePartitionsTopicResult] = wire(array(CreatePartitionsTopicResult), "0+")


@message
class CreatePartitionsAssignment:
    """Brokers that hold one new partition."""

    broker_ids: list[int] = wire(array(INT32), "0+")


@message
class CreatePartitionsTopic:
    """Topic, and its new total number of partitions."""

    name: str = wire(STRING, "0+")
    count: int = wire(INT32, "0+")
    assignments: list[CreatePartitionsAssignment] | None = wire(
        array(CreatePartitionsAssignment), "0+", nullable="0+"
    )


@message
class CreatePartitionsRequest(Request[CreatePartitionsResponse]):
    """Request to add partitions to these topics."""

    KEY, VERSIONS, FLEXIBLE = 37, "0-3", "2+"
    topics: list[CreatePartitionsTopic] = wire(array(CreatePartitionsTopic), "0+")
    timeout_ms: int = wire(INT32, "0+")
    validate_only: bool = wire(BOOLEAN, "0+")


@message
class DeleteRecordsPartitionResult:
    """New first offset of one partition."""

    partition_index: int = wire(INT32, "0+")
    low_watermark: int = wire(INT64, "0+")
    error_code: int = wire(INT16, "0+")


@message
class DeleteRecordsTopicResult:
    """Partitions of one topic."""

    name: str = wire(STRING, "0+")
    partitions: list[DeleteRecordsPartitionResult] = wire(array(DeleteRecordsPartitionResult), "0+")


@message
class DeleteRecordsResponse(Response):
    """Results for each partition."""

    throttle_time_ms: int = wire(INT32, "0+")
    topics: list[DeleteRecordsTopicResult] = wire(array(DeleteRecordsTopicResult), "0+")


@message
class DeleteRecordsPartition:
    """Partition, and its first offset to keep. -1 deletes all records."""

    partition_index: int = wire(INT32, "0+")
    offset: int = wire(INT64, "0+")


@message
class DeleteRecordsTopic:
    """Partitions of one topic."""

    name: str = wire(STRING, "0+")
    partitions: list[DeleteRecordsPartition] = wire(array(DeleteRecordsPartition), "0+")


@message
class DeleteRecordsRequest(Request[DeleteRecordsResponse]):
    """Request to delete all records before these offsets. Send it to each partition's leader."""

    KEY, VERSIONS, FLEXIBLE = 21, "0-2", "2+"
    topics: list[DeleteRecordsTopic] = wire(array(DeleteRecordsTopic), "0+")
    timeout_ms: int = wire(INT32, "0+")
