"""The new committed records of a topic, read by librdkafka."""

import time
from collections.abc import Iterator

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

_PATIENCE_SECONDS = 120.0
_AT_ONCE = 2_000


class TopicReader:
    """A reader of new records, up to the first open transaction of each partition."""

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self._settings = {
            "bootstrap.servers": servers,
            "group.id": "of-nobody",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
        self._topic = topic
        self._positions = dict.fromkeys(range(partitions), 0)

    def advance(self) -> Iterator[Message]:
        """Yield the new records."""
        consumer = Consumer(self._settings)
        places = [TopicPartition(self._topic, *each) for each in self._positions.items()]
        consumer.assign(places)
        ended: set[int] = set()
        deadline = time.monotonic() + _PATIENCE_SECONDS
        try:
            while len(ended) < len(self._positions) and time.monotonic() < deadline:
                for message in consumer.consume(_AT_ONCE, 0.5):
                    error, partition = message.error(), message.partition()
                    if error is None and partition is not None:
                        self._positions[partition] = (message.offset() or 0) + 1
                        yield message
                    elif error is not None and error.code() == KafkaError._PARTITION_EOF:
                        ended.update([] if partition is None else [partition])
        finally:
            consumer.close()
