"""Transactions, as an admin client sees them (KIP-664)."""

from typing import Any

from spark_kafka_source.protocol.messages import (
    describe_producers,
    describe_transactions,
    list_transactions,
)
from spark_kafka_source.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
)
from spark_kafka_source.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from spark_kafka_source.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from spark_kafka_source.testing.memory.answers import code
from spark_kafka_source.testing.memory.cluster import MemoryCluster
from spark_kafka_source.testing.memory.transactions import Transaction, coordinator_error

_NO_OFFSET = -1


def describe_all(
    cluster: MemoryCluster, node_id: int, request: DescribeTransactionsRequest, version: int
) -> DescribeTransactionsResponse:
    """v0."""
    return DescribeTransactionsResponse(
        transaction_states=[
            _described(cluster, node_id, each) for each in request.transactional_ids
        ]
    )


def _described(
    cluster: MemoryCluster, node_id: int, transactional_id: str
) -> describe_transactions.TransactionState:
    error = coordinator_error(cluster, node_id, transactional_id)
    found: Transaction | None = cluster.transactions.get(transactional_id)
    if found is None or error:
        error = error or code("TRANSACTIONAL_ID_NOT_FOUND")
        return describe_transactions.TransactionState(error, transactional_id)
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(found.partitions):
        topics.setdefault(topic, []).append(partition)
    if found.group_ids:
        topics["__consumer_offsets"] = [0]
    return describe_transactions.TransactionState(
        0,
        transactional_id,
        found.state,
        found.timeout_ms,
        found.started_at_ms,
        found.producer_id,
        found.epoch,
        [describe_transactions.TopicData(*each) for each in topics.items()],
    )


def list_all(
    cluster: MemoryCluster, node_id: int, request: ListTransactionsRequest, version: int
) -> ListTransactionsResponse:
    """v0-2, with filters by state and producer id only."""
    assert request.duration_filter < 0, "no transaction here has a time"
    assert not request.transactional_id_pattern, "patterns of RE2/J"
    if cluster.refusal:
        return ListTransactionsResponse(error_code=cluster.refusal)
    found: list[tuple[str, Transaction]] = [
        (name, each)
        for name, each in cluster.transactions.items()
        if not coordinator_error(cluster, node_id, name)
    ]
    return ListTransactionsResponse(
        transaction_states=[
            list_transactions.TransactionState(name, each.producer_id, each.state)
            for name, each in found
            if each.state in (request.state_filters or [each.state])
            and each.producer_id in (request.producer_id_filters or [each.producer_id])
        ]
    )


def describe_writers(
    cluster: MemoryCluster, node_id: int, request: DescribeProducersRequest, version: int
) -> DescribeProducersResponse:
    """v0."""
    return DescribeProducersResponse(
        topics=[
            describe_producers.TopicResponse(
                topic.name,
                [_writers(cluster, node_id, topic.name, each) for each in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def _writers(
    cluster: MemoryCluster, node_id: int, topic: str, partition: int
) -> describe_producers.PartitionResponse:
    log = cluster.log(topic, partition)
    error = cluster.refusal or (code("UNKNOWN_TOPIC_OR_PARTITION") if log is None else 0)
    if log is not None and not error and log.leader_id != node_id:
        error = code("NOT_LEADER_OR_FOLLOWER")
    if log is None or error:
        return describe_producers.PartitionResponse(partition, error)
    return describe_producers.PartitionResponse(
        partition,
        active_producers=[
            describe_producers.ProducerState(
                producer_id,
                each.epoch,
                each.last_sequence,
                current_txn_start_offset=(
                    _NO_OFFSET if each.transaction_start is None else each.transaction_start
                ),
            )
            for producer_id, each in log.producers.items()
        ],
    )


TRANSACTION_ADMIN_HANDLERS: dict[type[Any], Any] = {
    DescribeTransactionsRequest: describe_all,
    ListTransactionsRequest: list_all,
    DescribeProducersRequest: describe_writers,
}
