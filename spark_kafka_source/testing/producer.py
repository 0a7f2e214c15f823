"""A producer for tests: it writes one batch at a time, each with its own codec."""

from collections.abc import Sequence
from contextlib import ExitStack

from spark_kafka_source.client import ClientConfig, KafkaClient
from spark_kafka_source.denials import refusal
from spark_kafka_source.net import Deadline, parse_addresses
from spark_kafka_source.producer import KafkaProducer
from spark_kafka_source.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from spark_kafka_source.records import NO_TIMESTAMP, Codec, Record
from spark_kafka_source.topic_partition import TopicPartition

_ALL_REPLICAS = -1
_BROKER_TIMEOUT_MS = 30_000
# Topics have names up to v12, and ids from v13 on.
_PRODUCE_BY_NAME = 12
# Nothing is sent before `flush`, so that the records of one `send` are one batch.
_LINGER_MS = 60_000
_MOST_BYTES = 64 * 1024 * 1024


class Producer:
    """A producer for one cluster that waits for all replicas. Use it as a context manager.

    Batches have no producer id. The producer sends a request again if its answer is lost, so a
    record may be written twice. `KafkaProducer` avoids that.
    """

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._producers: dict[Codec, KafkaProducer] = {}
        self._open = ExitStack()
        client = KafkaClient(ClientConfig(parse_addresses(bootstrap_servers)))
        self._client = self._open.enter_context(client)

    def __enter__(self) -> "Producer":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def send(
        self, topic: str, partition: int, records: Sequence[Record], codec: Codec = Codec.NONE
    ) -> int:
        """Write the records as one batch. Return the offset of the first.

        A record without a timestamp gets the time of this call. Raises `BrokerError` or
        `KafkaTimeoutError`, which name the partition.
        """
        producer = self._producer_of(codec)
        sent = [
            producer.send(
                topic,
                each.value,
                key=each.key,
                partition=partition,
                timestamp_ms=None if each.timestamp_ms == NO_TIMESTAMP else each.timestamp_ms,
                headers=each.headers,
            )
            for each in records
        ]
        producer.flush()
        return min(each.result().offset for each in sent)

    def _producer_of(self, codec: Codec) -> KafkaProducer:
        if codec not in self._producers:
            producer = KafkaProducer(
                bootstrap_servers=self._bootstrap_servers,
                compression_type=str(codec),
                enable_idempotence=False,
                linger_ms=_LINGER_MS,
                batch_size=_MOST_BYTES,
                buffer_memory=_MOST_BYTES,
                max_request_size=_MOST_BYTES,
            )
            self._producers[codec] = self._open.enter_context(producer)
        return self._producers[codec]

    def send_batch(self, topic: str, partition: int, batch: bytes) -> int:
        """Write an encoded batch. Return the offset of its first record."""
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

        async def attempt(deadline: Deadline) -> int:
            leader, _ = (await self._client.leaders([where], deadline))[where]
            answer = await self._client.send(
                request, leader, deadline, max_version=_PRODUCE_BY_NAME
            )
            result = answer.responses[0].partition_responses[0]
            if result.error_code:
                raise refusal(result.error_code, f"Produce to {where}", result.error_message)
            return result.base_offset

        return self._client.run(self._client.retrying(f"Produce to {where}", attempt))
