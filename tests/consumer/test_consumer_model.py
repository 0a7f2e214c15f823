"""Random programs of a consumer on random logs: each record comes once, in order."""

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_kafka_source.consumer import reading
from spark_kafka_source.consumer.kafka_consumer import KafkaConsumer
from spark_kafka_source.errors import error_named
from spark_kafka_source.protocol.messages.fetch import FetchRequest, FetchResponse
from spark_kafka_source.protocol.messages.list_offsets import ListOffsetsRequest
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from spark_kafka_source.records import Codec, Record
from spark_kafka_source.testing.memory import MemoryBroker, PartitionLog
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import PATIENCE_MS, QUICK

pytestmark = pytest.mark.memory(nodes=3)

PARTITIONS = [TopicPartition("t", each) for each in range(3)]
REFUSALS = [
    "NOT_LEADER_OR_FOLLOWER",
    "FENCED_LEADER_EPOCH",
    "UNKNOWN_LEADER_EPOCH",
    "UNKNOWN_TOPIC_ID",
    "OFFSET_NOT_AVAILABLE",
    "KAFKA_STORAGE_ERROR",
    "UNKNOWN_TOPIC_OR_PARTITION",
]
ASKED = [FetchRequest, ListOffsetsRequest, MetadataRequest, OffsetForLeaderEpochRequest]
OPERATIONS = st.sampled_from(
    [
        "poll",
        "poll",
        "poll",
        "one by one",
        "append",
        "seek",
        "pause",
        "resume",
        "move",
        "forget session",
        "few sessions",
        "wrong epoch",
        "refuse",
        "hang up",
        "restart",
        "throttle",
        "near",
        "assign",
        "beginning",
    ]
)


@dataclass
class Program:
    """A consumer, the broker, and the next expected offset of each partition."""

    broker: MemoryBroker
    consumer: KafkaConsumer
    random: random.Random
    committed_only: bool
    visible: dict[TopicPartition, list[int]] = field(default_factory=dict)
    position: dict[TopicPartition, int] = field(default_factory=dict)
    next_producer: int = 1

    def log(self, where: TopicPartition) -> PartitionLog:
        return self.broker.cluster.topics["t"].logs[where.partition]

    def run(self, operation: str) -> None:
        where = self.random.choice(sorted(self.position))
        getattr(self, operation.replace(" ", "_"))(where)

    # -- a user's actions --

    def poll(self, _: TopicPartition) -> None:
        records = self.consumer.poll(timeout_ms=self.random.choice([0, 1, 5]))
        assert len(records) <= self._most
        for record in records:
            self.hear(TopicPartition(record.topic, record.partition), record.offset, record.value)

    def one_by_one(self, _: TopicPartition) -> None:
        """Iterate, but only over records that surely exist: an iteration waits for ever."""
        left = [each for each in self.position if self.left(each) and not self.is_paused(each)]
        if left:
            most = self.random.randint(1, 4)
            for count, record in enumerate(self.consumer, 1):
                where = TopicPartition(record.topic, record.partition)
                self.hear(where, record.offset, record.value)
                if count >= most or not any(self.left(each) for each in left):
                    break

    def seek(self, where: TopicPartition) -> None:
        self.position[where] = self.random.randint(0, self.log(where).end_offset)
        self.consumer.seek(where, self.position[where])

    def beginning(self, where: TopicPartition) -> None:
        self.position[where] = 0
        self.consumer.seek_to_beginning(where)

    def pause(self, where: TopicPartition) -> None:
        self.consumer.pause(where)

    def resume(self, where: TopicPartition) -> None:
        self.consumer.resume(where)

    def assign(self, where: TopicPartition) -> None:
        """Add or remove a partition. The other partitions keep their positions."""
        if len(self.position) > 1 and self.random.random() < 0.5:
            del self.position[where]
        else:
            for each in PARTITIONS:
                self.position.setdefault(each, 0)
        self.consumer.assign(sorted(self.position))

    # -- a cluster's actions --

    def append(self, where: TopicPartition) -> None:
        log = self.log(where)
        deltas = sorted(self.random.sample(range(12), self.random.randint(1, 6)))
        offsets = [log.end_offset + each for each in deltas]
        records = [
            Record(value=str(offset).encode(), offset_delta=delta)
            for offset, delta in zip(offsets, deltas, strict=True)
        ]
        kind = self.random.choice(["plain", "plain", "committed", "aborted", "emptied"])
        codec = self.random.choice(list(Codec))
        if kind == "plain":
            log.append(*records, codec=codec)
        elif kind == "emptied":
            log.append(codec=codec, last_offset_delta=self.random.randint(0, 9))
            offsets = []
        else:
            producer, self.next_producer = self.next_producer, self.next_producer + 1
            first = log.append(*records, codec=codec, producer_id=producer, transactional=True)
            log.append_marker(producer, commit=kind == "committed", first_offset=first)
            if kind == "aborted" and self.committed_only:
                offsets = []
        self.visible.setdefault(where, []).extend(offsets)

    def move(self, where: TopicPartition) -> None:
        self.broker.move_leader(where, self.random.randrange(2))

    def near(self, where: TopicPartition) -> None:
        self.log(where).replicas_by_rack = self.random.choice(
            [{}, {"here": 0}, {"here": 1}, {"here": 7}]
        )

    def forget_session(self, _: TopicPartition) -> None:
        for sessions in self.broker.cluster.fetch_sessions.values():
            sessions.by_id.clear()

    def few_sessions(self, _: TopicPartition) -> None:
        self.broker.cluster.most_fetch_sessions = self.random.choice([0, 1, 1_000])

    def wrong_epoch(self, _: TopicPartition) -> None:
        for name in ("INVALID_FETCH_SESSION_EPOCH", "FETCH_SESSION_TOPIC_ID_ERROR"):
            answer = FetchResponse(error_code=error_named(name).code)
            self.broker.control(FetchRequest, answer, times=1)

    def refuse(self, _: TopicPartition) -> None:
        error = error_named(self.random.choice(REFUSALS))
        self.broker.control(self.random.choice(ASKED), error)

    def throttle(self, _: TopicPartition) -> None:
        self.broker.cluster.throttle_time_ms[FetchRequest] = self.random.choice([0, 3])

    def hang_up(self, _: TopicPartition) -> None:
        self.broker.hang_up(self.random.randrange(2))

    def restart(self, _: TopicPartition) -> None:
        node_id = self.random.randrange(2)
        self.broker.stop(node_id)
        self.consumer_polls_without_it()
        self.broker.start(node_id)

    def consumer_polls_without_it(self) -> None:
        if self.random.random() < 0.5 and self.broker.cluster.ports:
            self.poll(PARTITIONS[0])

    # -- the promises --

    @property
    def _most(self) -> int:
        most: int = self.consumer._config.poll.max_poll_records
        return most

    def is_paused(self, where: TopicPartition) -> bool:
        return where in self.consumer.paused()

    def left(self, where: TopicPartition) -> list[int]:
        return [each for each in self.visible.get(where, ()) if each >= self.position[where]]

    def hear(self, where: TopicPartition, offset: int, value: bytes) -> None:
        assert not self.is_paused(where)
        assert self.left(where)[:1] == [offset], f"{where}: not the next record"
        assert value == str(offset).encode()
        self.position[where] = offset + 1

    def finish(self) -> None:
        """Read all remaining records."""
        self.broker._controls.clear()
        self.consumer.resume(*self.position)
        until_seconds = time.monotonic() + PATIENCE_MS / 1000
        while any(self.left(each) for each in self.position):
            assert time.monotonic() < until_seconds, {e: self.left(e) for e in self.position}
            self.poll(PARTITIONS[0])


@pytest.fixture(scope="module")
def shared() -> Iterator[MemoryBroker]:
    """Run a broker where a consumer waits only a short time for a node that is down."""
    with MemoryBroker(2) as broker, pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "LOOKUP_MS", 300)
        broker.held_step_seconds = 0.001
        yield broker


def play(broker: MemoryBroker, operations: list[str], seed: int) -> None:
    chance = random.Random(seed)
    broker.forget()
    broker.cluster.fetch_sessions.clear()
    broker.cluster.throttle_time_ms.clear()
    broker.cluster.most_fetch_sessions = 1_000
    broker.create_topic("t", 3)
    level = chance.choice(["read_committed", "read_uncommitted"])
    address = broker.address()
    with KafkaConsumer(
        bootstrap_servers=f"{address.host}:{address.port}",
        **QUICK
        | {
            "fetch_max_wait_ms": 3,
            "retry_backoff_ms": 0,
            "max_poll_records": chance.choice([1, 4, 1_000]),
            "max_partition_fetch_bytes": chance.choice([1, 150, 1_000_000]),
            "fetch_max_bytes": chance.choice([200, 1_000_000]),
            "isolation_level": level,
            "client_rack": "here",
        },
    ) as consumer:
        program = Program(broker, consumer, chance, level == "read_committed")
        program.position = dict.fromkeys(PARTITIONS, 0)
        consumer.assign(PARTITIONS)
        for each in PARTITIONS:
            program.append(each)
        for operation in operations:
            program.run(operation)
        program.finish()


@settings(max_examples=40)
@given(operations=st.lists(OPERATIONS, min_size=5, max_size=60), seed=st.integers(0, 2**32))
def test_whatever_happens(shared: MemoryBroker, operations: list[str], seed: int) -> None:
    play(shared, operations, seed)


@pytest.mark.reliability_full
@settings(max_examples=200)
@given(operations=st.lists(OPERATIONS, min_size=20, max_size=150), seed=st.integers(0, 2**32))
def test_whatever_happens_at_length(shared: MemoryBroker, operations: list[str], seed: int) -> None:
    play(shared, operations, seed)
