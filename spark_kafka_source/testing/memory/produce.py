"""Produce requests, and the leader's checks of a batch before the write."""

from dataclasses import dataclass

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from spark_kafka_source.records import BatchHeader, batches
from spark_kafka_source.testing.memory.answers import Action, code
from spark_kafka_source.testing.memory.cluster import HOST, MemoryCluster
from spark_kafka_source.testing.memory.log import PartitionLog
from spark_kafka_source.testing.memory.producers import ProducerEntry
from spark_kafka_source.testing.memory.transactions import verification_error
from spark_kafka_source.topic_partition import TopicPartition

_ACKS = (-1, 0, 1)
_NO_OFFSET = -1
# The first versions with: the new leader (KIP-951), one name for errors of transactions
# (KIP-1050), transactions of the second generation (KIP-890), topic ids (KIP-516).
_WITH_LEADER, _KNOWS_ABORTABLE, _SECOND_GENERATION, _BY_ID = 10, 11, 12, 13


def produce(
    cluster: MemoryCluster, node_id: int, request: ProduceRequest, version: int
) -> ProduceResponse | Action:
    """v3-12 by name, v13 by id. With acks=0 there is no answer; an error closes the connection."""
    call = _Call(cluster, node_id, request, version)
    answer = ProduceResponse(responses=[call.topic(each) for each in request.topic_data])
    partitions = [each for topic in answer.responses for each in topic.partition_responses]
    if not request.acks:
        return Action.CLOSE if any(each.error_code for each in partitions) else Action.NO_ANSWER
    leaders = {each.current_leader.leader_id for each in partitions}
    answer.node_endpoints = [
        NodeEndpoint(each, HOST, cluster.ports[each], cluster.racks.get(each))
        for each in sorted(leaders & cluster.ports.keys())
    ]
    return answer


@dataclass(frozen=True)
class _Call:
    """One request to one node."""

    cluster: MemoryCluster
    node_id: int
    request: ProduceRequest
    version: int

    def topic(self, topic: TopicProduceData) -> TopicProduceResponse:
        name: str | None = topic.name
        if self.version >= _BY_ID:
            name = self.cluster.name_of(topic.topic_id)
        return TopicProduceResponse(
            topic.name,
            topic.topic_id,
            [self._partition(name, each) for each in topic.partition_data],
        )

    def _partition(self, name: str | None, data: PartitionProduceData) -> PartitionProduceResponse:
        answer = PartitionProduceResponse(data.index, base_offset=_NO_OFFSET)
        log = self.cluster.log(name or "", data.index)
        try:
            header, batch = self._checked(name, log, data)
            if log is not None:
                answer.log_start_offset = log.log_start_offset
                _write(log, header, batch, answer)
        except _RefusedError as refused:
            answer.error_code = refused.error
            has_moved = refused.error == code("NOT_LEADER_OR_FOLLOWER")
            if log is not None and has_moved and self.version >= _WITH_LEADER:
                answer.current_leader = LeaderIdAndEpoch(log.leader_id, log.leader_epoch)
        return answer

    def _checked(
        self, name: str | None, log: PartitionLog | None, data: PartitionProduceData
    ) -> tuple[BatchHeader, bytes]:
        """Return the log for one batch: this node leads it, and the transaction is right."""
        _refuse(self.cluster.refusal)
        _refuse("UNKNOWN_TOPIC_ID" if name is None else 0)
        _refuse(0 if self.request.acks in _ACKS else "INVALID_REQUIRED_ACKS")
        if name is None or log is None:
            raise _RefusedError(code("UNKNOWN_TOPIC_OR_PARTITION"))
        _refuse(0 if log.leader_id == self.node_id else "NOT_LEADER_OR_FOLLOWER")
        assert not isinstance(data.records, tuple), "pieces are what is sent, not what comes in"
        batch, where = bytes(data.records or b""), TopicPartition(name, data.index)
        header = _header(where, batch)
        _refuse("MESSAGE_TOO_LARGE" if len(batch) > self.cluster.max_message_bytes else 0)
        _refuse(self._transaction_error(log, header, where))
        return header, batch

    def _transaction_error(
        self, log: PartitionLog, header: BatchHeader, where: TopicPartition
    ) -> int:
        """Return the coordinator's error. The leader asks before a transaction's first batch."""
        if not header.is_transactional or header.producer_id < 0:
            return 0
        entry = log.producers.setdefault(header.producer_id, ProducerEntry())
        if entry.has_transaction(header.producer_epoch):
            return 0
        entry.await_beginning(header)
        error = verification_error(
            self.cluster,
            self.request.transactional_id,
            header,
            where,
            adds=self.version >= _SECOND_GENERATION,
        )
        if error == code("TRANSACTION_ABORTABLE") and self.version < _KNOWS_ABORTABLE:
            return code("INVALID_TXN_STATE")
        return error


def _write(
    log: PartitionLog, header: BatchHeader, batch: bytes, answer: PartitionProduceResponse
) -> None:
    """Write a batch. A duplicate is not written: its answer has the first one's offset and time."""
    if header.producer_id >= 0:
        entry = log.producers.get(header.producer_id, ProducerEntry())
        if known := entry.duplicate(header):
            answer.base_offset, answer.log_append_time_ms = known.base_offset, known.timestamp_ms
            return
        _refuse(entry.refusal(header))
    answer.base_offset = log.produce(batch)


class _RefusedError(Exception):
    """The reason why a batch is not written."""

    def __init__(self, error: int) -> None:
        super().__init__(error)
        self.error = error


def _refuse(error: int | str) -> None:
    """Raise by the error's name or code, unless the code is 0."""
    if error:
        raise _RefusedError(code(error) if isinstance(error, str) else error)


def _header(where: TopicPartition, batch: bytes) -> BatchHeader:
    """Return the batch's header. The bytes must be exactly one whole batch."""
    try:
        found = [header for header, _ in batches(memoryview(batch), where)]
    except KafkaError:
        found = []
    _refuse(0 if len(found) == 1 and found[0].size == len(batch) else "CORRUPT_MESSAGE")
    return found[0]
