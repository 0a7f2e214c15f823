"""Records for a partition's leader, and the producer id.

Produce, InitProducerId (KIP-98).
"""

import uuid

from spark_kafka_source.protocol.declaration import Request, Response, array, message, wire
from spark_kafka_source.protocol.wire import (
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRING,
    UUID,
    RecordsInPieces,
)


@message
class BatchIndexAndErrorMessage:
    """Record because of which the broker refused its batch."""

    batch_index: int = wire(INT32, "8+")
    batch_index_error_message: str | None = wire(STRING, "8+", nullable="8+", default=None)


@message
class LeaderIdAndEpoch:
    """Current leader of the partition, as far as the broker knows."""

    leader_id: int = wire(INT32, "10+", default=-1)
    leader_epoch: int = wire(INT32, "10+", default=-1)


@message
class PartitionProduceResponse:
    """Result for one partition."""

    index: int = wire(INT32, "0+")
    error_code: int = wire(INT16, "0+")
    base_offset: int = wire(INT64, "0+")
    log_append_time_ms: int = wire(INT64, "2+", default=-1, ignorable=True)
    log_start_offset: int = wire(INT64, "5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = wire(
        array(BatchIndexAndErrorMessage), "8+", ignorable=True
    )
    error_message: str | None = wire(STRING, "8+", nullable="8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = wire(LeaderIdAndEpoch, "10+", tag=0, tagged="10+")


@message
class TopicProduceResponse:
    """Partitions of one topic."""

    name: str = wire(STRING, "0-12", ignorable=True)
    topic_id: uuid.UUID = wire(UUID, "13+", ignorable=True)
    partition_responses: list[PartitionProduceResponse] = wire(
        array(PartitionProduceResponse), "0+"
    )


@message
class NodeEndpoint:
    """Address of a leader that `current_leader` names."""

    node_id: int = wire(INT32, "10+")
    host: str = wire(STRING, "10+")
    port: int = wire(INT32, "10+")
    rack: str | None = wire(STRING, "10+", nullable="10+", default=None)


@message
class ProduceResponse(Response):
    """Results for each partition."""

    responses: list[TopicProduceResponse] = wire(array(TopicProduceResponse), "0+")
    throttle_time_ms: int = wire(INT32, "1+", ignorable=True)
    node_endpoints: list[NodeEndpoint] = wire(array(NodeEndpoint), "10+", tag=0, tagged="10+")


@message
class PartitionProduceData:
    """Record batch for one partition, whole or in two pieces: its header and its records."""

    index: int = wire(INT32, "0+")
    records: RecordsInPieces | None = wire(RECORDS, "0+", nullable="0+")


@message
class TopicProduceData:
    """Topic by name (up to v12) or by id (from v13 on)."""

    name: str = wire(STRING, "0-12", ignorable=True)
    topic_id: uuid.UUID = wire(UUID, "13+", ignorable=True)
    partition_data: list[PartitionProduceData] = wire(array(PartitionProduceData), "0+")


@message
class ProduceRequest(Request[ProduceResponse]):
    """Request to append records. With `acks` of 0 the broker never answers."""

    KEY, VERSIONS, FLEXIBLE = 0, "3-13", "9+"
    transactional_id: str | None = wire(STRING, "3+", nullable="3+", default=None)
    acks: int = wire(INT16, "0+")
    timeout_ms: int = wire(INT32, "0+")
    topic_data: list[TopicProduceData] = wire(array(TopicProduceData), "0+")

    @property
    def expects_answer(self) -> bool:
        """Whether a broker answers."""
        return self.acks != 0


@message
class InitProducerIdResponse(Response):
    """Producer id and its epoch."""

    throttle_time_ms: int = wire(INT32, "0+", ignorable=True)
    error_code: int = wire(INT16, "0+")
    producer_id: int = wire(INT64, "0+", default=-1)
    producer_epoch: int = wire(INT16, "0+")


@message
class InitProducerIdRequest(Request[InitProducerIdResponse]):
    """Request for a producer id. Kafka's v6 is still unstable, and left out."""

    KEY, VERSIONS, FLEXIBLE = 22, "0-5", "2+"
    transactional_id: str | None = wire(STRING, "0+", nullable="0+")
    transaction_timeout_ms: int = wire(INT32, "0+")
    producer_id: int = wire(INT64, "3+", default=-1)
    producer_epoch: int = wire(INT16, "3+", default=-1)
