"""Writes with a query's options, without Spark."""

from collections.abc import Mapping, Sequence

from spark_kafka_source.groups import Member, OffsetAndMetadata
from spark_kafka_source.net import TokenProvider
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.producer import PRODUCER_OPTIONS, KafkaProducer, ProducerConfig
from spark_kafka_source.topic_partition import TopicPartition
from tests.security.setups import OFFSETS

VALUES = [b"a", b"b", b"c"]


def producer_of(
    options: Mapping[str, str], token_provider: TokenProvider | None = None
) -> KafkaProducer:
    """Create a producer with the options of a query that a producer has."""
    settings = Settings({name: text for name, text in options.items() if name in PRODUCER_OPTIONS})
    return KafkaProducer.of(ProducerConfig.from_settings(settings, token_provider))


def write(
    options: Mapping[str, str],
    token_provider: TokenProvider | None = None,
    values: Sequence[bytes] = VALUES,
) -> None:
    """Write values to a query's topic. Raise the first error.

    With a transactional id the write is a transaction. With a group it also commits an offset.
    """
    topic, group_id = options["subscribe"], options.get("kafka.group.id")
    with producer_of(options, token_provider) as producer:
        if "kafka.transactional.id" not in options:
            _send(producer, topic, values)
            return
        producer.init_transactions()
        producer.begin_transaction()
        _send(producer, topic, values)
        if group_id:
            offsets = {TopicPartition(options.get(OFFSETS, topic), 0): OffsetAndMetadata(1)}
            producer.send_offsets_to_transaction(offsets, Member(group_id, "", -1))
        producer.commit_transaction()


def _send(producer: KafkaProducer, topic: str, values: Sequence[bytes]) -> None:
    for each in [producer.send(topic, each) for each in values]:
        each.result()
