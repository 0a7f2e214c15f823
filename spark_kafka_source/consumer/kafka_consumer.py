"""Kafka's consumer, with Arrow records: https://kafka.apache.org/documentation/#consumerapi."""

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Never, TypeVar, overload
from uuid import UUID

from spark_kafka_source.client import Topic
from spark_kafka_source.client.cluster import PartitionInfo
from spark_kafka_source.consumer.arguments import Offsets, OneOrMany
from spark_kafka_source.consumer.consumer import CLOSE_MS, Consumer
from spark_kafka_source.consumer.consumer_records import ConsumerRecord, ConsumerRecords, one_by_one
from spark_kafka_source.fetch.offsets import OffsetAndTimestamp
from spark_kafka_source.forks import used_where_made
from spark_kafka_source.groups import OffsetAndMetadata
from spark_kafka_source.net import Conversation, run
from spark_kafka_source.spelling import spelt
from spark_kafka_source.topic_partition import TopicPartition

T = TypeVar("T")


@used_where_made
class KafkaConsumer(Consumer):
    """Read topics as Arrow, alone or as a member of a group.

        with KafkaConsumer(bootstrap_servers="localhost:9092", group_id="g") as consumer:
            consumer.subscribe(["events"])
            table = consumer.poll(timeout_ms=1000).to_arrow()

    The settings have Kafka's names, with underscores. One thread at a time may use the consumer.
    Only `wakeup` may be called from another thread. After a fork, the child needs a consumer of its
    own: every call raises `ForkedError`. Raises `ConfigurationError` for settings that cannot be
    used.

    `key_deserializer` and `value_deserializer` are functions of the bytes, of the topic and the
    bytes, or of the topic, the headers and the bytes; objects with such a method `deserialize`; or
    names of Kafka's own, as `StringDeserializer`. `poll` calls them, and iterated records show what
    they return.

    `columns` names the Arrow columns, in order. The default is the eight columns of the Spark
    source. With `value_format` and `key_format`, and Spark's other options for typed values, the
    consumer decodes values: into Arrow columns, and into dicts for iterated records.
    `assignors` are your own objects, in place of `partition_assignment_strategy`; see `Assignor`.
    The list may have names of Kafka's assignors, too. `listener` hears of all
    rebalances; see `ConsumerRebalanceListener`. `metric_reporters` get the figures of `metrics`;
    see `MetricsReporter`.
    """

    _user_kind = "thread"
    _present_user = staticmethod(threading.get_ident)
    _listener_may_wait = False

    def _wait(self, conversation: Conversation[T]) -> T:
        """Hold a conversation, and block this thread until it is over."""
        with closing(conversation), self._user.used_here(), spelt(self._config.spelling):
            return run(conversation)

    def __enter__(self) -> "KafkaConsumer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def unsubscribe(self, *more: Never, topics: None = None) -> None:
        """Stop reading, and leave the group."""
        self._wait(self._unsubscribe(more or topics))

    def poll(self, timeout_ms: int = 1_000) -> ConsumerRecords:
        """Return the next records, up to `max_poll_records`; wait for some up to `timeout_ms`.

        Silent brokers and commits do not prolong the call. A rebalance listener and deserializers
        do. Positions move behind the records.

        Raises `LocalError` for a negative time and within a callback, `NoOffsetError`, kinds of
        `RecordsLostError` if `auto_offset_reset` is `none`, `CorruptRecordError`, `BrokerError`,
        `WakeupError`, and errors of the rebalance listener. Raises `RecordDeserializationError` for
        a record that a deserializer refuses. With `value_format`, raises `BadRecordError` and
        errors of schema lookups. The records before a bad one are returned first. The position
        stays then, and the next call tries again. Call `poll` at least every
        `max_poll_interval_ms`.
        """
        return self._wait(self._poll(timeout_ms))

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Yield records one by one, from one poll after another, without end.

        The position moves with each record, so a commit covers only the yielded records. After a
        stop in the middle of a poll, or an error, a later iteration goes on there.
        """
        while True:
            yield from one_by_one(self.poll(), self._positions)

    @overload
    def position(
        self, /, topic_partition: TopicPartition, timeout_ms: int | None = None
    ) -> int: ...

    @overload
    def position(
        self, /, topic_partition: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]: ...

    def position(
        self, topic_partition: OneOrMany, timeout_ms: int | None = None
    ) -> int | dict[TopicPartition, int]:
        """Return the offset of the next record. Ask for a position that is not known yet.

        For several partitions, returns the offsets by partition; all that are not known are asked
        for at once. Raises `KafkaTimeoutError`, `NoOffsetError`.
        """
        return self._wait(self._seeking.position(topic_partition, timeout_ms))

    def list_topics(self, timeout_ms: int | None = None) -> dict[str, Topic]:
        """Return all topics that this user may see, with their partitions' leaders."""
        return self._wait(self._log.list_topics(timeout_ms))

    def partitions_for(self, topic: str, timeout_ms: int | None = None) -> list[PartitionInfo]:
        """Return the partitions of a topic. Raises `BrokerError` if there is no such topic.

        Each is a `TopicPartition` that has its leader and its replicas, too.
        """
        return self._wait(self._log.partitions_for(topic, timeout_ms))

    def beginning_offsets(
        self, topic_partitions: OneOrMany, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset that each partition still has."""
        return self._wait(self._log.beginning_offsets(topic_partitions, timeout_ms))

    def end_offsets(
        self, topic_partitions: OneOrMany, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Return each partition's offset after the last record that `isolation_level` shows."""
        return self._wait(self._log.end_offsets(topic_partitions, timeout_ms))

    def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int], timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first offset at or after a time, in ms since the epoch, or None."""
        return self._wait(self._log.offsets_for_times(timestamps_ms, timeout_ms))

    def commit(self, offsets: Offsets | None = None, timeout_ms: int | None = None) -> None:
        """Commit these offsets, of the next records to read, or all positions, and wait.

        Raises `CommitFailedError` if the group has rebalanced meanwhile, `BrokerError`,
        `KafkaTimeoutError`.
        """
        self._wait(self._commits.commit(offsets, timeout_ms))

    def committed(
        self, topic_partitions: OneOrMany, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's last committed offsets, None for partitions without one."""
        return self._wait(self._commits.committed(topic_partitions, timeout_ms))

    def client_instance_id(self, timeout_ms: int | None = None) -> UUID:
        """Return the id by which brokers know the metrics of this consumer (KIP-714).

        A broker gives the id once, and the consumer keeps it. Waits up to `timeout_ms`
        milliseconds; the default is `default_api_timeout_ms`. Raises `LocalError` if
        `enable_metrics_push` is false, `UnsupportedVersionError` for brokers that take no metrics,
        and `KafkaTimeoutError`.
        """
        return self._wait(self._client_instance_id(timeout_ms))

    def close(self, timeout_ms: int = CLOSE_MS) -> None:
        """Commit if `enable_auto_commit` is set, leave the group, and close all connections.

        Waits up to `timeout_ms` milliseconds for the commit and for the group's answers, and up to
        half a second of that for the last push of metrics. The consumer is closed after that in any
        case. A commit that fails is logged. A second call does nothing. Raises `LocalError` if
        another thread uses the consumer, and the errors of the listener and of commit callbacks.
        """
        if not self._user.is_closed:
            self._wait(self._close(timeout_ms))
