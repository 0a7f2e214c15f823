"""A former coordinator of the decisions' group, in memory."""

from dataclasses import dataclass, field

from spark_kafka_source.errors import error_named
from spark_kafka_source.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from spark_kafka_source.protocol.messages.groups import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from spark_kafka_source.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from spark_kafka_source.testing.memory import Action, MemoryBroker

FORMER, PRESENT = 0, 1
_REFUSED = error_named("COORDINATOR_NOT_AVAILABLE").code


@dataclass
class FormerCoordinator:
    """Node 0, until now the coordinator. It tells the decisions of this moment and takes no offset.

    While `is_found`, all brokers name it as the coordinator. Node 1 is the present one.
    """

    broker: MemoryBroker
    group_id: str
    is_found: bool = field(default=False, init=False)
    reads: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        cluster = self.broker.cluster
        self._kept = {
            where: (offset, cluster.metadata[self.group_id, where])
            for where, offset in cluster.committed[self.group_id].items()
        }
        cluster.coordinators[self.group_id] = PRESENT
        self.broker.control(FindCoordinatorRequest, self._name, times=None)
        self.broker.control(OffsetFetchRequest, self._tell, times=None, node_id=FORMER)
        self.broker.control(TxnOffsetCommitRequest, self._refuse, times=None, node_id=FORMER)

    def _name(self, request: FindCoordinatorRequest) -> FindCoordinatorResponse | Action:
        if (request.key, request.key_type) != (self.group_id, 0):
            return Action.HANDLE
        node_id = FORMER if self.is_found else PRESENT
        port = self.broker.cluster.ports[node_id]
        return FindCoordinatorResponse(node_id=node_id, host="127.0.0.1", port=port)

    def _tell(self, request: OffsetFetchRequest) -> OffsetFetchResponse | Action:
        if request.group_id != self.group_id:
            return Action.HANDLE
        self.reads += 1
        topics = [
            OffsetFetchResponseTopic(
                where.topic,
                [OffsetFetchResponsePartition(where.partition, offset, -1, metadata, 0)],
            )
            for where, (offset, metadata) in self._kept.items()
        ]
        return OffsetFetchResponse(topics=topics)

    def _refuse(self, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
        self.is_found = False  # The brokers have told each other by now.
        topics = [
            TxnOffsetCommitResponseTopic(
                topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(each.partition_index, _REFUSED)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return TxnOffsetCommitResponse(topics=topics)
