"""Batches of a transaction without a producer, and transactions that another process ends."""

from collections.abc import Sequence
from typing import Any

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import BrokerError, error_code
from spark_kafka_source.net import Deadline
from spark_kafka_source.producer import (
    Beginning,
    Generation,
    KafkaProducer,
    ProducerId,
    TransactionCoordinator,
)
from spark_kafka_source.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from spark_kafka_source.records import Record, encode_batch
from spark_kafka_source.topic_partition import TopicPartition

_TIMEOUT_MS = 30_000


def write(
    client: KafkaClient,
    transactional_id: str,
    producer: ProducerId,
    where: TopicPartition,
    values: Sequence[bytes],
    *,
    base_sequence: int = 0,
) -> int:
    """Write a batch. Return the offset of its first record."""
    batch = encode_batch(
        [Record(value=each, timestamp_ms=1_700_000_000_000) for each in values],
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=base_sequence,
        transactional=True,
    )
    data = PartitionProduceData(where.partition, batch)
    topic = TopicProduceData(name=where.topic, partition_data=[data])
    request = ProduceRequest(transactional_id, -1, _TIMEOUT_MS, [topic])

    async def attempt(deadline: Deadline) -> int:
        leader, _ = (await client.leaders([where], deadline))[where]
        version = Generation.FIRST.max_version(ProduceRequest)
        answer = await client.send(request, leader, deadline, max_version=version)
        result = answer.responses[0].partition_responses[0]
        if result.error_code:
            raise BrokerError(error_code(result.error_code), f"Produce to {where}")
        return result.base_offset

    return client.run(client.retrying(f"Produce to {where}", attempt, timeout_ms=_TIMEOUT_MS))


def begin_as(producer: KafkaProducer, transactional_id: str, timeout_ms: int = 60_000) -> None:
    """Begin a transaction under this id. Another process decides how it ends."""
    transaction: Any = producer._transaction
    max_block_ms = transaction._config.max_block_ms  # `blocking_for` may have shortened it.
    with KafkaClient(producer._config.client) as client:
        coordinator = TransactionCoordinator(client, transactional_id)
        taken = client.run(coordinator.init_producer_id(timeout_ms, timeout_ms=max_block_ms))
    producer.begin_at(Beginning(transactional_id, taken))
