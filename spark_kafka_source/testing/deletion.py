"""Deletion of records from the beginning of a log (DeleteRecords, KIP-107)."""

from collections.abc import Iterator, Mapping

from spark_kafka_source.client import Broker, KafkaClient, Told
from spark_kafka_source.fetch.offsets import ByTopic, ask_leaders
from spark_kafka_source.protocol.messages.admin import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from spark_kafka_source.topic_partition import TopicPartition, each_partition

_BROKER_TIMEOUT_MS = 30_000


async def delete_records(client: KafkaClient, before: Mapping[TopicPartition, int]) -> None:
    """Delete each partition's records before an offset. -1 means its high watermark.

    Raises the errors of `ask_leaders`.
    """
    await ask_leaders(
        client, "DeleteRecords", before, partition=_partition, request=_request, answers=_answers
    )


def _partition(number: int, _: int, before: int) -> DeleteRecordsPartition:
    return DeleteRecordsPartition(number, before)


def _request(by_topic: ByTopic[DeleteRecordsPartition]) -> DeleteRecordsRequest:
    topics = [DeleteRecordsTopic(*each) for each in by_topic.items()]
    return DeleteRecordsRequest(topics, _BROKER_TIMEOUT_MS)


def _answers(answer: DeleteRecordsResponse, _: Broker) -> Iterator[Told[TopicPartition, int]]:
    for where, row in each_partition(answer.topics):
        yield Told(where, row.low_watermark, row.error_code)
