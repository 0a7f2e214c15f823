"""Writes and reads with confluent-kafka, which shares no code with this package."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

TIMEOUT_SECONDS = 180

Settings = Mapping[str, Any]
NONE: Settings = {}


def produce(
    bootstrap_servers: str, topic: str, values: Sequence[bytes], settings: Settings = NONE
) -> None:
    """Write records to partition 0. Wait until the brokers have them, or raise the error.

    `settings` are more settings of the client, such as TLS.
    """
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        failures.extend([error] if error else [])

    producer = Producer(
        {"bootstrap.servers": bootstrap_servers, "acks": "all", "log_level": 0, **settings}
    )
    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=delivered)
    assert producer.flush(TIMEOUT_SECONDS) == 0
    for failure in failures:
        raise KafkaException(failure)


def consume(
    bootstrap_servers: str,
    topic: str,
    count: int,
    group: str | None = None,
    settings: Settings = NONE,
) -> list[bytes | None]:
    """Return the first `count` values of partition 0, or all that arrive within three minutes.

    With a group, commit the offsets.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group or uuid.uuid4().hex,
            "enable.auto.commit": False,
            "log_level": 0,
            **settings,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    messages = consumer.consume(count, TIMEOUT_SECONDS)
    for message in messages:
        if error := message.error():
            raise KafkaException(error)
    if group:
        consumer.commit(asynchronous=False)
    consumer.close()
    return [message.value() for message in messages]
