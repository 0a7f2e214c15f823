"""Writes records to a topic, one Produce request at a time: for demos and tests, not for speed."""

import time
from collections.abc import Sequence
from dataclasses import replace

from spark_kafka_source.client import ClientConfig, KafkaClient
from spark_kafka_source.errors import BrokerError, error_code
from spark_kafka_source.net import Deadline, parse_addresses
from spark_kafka_source.protocol import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from spark_kafka_source.records import NO_TIMESTAMP, Codec, Record, encode_batch
from spark_kafka_source.topic_partition import TopicPartition

_ALL_REPLICAS = -1
_BROKER_TIMEOUT_MS = 30_000
# Topics go by name up to v12, by id from v13 on.
_PRODUCE_BY_NAME = 12


class Producer:
    """Writes to one cluster, waiting for all replicas each time; use it as a context manager.

    A request whose answer is lost is sent again, so that a record may be written twice.
    """

    def __init__(self, bootstrap_servers: str) -> None:
        self._client = KafkaClient(ClientConfig(parse_addresses(bootstrap_servers)))

    def __enter__(self) -> "Producer":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def send(
        self, topic: str, partition: int, records: Sequence[Record], codec: Codec = Codec.NONE
    ) -> int:
        """Writes the records as one batch; returns the offset of the first.

        A record without a timestamp gets the time of this call, as by Kafka's own producer. Raises
        `BrokerError` or `KafkaTimeoutError`, naming the partition.
        """
        now_ms = time.time_ns() // 1_000_000
        stamped = [_stamped(record, now_ms) for record in records]
        return self.send_batch(topic, partition, encode_batch(stamped, codec=codec))

    def send_batch(self, topic: str, partition: int, batch: bytes) -> int:
        """Writes a batch that is encoded already, and returns the offset of its first record."""
        where = TopicPartition(topic, partition)
        request = ProduceRequest(
            acks=_ALL_REPLICAS,
            timeout_ms=_BROKER_TIMEOUT_MS,
            topic_data=[
                TopicProduceData(
                    name=topic,
                    partition_data=[PartitionProduceData(index=partition, records=batch)],
                )
            ],
        )

        def attempt(deadline: Deadline) -> int:
            leader, _ = self._client.leaders([where], deadline)[where]
            answer = self._client.send(request, leader, deadline, max_version=_PRODUCE_BY_NAME)
            result = answer.responses[0].partition_responses[0]
            if result.error_code:
                what = f"Produce to {where}"
                raise BrokerError(error_code(result.error_code), what, result.error_message)
            return result.base_offset

        return self._client.retrying(f"Produce to {where}", attempt)


def _stamped(record: Record, now_ms: int) -> Record:
    return replace(record, timestamp_ms=now_ms) if record.timestamp_ms == NO_TIMESTAMP else record
