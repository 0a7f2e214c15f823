"""What senders must know of a topic: its partitions, and where records without a key go."""

import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from spark_kafka_source.client import KafkaClient, Topic
from spark_kafka_source.denials import Access, lacking
from spark_kafka_source.errors import BrokerError, KafkaTimeoutError, LocalError, error_named
from spark_kafka_source.net import Deadline
from spark_kafka_source.producer.config import ProducerConfig
from spark_kafka_source.producer.sticky import StickyPartitioner
from spark_kafka_source.records import Integers
from spark_kafka_source.topic_partition import TopicPartition

_UNKNOWN_TOPIC = error_named("UNKNOWN_TOPIC_OR_PARTITION")


class UnknownPartitionError(LocalError):
    """A record is meant for a partition that its topic does not have."""


class Partitions:
    """The partitions of one topic. Any thread may use it."""

    def __init__(
        self, topic: Topic, config: ProducerConfig, queued: Callable[[TopicPartition], int]
    ) -> None:
        """`queued` says how many batches wait for a partition."""
        self.name = topic.name
        self._lock = threading.Lock()
        self._queued = queued if config.partitioner_adaptive_partitioning_enable else None
        self._sticky = StickyPartitioner(config.batch_size) if config.has_sticky_partition else None
        # It spreads load, and guards nothing.
        self._chance = np.random.default_rng()
        self.update(topic)

    def update(self, topic: Topic) -> None:
        """Take what is newly known of the topic."""
        self.learnt_at_seconds = time.monotonic()
        led = [each for each, found in topic.partitions.items() if not found.error.code]
        self.count = len(topic.partitions)
        whole = range(self.count)
        # Where none has a leader they all wait for one.
        self._available: Sequence[int] = sorted(led) if 0 < len(led) < self.count else whole

    def check(self, partition: int) -> None:
        """Raise `UnknownPartitionError` where there is no such partition."""
        if not 0 <= partition < self.count:
            found = f"topic {self.name!r} has no partition {partition}"
            raise UnknownPartitionError(f"{found}: it has {self.count}, from 0 on")

    def next_one(self, size: int) -> int:
        """Return the partition for a record of this size that no key says one for."""
        with self._lock:
            if self._sticky is None:
                return int(self._chance.choice(self._available))
            found = self._sticky.partition(self._available, self._waiting())
            self._sticky.appended(size)
            return found

    def next_ones(self, sizes: Integers) -> Integers:
        """Return the partition for each of many such records."""
        with self._lock:
            if self._sticky is None:
                found: Integers = self._chance.choice(self._available, len(sizes))
                return found
            return self._sticky.partitions(sizes, self._available, self._waiting())

    def _waiting(self) -> list[int] | None:
        if self._queued is None or (self._sticky is not None and self._sticky.has_partition):
            return None
        return [self._queued(TopicPartition(self.name, each)) for each in self._available]


class Topics:
    """The topics that were sent to; any thread may ask, one at a time goes to the brokers."""

    def __init__(
        self, client: KafkaClient, config: ProducerConfig, queued: Callable[[TopicPartition], int]
    ) -> None:
        """`client` is for this alone."""
        self._client = client
        self._config = config
        self._queued = queued
        self._lock = threading.Lock()
        self._known: dict[str, Partitions] = {}
        self._max_age_seconds = config.client.metadata_max_age_ms / 1000

    def of(self, topic: str, partition: int | None = None) -> Partitions:
        """Return what is known of a topic; ask where that is nothing, or too old.

        Waits up to `max.block.ms` for a topic that is not there, or may be created by asking.
        Raises `KafkaTimeoutError` after it, `BrokerError` for a topic that is denied, and
        `UnknownPartitionError` where there is no such `partition`.
        """
        known = self._known.get(topic)
        if known is None or time.monotonic() - known.learnt_at_seconds > self._max_age_seconds:
            known = self._ask(topic, known)
        if partition is not None and partition >= known.count:  # There may be more by now.
            known = self._ask(topic, known)
        if partition is not None:
            known.check(partition)
        return known

    def _ask(self, topic: str, seen: Partitions | None) -> Partitions:
        deadline = Deadline.after_ms(self._config.max_block_ms)
        if not self._lock.acquire(timeout=deadline.remaining_seconds()):
            raise self._out_of_time(topic, "others wait for topics, too")
        try:
            known = self._known.get(topic)
            if known is not None and (
                seen is None or known.learnt_at_seconds > seen.learnt_at_seconds
            ):
                return known  # Another thread was sooner.
            found = self._found(topic, deadline)
            if known is None:
                known = self._known[topic] = Partitions(found, self._config, self._queued)
            else:
                known.update(found)
            return known
        finally:
            self._lock.release()

    def _found(self, topic: str, deadline: Deadline) -> Topic:
        what = f"Metadata of {topic}"

        def attempt(within: Deadline) -> Topic:
            (found,) = self._client.topics([topic], within, create=True) or (None,)
            error = _UNKNOWN_TOPIC if found is None else found.error
            if found is None or error.code:
                raise BrokerError(error, what, lacking(error, topic=topic, access=Access.WRITE))
            return found

        try:
            return self._client.retrying(what, attempt, timeout_ms=deadline.remaining_ms())
        except KafkaTimeoutError as error:
            raise self._out_of_time(topic, str(error)) from error

    def _out_of_time(self, topic: str, why: str) -> KafkaTimeoutError:
        waited = f"within {self._config.max_block_ms} ms ('kafka.max.block.ms')"
        return KafkaTimeoutError(f"the partitions of topic {topic!r} are not known {waited}: {why}")
