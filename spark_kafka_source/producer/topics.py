"""The partitions of topics that are sent to, and the choice of one for records without a key."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from spark_kafka_source.client import Cluster, KafkaClient, Topic
from spark_kafka_source.denials import CREATE_IT, Access, refusal
from spark_kafka_source.errors import (
    BootstrapError,
    BrokerError,
    ErrorCode,
    KafkaTimeoutError,
    LocalError,
    Remedy,
    error_named,
)
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Deadline
from spark_kafka_source.producer.config import ProducerConfig
from spark_kafka_source.producer.given_partitioner import TopicInfo
from spark_kafka_source.producer.keyless_partitioners import Queued, keyless_partitioner
from spark_kafka_source.records import Integers
from spark_kafka_source.spelling import as_written, spelt
from spark_kafka_source.topic_partition import TopicPartition

logger = logger_of(__name__)

_UNKNOWN_TOPIC = error_named("UNKNOWN_TOPIC_OR_PARTITION")
_NO_LEADER = error_named("LEADER_NOT_AVAILABLE")
_TOLD_AFTER = 4
"""So many answers without a topic are told: a broker that creates it needs fewer."""
_MOST_TOLD = 1_000
"""So many topics are told at most: a program may make up names without end."""


class UnknownPartitionError(LocalError):
    """A record's partition does not exist in its topic."""


class Partitions:
    """The partitions of one topic. Any thread may use the object."""

    def __init__(
        self, topic: Topic, cluster: Cluster, config: ProducerConfig, queued: Queued
    ) -> None:
        self.name = topic.name
        self._cluster = cluster
        self._rack = config.client_rack if config.partitioner_rack_aware else ""
        self._lock = threading.Lock()
        self._keyless_partitioner = keyless_partitioner(topic.name, config, queued)
        self.update(topic)

    def learn(self) -> None:
        """Take the newest metadata, which the producer's thread refreshes from time to time."""
        topic = self._cluster.topics.get(self.name)
        if topic is not None and topic is not self._topic and not topic.error.code:
            self.update(topic)

    def update(self, topic: Topic) -> None:
        """Take new metadata of the topic."""
        if not topic.partitions:
            return
        self._topic = topic
        led = [each for each, state in topic.partitions.items() if not state.error.code]
        led = self._in_our_rack(topic, led) or led
        self.count = len(topic.partitions)
        whole = range(self.count)
        # If no partition has a leader, records may go to any, and wait for its leader.
        self._available: Sequence[int] = sorted(led) if 0 < len(led) < self.count else whole
        self._info: TopicInfo | None = None

    @property
    def info(self) -> TopicInfo:
        """The partitions with their leaders and replicas."""
        info = self._info
        if info is None:
            info = self._info = TopicInfo(self.name, self._topic.partition_infos)
        return info

    def check(self, partition: int, waited: str = "") -> None:
        """Raise `UnknownPartitionError` if there is no such partition.

        `waited` says how long one above the others was waited for.
        """
        if not 0 <= partition < self.count:
            found = f"topic {self.name!r} has no partition {partition}: it has {self.count}"
            raise UnknownPartitionError(f"{found}, from 0 on{waited if partition > 0 else ''}")

    def _in_our_rack(self, topic: Topic, partitions: Sequence[int]) -> list[int]:
        """Return the partitions whose leader is in the rack of this client (KIP-1123)."""
        if not self._rack:
            return []
        brokers = self._cluster.brokers.values()
        near = {broker.node_id for broker in brokers if broker.rack == self._rack}
        return [each for each in partitions if topic.partitions[each].leader_id in near]

    def next_one(self, size: int) -> int:
        """Return the partition for a record of this size that no key gives one."""
        with self._lock:
            return self._keyless_partitioner.one(size, self._available)

    def next_ones(self, sizes: Integers) -> Integers:
        """Return the partition for each of many records."""
        with self._lock:
            return self._keyless_partitioner.many(sizes, self._available)

    def batch_ended(self, partition: int) -> None:
        """Note that a batch takes no more records: the next record may go elsewhere."""
        self._keyless_partitioner.batch_ended(partition)


class Topics:
    """The topics that were sent to. Any thread may ask; one at a time asks the brokers."""

    def __init__(
        self,
        client: KafkaClient,
        config: ProducerConfig,
        queued: Queued,
        refuse: Callable[[str], object] = lambda _: None,
    ) -> None:
        """`client` is for this object alone. `refuse` raises where a topic cannot be waited for."""
        self._client = client
        self._config = config
        self._queued = queued
        self._lock = threading.Lock()
        self._asking = threading.Lock()
        self._known: dict[str, Partitions] = {}
        self._told: set[str] = set()
        """Topics that the log says to be missing."""
        self._refuse = refuse
        waited = f", also after {config.max_block_ms} ms ('kafka.max.block.ms')"
        self.waited = as_written(waited, config.spelling)
        """How long partitions were waited for, for texts."""

    def of(self, topic: str, at_least: int = 0) -> Partitions:
        """Return a topic's partitions. Ask the brokers if fewer than `at_least` are known.

        A topic that is not known is always asked for; the request may create it. Waits up to
        `max.block.ms` for a topic that does not exist, and for `at_least` partitions. After that it
        raises `KafkaTimeoutError`, or returns the fewer partitions that there are. Raises
        `LocalError` in the producer's thread in place of a wait, `BootstrapError` if no broker is
        reached, and `BrokerError` for a topic that is denied.
        """
        known = self._known.get(topic)
        if known is not None:
            known.learn()
            if known.count >= at_least:
                return known
        self._refuse(topic)
        with spelt(self._config.spelling):
            return self._ask(topic, at_least)

    def knows(self, topic: str, partition: int | None) -> bool:
        """Whether `of` would ask no broker for this partition, or for any."""
        known = self._known.get(topic)
        return known is not None and (partition is None or partition < known.count)

    def batch_ended(self, topic_partition: TopicPartition) -> None:
        """Note that a batch takes no more records. The producer's thread calls it; never waits."""
        known = self._known.get(topic_partition.topic)
        if known is not None:
            known.batch_ended(topic_partition.partition)

    def _ask(self, topic: str, at_least: int) -> Partitions:
        what = f"Metadata of {topic}"
        without_it = 0
        with_fewer: Topic | None = None

        async def attempt(within: Deadline) -> Topic:
            nonlocal without_it, with_fewer
            # Between two tries another thread may ask, perhaps for a topic that exists.
            with self._turn(topic, within):
                topics = await self._client.topics([topic], within, create=True)
            described = next((each for each in topics if each.name == topic), None)
            error = _UNKNOWN_TOPIC if described is None else described.error
            if described is not None and not error.code and not described.partitions:
                error = _NO_LEADER
            if described is None or error.code:
                without_it += error == _UNKNOWN_TOPIC
                if without_it == _TOLD_AFTER:
                    self._tell(topic)
                raise topic_error(error, topic)
            if len(described.partitions) < at_least:  # They may be added at this moment.
                with_fewer = described
                raise topic_error(_UNKNOWN_TOPIC, topic)
            return described

        try:
            described = self._client.run(
                self._client.retrying(what, attempt, timeout_ms=self._config.max_block_ms)
            )
        except (KafkaTimeoutError, BootstrapError) as error:
            if with_fewer is None:
                if isinstance(error, BootstrapError) and not self._client.history.was_reached:
                    raise
                why = _how_to_create(topic) if without_it else str(error)
                raise self._out_of_time(topic, why) from error
            described = with_fewer
        with self._lock:
            self._told.discard(topic)  # It may be deleted, and missing again.
            known = self._known.get(topic)
            if known is None:
                known = self._known[topic] = Partitions(
                    described, self._client.cluster, self._config, self._queued
                )
        known.update(described)
        return known

    def _tell(self, topic: str) -> None:
        with self._lock:  # Each call would tell it anew: a program may make thousands of them.
            if topic in self._told or len(self._told) == _MOST_TOLD:
                return
            self._told.add(topic)
        wait = f"it is waited for up to {self._config.max_block_ms} ms ('kafka.max.block.ms')"
        logger.warning("%s", as_written(f"{_how_to_create(topic)}. Meanwhile {wait}"))

    @contextmanager
    def _turn(self, topic: str, deadline: Deadline) -> Iterator[None]:
        """Hold the client, which one thread at a time may use."""
        if not self._asking.acquire(timeout=deadline.remaining_seconds()):
            raise self._out_of_time(topic, "other threads ask for topics, too")
        try:
            yield
        finally:
            self._asking.release()

    def _out_of_time(self, topic: str, why: str) -> KafkaTimeoutError:
        waited = f"within {self._config.max_block_ms} ms ('kafka.max.block.ms')"
        return KafkaTimeoutError(f"the partitions of topic {topic!r} are not known {waited}: {why}")


def _how_to_create(topic: str) -> str:
    return (
        f"topic {topic!r} does not exist (UNKNOWN_TOPIC_OR_PARTITION), and no broker creates it. "
        f"{CREATE_IT}. Or have the brokers create it: they do for a user with the right CREATE, "
        "if their 'auto.create.topics.enable' is true"
    )


def topic_error(error: ErrorCode, topic: str) -> BrokerError:
    """Return the error for a topic that a broker does not describe, with the reason."""
    advice = _how_to_create(topic) if error == _UNKNOWN_TOPIC else None
    what = f"Metadata of {topic}"
    failure = refusal(error, what, advice=advice, topic=topic, access=Access.WRITE)
    if failure.retriable:  # RETRY keeps the metadata of other topics; the table's remedy may not.
        failure.remedy = Remedy.RETRY
    return failure
