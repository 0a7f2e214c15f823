"""The few administrative requests that tests need: create, grow, trim and delete topics."""

from collections import defaultdict
from collections.abc import Mapping

from spark_kafka_source.client import Broker, ClientConfig, KafkaClient
from spark_kafka_source.errors import BrokerError, error_code, error_named
from spark_kafka_source.fetch import latest_offsets
from spark_kafka_source.net import Deadline, parse_addresses
from spark_kafka_source.protocol.messages.admin import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
)
from spark_kafka_source.topic_partition import TopicPartition

_BROKER_TIMEOUT_MS = 30_000
# DeleteTopics takes names up to v5. From v6 on it takes names or ids, in another field.
_DELETE_BY_NAME = 5


class Admin:
    """An administrator of one cluster. Use it as a context manager.

    Each call returns when a broker has answered, and raises `BrokerError` for an error in the
    answer.
    """

    def __init__(self, bootstrap_servers: str) -> None:
        self._client = KafkaClient(ClientConfig(parse_addresses(bootstrap_servers)))

    def __enter__(self) -> "Admin":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def brokers(self) -> list[Broker]:
        """Return the brokers that are up."""

        def attempt(deadline: Deadline) -> list[Broker]:
            self._client.topics([], deadline)
            return list(self._client.cluster.brokers.values())

        return self._client.retrying("Metadata", attempt)

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replication_factor: int = 1,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic, and wait until the leaders of all its partitions serve it."""
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=name,
                    num_partitions=partitions,
                    replication_factor=replication_factor,
                    configs=[
                        CreatableTopicConfig(name=key, value=value)
                        for key, value in (configs or {}).items()
                    ],
                )
            ],
            timeout_ms=_BROKER_TIMEOUT_MS,
        )

        def attempt(deadline: Deadline) -> None:
            result = self._client.send_to_one(request, deadline).topics[0]
            _check(result.error_code, f"CreateTopics {name!r}", result.error_message)

        self._client.retrying(f"CreateTopics {name!r}", attempt)
        self._wait_for_leaders(name, partitions)

    def delete_topic(self, name: str) -> None:
        """Delete a topic, and wait until the brokers no longer know it."""
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=_BROKER_TIMEOUT_MS)

        def attempt(deadline: Deadline) -> None:
            answer = self._client.send_to_one(request, deadline, max_version=_DELETE_BY_NAME)
            result = answer.responses[0]
            _check(result.error_code, f"DeleteTopics {name!r}", result.error_message)

        self._client.retrying(f"DeleteTopics {name!r}", attempt)
        self._wait_until_gone(name)

    def create_partitions(self, name: str, total: int) -> None:
        """Grow a topic to `total` partitions, and wait until their leaders serve them."""
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=name, count=total, assignments=None)],
            timeout_ms=_BROKER_TIMEOUT_MS,
        )

        def attempt(deadline: Deadline) -> None:
            result = self._client.send_to_one(request, deadline).results[0]
            _check(result.error_code, f"CreatePartitions {name!r}", result.error_message)

        self._client.retrying(f"CreatePartitions {name!r}", attempt)
        self._wait_for_leaders(name, total)

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        """Delete each partition's records before an offset. -1 means its high watermark."""

        def attempt(deadline: Deadline) -> None:
            leaders = self._client.leaders(before, deadline)
            by_leader: dict[Broker, dict[TopicPartition, int]] = defaultdict(dict)
            for topic_partition, offset in before.items():
                by_leader[leaders[topic_partition][0]][topic_partition] = offset
            for broker, offsets in by_leader.items():
                self._delete_records_of(broker, offsets, deadline)

        self._client.retrying("DeleteRecords", attempt)

    def _delete_records_of(
        self, broker: Broker, before: Mapping[TopicPartition, int], deadline: Deadline
    ) -> None:
        request = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=each.topic,
                    partitions=[
                        DeleteRecordsPartition(partition_index=each.partition, offset=offset)
                    ],
                )
                for each, offset in before.items()
            ],
            timeout_ms=_BROKER_TIMEOUT_MS,
        )
        for topic in self._client.send(request, broker, deadline).topics:
            for partition in topic.partitions:
                where = TopicPartition(topic.name, partition.partition_index)
                _check(partition.error_code, f"DeleteRecords of {where}", None)

    def _wait_for_leaders(self, name: str, partitions: int) -> None:
        def attempt(deadline: Deadline) -> None:
            # A broker learns of a new topic after the controller does.
            self._client.cluster.forget_leaders()
            wanted = [TopicPartition(name, partition) for partition in range(partitions)]
            self._client.leaders(wanted, deadline)

        self._client.retrying(f"leaders of {name!r}", attempt)
        # A broker names itself the leader before it serves the partition. A producer that writes
        # in between may have its second batch stored and its first refused: Kafka's own sends the
        # first again until delivery.timeout.ms (KAFKA-14359).
        latest_offsets(self._client, [TopicPartition(name, each) for each in range(partitions)])

    def _wait_until_gone(self, name: str) -> None:
        unknown = error_named("UNKNOWN_TOPIC_OR_PARTITION")

        def attempt(deadline: Deadline) -> None:
            if self._client.topics([name], deadline)[0].error != unknown:
                raise BrokerError(error_named("REQUEST_TIMED_OUT"), f"end of topic {name!r}")

        self._client.retrying(f"end of {name!r}", attempt)


def _check(code: int, what: str, detail: str | None) -> None:
    if code:
        raise BrokerError(error_code(code), what, detail)
