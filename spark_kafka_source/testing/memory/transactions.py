"""The in-memory coordinator of transactions of both generations (KIP-98, KIP-360, KIP-890).

The versions of requests choose the generation, as on real brokers.
A transaction ends at once. A real coordinator answers EndTxn before it writes the markers, and
answers CONCURRENT_TRANSACTIONS meanwhile. Here no transaction times out by itself.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from spark_kafka_source.protocol.messages.produce import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from spark_kafka_source.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
    EndTxnRequest,
    EndTxnResponse,
)
from spark_kafka_source.records import BatchHeader
from spark_kafka_source.testing.memory.answers import code
from spark_kafka_source.testing.memory.cluster import MemoryCluster
from spark_kafka_source.topic_partition import TopicPartition

EMPTY, ONGOING, COMMITTED, ABORTED = "Empty", "Ongoing", "CompleteCommit", "CompleteAbort"

_NONE = -1
_LONGEST_TIMEOUT_MS = 900_000
_LAST_EPOCH = (1 << 15) - 2
# EndTxn raises the epoch from v5 on (KIP-890). Errors have newer names from these versions on.
_MOVES_EPOCH, _KNOWS_FENCED, _KNOWS_FENCED_AT_INIT = 5, 2, 4


@dataclass
class Transaction:
    """The coordinator's state of one transactional id."""

    producer_id: int
    timeout_ms: int = 0
    epoch: int = _NONE
    last_epoch: int = _NONE
    previous_producer_id: int = _NONE
    state: str = EMPTY
    partitions: set[TopicPartition] = field(default_factory=set)
    group_ids: set[str] = field(default_factory=set)
    started_at_ms: int = _NONE

    @property
    def is_open(self) -> bool:
        """Whether the transaction has begun and not ended."""
        return self.state == ONGOING

    def error_for(self, producer_id: int, epoch: int) -> int:
        """Return why this is not the producer, or 0."""
        if producer_id != self.producer_id:
            return code("INVALID_PRODUCER_ID_MAPPING")
        return 0 if epoch == self.epoch else code("PRODUCER_FENCED")

    def add(self, partitions: Iterable[TopicPartition], now_ms: int) -> None:
        """Add partitions to the transaction. Begin it if it is not open."""
        if self.state != ONGOING:
            self.state, self.started_at_ms = ONGOING, now_ms
        self.partitions.update(partitions)

    def time_out(self, cluster: MemoryCluster) -> None:
        """Abort the transaction as timed out, and fence its producer."""
        self.epoch += 1
        self.end(cluster, commit=False)

    def end_and_bump(self, cluster: MemoryCluster, *, commit: bool) -> None:
        """End the transaction as in the second generation: its producer gets the next epoch."""
        self.last_epoch = self.epoch
        self.epoch += 1
        self.end(cluster, commit=commit)
        if self.last_epoch >= _LAST_EPOCH:
            self.previous_producer_id, self.producer_id = (
                self.producer_id,
                next(cluster.producer_ids),
            )
            self.epoch = 0

    def is_repeated_end(self, producer_id: int, epoch: int) -> bool:
        """Whether a request's producer is that of the transaction that has just ended."""
        if self.state not in (COMMITTED, ABORTED):
            return False
        if producer_id == self.previous_producer_id:
            return epoch == _LAST_EPOCH and self.epoch == 0
        return producer_id == self.producer_id and epoch == self.epoch - 1

    def end(self, cluster: MemoryCluster, *, commit: bool) -> None:
        """Write the markers into the logs and to the groups' offsets."""
        for where in sorted(self.partitions):
            if log := cluster.log(*where):
                now_ms = cluster.now_ms()
                log.end_transaction(self.producer_id, self.epoch, commit=commit, now_ms=now_ms)
        for group_id in self.group_ids:
            pending = cluster.pending.get(group_id, {}).pop(self.producer_id, {})
            for where, each in pending.items() if commit else ():
                cluster.commit(group_id, where, each)
        self.partitions.clear()
        self.group_ids.clear()
        self.state = COMMITTED if commit else ABORTED


def _transaction(cluster: MemoryCluster, transactional_id: str | None) -> Transaction | None:
    found: Transaction | None = cluster.transactions.get(transactional_id or "")
    return found


def _error(
    cluster: MemoryCluster, node_id: int, transactional_id: str, producer_id: int, epoch: int
) -> int:
    """Return why this node refuses a producer, or 0."""
    if error := coordinator_error(cluster, node_id, transactional_id):
        return error
    found = _transaction(cluster, transactional_id)
    unknown = code("INVALID_PRODUCER_ID_MAPPING")
    return unknown if found is None else found.error_for(producer_id, epoch)


def coordinator_error(cluster: MemoryCluster, node_id: int, transactional_id: str) -> int:
    """Return why this node refuses a transactional id, or 0."""
    if cluster.refusal:
        return cluster.refusal
    if not transactional_id:
        return code("INVALID_REQUEST")
    wrong = cluster.transaction_coordinator(transactional_id) != node_id
    return code("NOT_COORDINATOR") if wrong else 0


def _as_of(version: int, error: int, first: int = _KNOWS_FENCED) -> int:
    """Return the error code, with an older one for PRODUCER_FENCED in older versions."""
    is_new = error == code("PRODUCER_FENCED") and version < first
    return code("INVALID_PRODUCER_EPOCH") if is_new else error


def init_producer_id(
    cluster: MemoryCluster, node_id: int, request: InitProducerIdRequest, version: int
) -> InitProducerIdResponse:
    """v0-5. From v3 on with the present producer id and epoch (KIP-360)."""
    if request.transactional_id is None and not cluster.refusal:
        return InitProducerIdResponse(0, 0, next(cluster.producer_ids), 0)
    error = coordinator_error(cluster, node_id, request.transactional_id or "")
    if not error and (request.producer_id == _NONE) != (request.producer_epoch == _NONE):
        error = code("INVALID_REQUEST")
    if not error and not 0 < request.transaction_timeout_ms <= _LONGEST_TIMEOUT_MS:
        error = code("INVALID_TRANSACTION_TIMEOUT")
    found = _transaction(cluster, request.transactional_id)
    if not error:
        found = found or Transaction(next(cluster.producer_ids))
        error = _begin_anew(cluster, found, request)
    if found is None or error:
        error = _as_of(version, error, _KNOWS_FENCED_AT_INIT)
        return InitProducerIdResponse(0, error, _NONE, _NONE)
    found.timeout_ms = request.transaction_timeout_ms
    cluster.transactions[request.transactional_id or ""] = found
    return InitProducerIdResponse(0, 0, found.producer_id, found.epoch)


def _begin_anew(
    cluster: MemoryCluster, transaction: Transaction, request: InitProducerIdRequest
) -> int:
    """Begin the next epoch. Return an error or 0. An open transaction is aborted instead."""
    expected = request.producer_epoch if request.producer_id >= 0 else None
    is_new = transaction.epoch == _NONE
    if expected is not None and not is_new and not _is_known(transaction, request):
        return code("PRODUCER_FENCED")
    if transaction.state == ONGOING:
        transaction.last_epoch = transaction.epoch
        transaction.epoch += 1
        transaction.end(cluster, commit=False)
        return code("CONCURRENT_TRANSACTIONS")
    if transaction.epoch >= _LAST_EPOCH and expected in (None, transaction.epoch):
        transaction.previous_producer_id = transaction.producer_id
        transaction.producer_id = next(cluster.producer_ids)
        transaction.last_epoch = _NONE if expected is None else transaction.epoch
        transaction.epoch = 0
    elif expected is None or is_new or expected == transaction.epoch:
        transaction.last_epoch = _NONE if expected is None else transaction.epoch
        transaction.epoch += 1
    elif expected != transaction.last_epoch:
        return code("PRODUCER_FENCED")
    transaction.state, transaction.started_at_ms = EMPTY, _NONE
    return 0


def _is_known(transaction: Transaction, request: InitProducerIdRequest) -> bool:
    if request.producer_id == transaction.previous_producer_id:
        return request.producer_epoch >= _LAST_EPOCH
    return request.producer_id == transaction.producer_id


def add_partitions_to_txn(
    cluster: MemoryCluster, node_id: int, request: AddPartitionsToTxnRequest, version: int
) -> AddPartitionsToTxnResponse:
    """v0-3. If one partition does not exist, none is added."""
    asked = [
        TopicPartition(topic.name, each)
        for topic in request.v3_and_below_topics
        for each in topic.partitions
    ]
    transactional_id = request.v3_and_below_transactional_id
    unknown = {each for each in asked if cluster.log(*each) is None} if not cluster.refusal else ()
    error = code("OPERATION_NOT_ATTEMPTED") if unknown else 0
    if not unknown:
        producer = request.v3_and_below_producer_id, request.v3_and_below_producer_epoch
        error = _error(cluster, node_id, transactional_id, *producer)
    if not error:
        cluster.transactions[transactional_id].add(asked, cluster.now_ms())
    error = _as_of(version, error)

    def result(where: TopicPartition) -> AddPartitionsToTxnPartitionResult:
        its = code("UNKNOWN_TOPIC_OR_PARTITION") if where in unknown else error
        return AddPartitionsToTxnPartitionResult(where.partition, its)

    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            AddPartitionsToTxnTopicResult(
                topic.name, [result(TopicPartition(topic.name, each)) for each in topic.partitions]
            )
            for topic in request.v3_and_below_topics
        ]
    )


def add_offsets_to_txn(
    cluster: MemoryCluster, node_id: int, request: AddOffsetsToTxnRequest, version: int
) -> AddOffsetsToTxnResponse:
    """v0-4."""
    producer = request.producer_id, request.producer_epoch
    error = _error(cluster, node_id, request.transactional_id, *producer)
    if not error:
        found = cluster.transactions[request.transactional_id]
        found.add((), cluster.now_ms())
        found.group_ids.add(request.group_id)
        cluster.pending.setdefault(request.group_id, {})
    return AddOffsetsToTxnResponse(error_code=_as_of(version, error))


def end_txn(
    cluster: MemoryCluster, node_id: int, request: EndTxnRequest, version: int
) -> EndTxnResponse:
    """v0-5. A repeated request is no error. From v5 on the end raises the epoch."""
    producer = request.producer_id, request.producer_epoch
    found = _transaction(cluster, request.transactional_id)
    ended = COMMITTED if request.committed else ABORTED
    if version >= _MOVES_EPOCH and found is not None and found.is_repeated_end(*producer):
        error = coordinator_error(cluster, node_id, request.transactional_id)
        error = error or (0 if found.state == ended else code("INVALID_TXN_STATE"))
        return _ended(found, error, version)
    error = _error(cluster, node_id, request.transactional_id, *producer)
    if found is None or error:
        return EndTxnResponse(error_code=_as_of(version, error))
    if version < _MOVES_EPOCH:
        if found.state == ONGOING:
            found.end(cluster, commit=request.committed)
        elif found.state != ended:
            error = code("INVALID_TXN_STATE")
    elif found.state == ONGOING or not request.committed:
        found.end_and_bump(cluster, commit=request.committed)
    else:
        error = code("INVALID_TXN_STATE")
    return _ended(found, error, version)


def _ended(found: Transaction, error: int, version: int) -> EndTxnResponse:
    if error or version < _MOVES_EPOCH:
        return EndTxnResponse(error_code=_as_of(version, error))
    return EndTxnResponse(producer_id=found.producer_id, producer_epoch=found.epoch, error_code=0)


def offsets_error(
    cluster: MemoryCluster,
    transactional_id: str,
    producer_id: int,
    epoch: int,
    group_id: str,
    *,
    adds: bool,
) -> int:
    """Return why a group's coordinator refuses a transaction's offsets, or 0 (KIP-890).

    With `adds` the offsets join the transaction here.
    """
    found = _transaction(cluster, transactional_id)
    if found is None:
        return code("INVALID_PRODUCER_ID_MAPPING")
    if error := found.error_for(producer_id, epoch):
        return _as_of(0, error)
    if adds:
        found.add((), cluster.now_ms())
        found.group_ids.add(group_id)
    return 0 if group_id in found.group_ids else code("TRANSACTION_ABORTABLE")


def verification_error(
    cluster: MemoryCluster,
    transactional_id: str | None,
    header: BatchHeader,
    where: TopicPartition,
    *,
    adds: bool,
) -> int:
    """Return why a leader must not begin a transaction in its log, or 0 (KIP-890).

    With `adds` the partition joins the transaction here.
    """
    found = _transaction(cluster, transactional_id)
    if found is None:
        return code("INVALID_PRODUCER_ID_MAPPING")
    if error := found.error_for(header.producer_id, header.producer_epoch):
        return _as_of(0, error)
    if adds:
        found.add([where], cluster.now_ms())
    return 0 if where in found.partitions else code("TRANSACTION_ABORTABLE")


TRANSACTION_HANDLERS: dict[type[Any], Any] = {
    InitProducerIdRequest: init_producer_id,
    AddPartitionsToTxnRequest: add_partitions_to_txn,
    AddOffsetsToTxnRequest: add_offsets_to_txn,
    EndTxnRequest: end_txn,
}
