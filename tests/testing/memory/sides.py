"""The two brokers of a conversation: the in-memory one and a real one."""

import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar, cast

from spark_kafka_source.errors import error_named
from spark_kafka_source.net import Address, Connection, ConnectionSettings, Deadline
from spark_kafka_source.protocol import Request, Response
from spark_kafka_source.protocol.messages.describe_transactions import DescribeTransactionsRequest
from spark_kafka_source.protocol.messages.find_coordinator import FindCoordinatorRequest
from spark_kafka_source.protocol.messages.group_admin import DescribeGroupsRequest
from spark_kafka_source.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from spark_kafka_source.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from spark_kafka_source.protocol.messages.produce import InitProducerIdRequest
from spark_kafka_source.records import Record
from spark_kafka_source.testing import LocalKafka, Producer
from spark_kafka_source.testing.memory.broker import MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition

R = TypeVar("R", bound=Response)

FIRST_TIMESTAMP_MS = 1_700_000_000_000
GROUP = "g"
TRANSACTIONAL_IDS = ("p", "q")
STRANGER = "stranger"
"""A member with an id that no broker gave."""

_PATIENCE_MS = 60_000
_STEP_SECONDS = 0.01
_NOT_YET = ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS")


def records(count: int, first: int, since_ms: int = FIRST_TIMESTAMP_MS) -> list[Record]:
    """Return records a second apart. The first one is for offset `first`."""
    return [
        Record(value=b"v", timestamp_ms=since_ms + 1_000 * at) for at in range(first, first + count)
    ]


class Side(ABC):
    """One broker, and the state of a conversation with it.

    A conversation uses short names of topics and groups. The broker gets unique names.
    Each speaker has its own connection, so that one can wait for an answer while others go on.
    """

    def __init__(self) -> None:
        self._suffix = uuid.uuid4().hex[:8]
        self._connections: dict[str, Connection] = {}
        self._ends: dict[str, int] = {}
        self.topics: set[str] = set()
        self.topic_ids: dict[str, uuid.UUID] = {}
        self.member_ids: dict[str, str] = {}
        self.generations: dict[str, int] = {}
        self.producers: dict[str, tuple[int, int]] = {}
        self.first_epoch = 1
        self.session_id, self.session_epoch = 0, 1
        self.meanings: dict[object, str] = {}
        """The conversation's short name for each name or id of this side."""

    def __enter__(self) -> "Side":
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    @property
    @abstractmethod
    def address(self) -> Address: ...

    @abstractmethod
    def make_topic(self, name: str, partitions: int) -> None: ...

    @abstractmethod
    def remove_topic(self, name: str) -> None: ...

    @abstractmethod
    def write(self, name: str, partition: int, added: list[Record]) -> None: ...

    @abstractmethod
    def start_again(self) -> None: ...

    def restart(self) -> None:
        """Restart the broker. It loses its fetch sessions, and all leader epochs are new."""
        self._close()
        self.start_again()

    def _close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def name(self, short: str) -> str:
        name = f"{short}-{self._suffix}"
        self.meanings[name] = short
        return name

    def create_topic(self, topic: str, partitions: int) -> None:
        if topic in self.topics:
            return
        self.make_topic(self.name(topic), partitions)
        self.learn_topic(topic)

    def learn_topic(self, topic: str) -> None:
        """Note the id of a topic that exists."""
        self.topics.add(topic)
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=self.name(topic))])
        self.topic_ids[topic] = self.ask("", asked).topics[0].topic_id
        self.meanings[self.topic_ids[topic]] = f"id of {topic}"

    def delete_topic(self, topic: str) -> None:
        if topic not in self.topics:
            return
        self.topics.remove(topic)
        self.meanings[self.topic_ids[topic]] = f"former id of {topic}"
        self._ends = {at: end for at, end in self._ends.items() if not at.startswith(f"{topic}-")}
        self.remove_topic(self.name(topic))

    def append(self, topic: str, partition: int, count: int) -> None:
        if topic in self.topics:
            first = self._ends.get(f"{topic}-{partition}", 0)
            self.write(self.name(topic), partition, records(count, first))
            self._ends[f"{topic}-{partition}"] = first + count

    def topic_id(self, topic: str) -> uuid.UUID:
        """Return the present or last id. A topic that never existed has an unused id."""
        if topic not in self.topic_ids:
            self.topic_ids[topic] = uuid.uuid4()
            self.meanings[self.topic_ids[topic]] = f"id of {topic}"
        return self.topic_ids[topic]

    def member_id(self, member: str) -> str:
        """Return the id from the broker: "" before that, and a stranger's short name."""
        return self.member_ids.get(member, STRANGER if member == STRANGER else "")

    def own_member_id(self, member: str) -> str:
        """Return an id that the member made itself, as in KIP-848."""
        if member not in self.member_ids:
            self.learn_member(member, f"{member}-{self._suffix}")
        return self.member_ids[member]

    def generation(self, member: str) -> int:
        """Return the member's generation or epoch; -1 if it never had one."""
        return self.generations.get(member, -1)

    def learn_member(self, member: str, member_id: str) -> None:
        self.member_ids[member] = member_id
        self.meanings.setdefault(member_id, f"id of {member}")

    def producer(self, name: str) -> tuple[int, int]:
        """Return the producer's id and epoch; -1 if it never had any."""
        return self.producers.get(name, (-1, -1))

    def learn_producer(self, name: str, producer_id: int, epoch: int) -> None:
        self.producers[name] = producer_id, epoch
        known = sum(isinstance(each, tuple) for each in self.meanings)
        self.meanings.setdefault(("producer id", producer_id), f"producer id {known}")

    def ask(self, speaker: str, request: Request[R], max_version: int | None = None) -> R:
        """Return the answer to a request on the speaker's connection."""
        self.send(speaker, request, max_version)
        return cast(R, self.hear(speaker))

    def send(self, speaker: str, request: Request[Any], max_version: int | None = None) -> None:
        deadline = Deadline.after_ms(_PATIENCE_MS)
        if speaker not in self._connections:
            settings = ConnectionSettings()
            self._connections[speaker] = Connection.connect(self.address, settings, deadline)
        self._connections[speaker].send(request, deadline, max_version=max_version)

    def hear(self, speaker: str) -> Response:
        return self._connections[speaker].receive(Deadline.after_ms(_PATIENCE_MS))


class InMemory(Side):
    """The side of the in-memory broker."""

    def __init__(self, broker: MemoryBroker) -> None:
        super().__init__()
        self._broker = broker

    @property
    def address(self) -> Address:
        return self._broker.address()

    def make_topic(self, name: str, partitions: int) -> None:
        self._broker.create_topic(name, partitions)

    def remove_topic(self, name: str) -> None:
        self._broker.delete_topic(name)

    def write(self, name: str, partition: int, added: list[Record]) -> None:
        self._broker.cluster.topics[name].logs[partition].append(*added)

    def start_again(self) -> None:
        """Raise epochs as Kafka does: once for the lost leader, once for its return."""
        self._broker.stop(0)
        self._broker.start(0)
        for name, topic in self._broker.cluster.topics.items():
            for partition in range(len(topic.logs)):
                for _ in range(2):
                    self._broker.move_leader(TopicPartition(name, partition), 0)


class Real(Side):
    """The side of a real broker, the only one of its cluster."""

    def __init__(self, kafka: LocalKafka) -> None:
        super().__init__()
        self._kafka = kafka
        self._fence_partitions = 0
        self._wait_for_coordinators()

    @property
    def address(self) -> Address:
        host, port = self._kafka.bootstrap_servers.split(":")
        return Address(host, int(port))

    def _wait_for_coordinators(self) -> None:
        """Wait: a cluster creates and loads its internal topics at the first request for them."""
        self._wait_for_group(self.name(GROUP))
        for each in TRANSACTIONAL_IDS:
            self._wait_for_transactions(self.name(each))
        self._wait_until(lambda: self.ask("", InitProducerIdRequest(None, 0)).error_code)

    def _wait_for_group(self, group_id: str) -> None:
        def error() -> int:
            self.ask("", FindCoordinatorRequest(coordinator_keys=[group_id]))
            return self.ask("", DescribeGroupsRequest([group_id])).groups[0].error_code

        self._wait_until(error)

    def _wait_for_transactions(self, transactional_id: str) -> None:
        def error() -> int:
            self.ask("", FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id]))
            answer = self.ask("", DescribeTransactionsRequest([transactional_id]))
            return answer.transaction_states[0].error_code

        self._wait_until(error)

    def _wait_until(self, error: Callable[[], int]) -> None:
        not_yet = [error_named(name).code for name in _NOT_YET]
        deadline = Deadline.after_ms(_PATIENCE_MS)
        while error() in not_yet:
            assert not deadline.expired, "the broker's coordinators are not ready"
            time.sleep(_STEP_SECONDS)

    def make_topic(self, name: str, partitions: int) -> None:
        """Create a topic. Wait until leaders answer for all partitions: metadata is too early."""
        self._kafka.create_topic(name, partitions)
        asked = [ListOffsetsPartition(each, timestamp=-1) for each in range(partitions)]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name, asked)])
        deadline = Deadline.after_ms(_PATIENCE_MS)
        while any(each.error_code for each in self.ask("", request).topics[0].partitions):
            assert not deadline.expired, f"nobody leads {name}"
            time.sleep(_STEP_SECONDS)

    def remove_topic(self, name: str) -> None:
        """Delete a topic. Wait until the group's coordinator, too, has removed it.

        The metadata lacks the topic earlier. The broker handles changes one after another.
        """
        self._kafka.delete_topic(name)
        self._fence_partitions += 1
        if self._fence_partitions == 1:
            self._kafka.create_topic(self.name("fence"))
        else:
            self._kafka.create_partitions(self.name("fence"), self._fence_partitions)

    def start_again(self) -> None:
        self._kafka.restart()
        self._wait_for_coordinators()

    def write(self, name: str, partition: int, added: list[Record]) -> None:
        with Producer(self._kafka.bootstrap_servers) as producer:
            producer.send(name, partition, added)
