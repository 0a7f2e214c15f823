"""A member of a group, for a process of its own, which writes all that it does to a file.

The file has a line of JSON for each act, written at once. So it has also what a killed member read
and committed. Moments are milliseconds since 1970, as in the brokers' timestamps.
"""

import json
import os
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import confluent_kafka
import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source import ConsumerRebalanceListener, KafkaConsumer
from spark_kafka_source.consumer.waiting import WakeupError
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.groups import OffsetAndMetadata
from spark_kafka_source.topic_partition import TopicPartition

SESSION_MS = 4_000
_HEARTBEAT_MS = 500
_MOST_RECORDS = 200
_AUTO_COMMIT_MS = 500
_METADATA_MS = 2_000
_CLOSE_MS = 20_000
_POLL_MS = 300

Where = tuple[str, int]
Handed = Mapping[Where, tuple[int, int]]
"""First offset, and offset after the last one, of each partition."""


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders of a member. `commits`: sync, async, auto, or mixed (sync or async each time).

    `protocol` is the assignor of the classic protocol, or `consumer` for KIP-848. With
    `leaves_early` the member closes once a rebalance has given or taken it a partition.
    """

    servers: str
    group_id: str
    topics: tuple[str, ...]
    protocol: str
    name: str
    path: str
    seed: int
    commits: str
    is_ours: bool = True
    leaves_early: bool = False

    @property
    def group(self) -> dict[str, object]:
        """Settings of both kinds of members, by Kafka's names."""
        found: dict[str, object] = {
            "bootstrap.servers": self.servers,
            "group.id": self.group_id,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": self.commits == "auto",
            "auto.commit.interval.ms": _AUTO_COMMIT_MS,
            "metadata.max.age.ms": _METADATA_MS,
        }
        if self.protocol == "consumer":
            return found | {"group.protocol": "consumer"}
        return found | {
            "partition.assignment.strategy": self.protocol,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": _HEARTBEAT_MS,
        }


class Diary:
    """Acts of a member, a line each."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def note(self, what: str, **more: Any) -> None:
        line = {"at_ms": time.time_ns() // 1_000_000, "what": what} | more
        os.write(self._file, json.dumps(line).encode() + b"\n")

    def moved(self, what: str, partitions: Iterable[Where]) -> None:
        self.note(what, where=[list(each) for each in partitions])


class Member(ABC):
    """The common part of both kinds of members."""

    def __init__(self, orders: Orders) -> None:
        self.orders = orders
        self.diary = Diary(orders.path)
        self.chance = Random(orders.seed)
        self.has_rebalanced = False
        self.read: dict[Where, int] = {}
        self._commits = 0

    def run(self) -> None:
        """Poll until SIGTERM, or to the first rebalance with `leaves_early`. Then close."""
        leaving: list[int] = []

        def leave(signum: int, _: object) -> None:
            leaving.append(signum)
            self.wake()

        signal.signal(signal.SIGTERM, leave)
        self.diary.note("begins", ours=self.orders.is_ours, commits=self.orders.commits)
        while not leaving and not (self.orders.leaves_early and self.has_rebalanced):
            handed = self.poll()
            if handed:
                self._handed_out(handed)
        self.diary.note("closing")
        self.close()
        self.diary.note("closed")

    def _handed_out(self, handed: Handed) -> None:
        self.diary.note("read", ranges=[[*where, *offsets] for where, offsets in handed.items()])
        self.read |= {where: end for where, (_, end) in handed.items()}
        self.processed()
        time.sleep(self.chance.uniform(0, 0.05))
        how = self.orders.commits
        if how == "mixed":
            how = self.chance.choice(["sync", "async"])
        if how != "auto" and self.chance.random() < 0.5:
            self._commits += 1
            number = self._commits
            done = partial(self._committed, number)
            self.diary.note("commits", number=number, how=how)
            (self.commit_sync if how == "sync" else self.commit_async)(done)

    def _committed(self, number: int, error: object = None) -> None:
        self.diary.note("committed", number=number, error=None if error is None else str(error))

    def moved(self, what: str, partitions: Iterable[Where]) -> None:
        """Note partitions that were assigned, revoked or lost."""
        partitions = list(partitions)
        for each in partitions:
            self.read.pop(each, None)
        self.has_rebalanced = self.has_rebalanced or bool(partitions)
        self.diary.moved(what, partitions)

    @abstractmethod
    def wake(self) -> None:
        """End a poll early. A signal handler calls this."""

    @abstractmethod
    def poll(self) -> Handed: ...

    def processed(self) -> None:  # noqa: B027 - one kind has nothing to do here
        """Allow the automatic commit of all records handed out so far."""

    @abstractmethod
    def commit_sync(self, done: Callable[[object], None]) -> None: ...

    @abstractmethod
    def commit_async(self, done: Callable[[object], None]) -> None: ...

    @abstractmethod
    def close(self) -> None: ...


class _Listener(ConsumerRebalanceListener):
    def __init__(self, member: Member) -> None:
        self._member = member

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._member.moved("revoked", partitions)

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self._member.moved("assigned", partitions)

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        self._member.moved("lost", partitions)


class Ours(Member):
    """A `KafkaConsumer`."""

    def __init__(self, orders: Orders) -> None:
        super().__init__(orders)
        configuration: dict[str, Any] = {
            name.replace(".", "_"): value for name, value in orders.group.items()
        }
        self._consumer = KafkaConsumer(
            columns=["offset", "value"], max_poll_records=_MOST_RECORDS, **configuration
        )
        self._consumer.subscribe(orders.topics, listener=_Listener(self))

    def wake(self) -> None:
        self._consumer.wakeup()

    def poll(self) -> Handed:
        try:
            records = self._consumer.poll(_POLL_MS)
        except WakeupError:
            return {}
        return {
            (each.topic, each.partition): _range(records.of(each).to_arrow())
            for each in records.partitions
        }

    def commit_sync(self, done: Callable[[object], None]) -> None:
        try:
            self._consumer.commit(self._offsets())
        except KafkaError as error:
            done(error)
        else:
            done(None)

    def commit_async(self, done: Callable[[object], None]) -> None:
        self._consumer.commit_async(self._offsets(), lambda _, error: done(error))

    def _offsets(self) -> dict[TopicPartition, OffsetAndMetadata | int] | None:
        """Return None, for all positions, or the offsets read with the member's name as metadata.

        Chance decides.
        """
        if self.chance.random() < 0.5:
            return None
        name = self.orders.name
        return {
            TopicPartition(*where): OffsetAndMetadata(end, metadata=name)
            for where, end in self.read.items()
        }

    def close(self) -> None:
        self._consumer.close(_CLOSE_MS)


def _range(table: pa.Table) -> tuple[int, int]:
    """Return the range of a table's offsets. Check that none is missing, by the values, too."""
    offsets, found = table["offset"], table["value"].cast(pa.string()).cast(pa.int64())
    first, end = offsets[0].as_py(), offsets[-1].as_py() + 1
    assert end - first == len(table), (first, end, len(table))
    assert pc.all(pc.equal(offsets, found)).as_py(), (first, end)
    return first, end


class Theirs(Member):
    """A consumer of confluent-kafka."""

    def __init__(self, orders: Orders) -> None:
        super().__init__(orders)
        settings = {"enable.auto.offset.store": False, "log_level": 0} | orders.group
        # Automatic commits take only the stored offsets, which the diary has as read.
        self._consumer = confluent_kafka.Consumer(settings)
        self._consumer.subscribe(
            list(orders.topics),
            on_assign=self._told("assigned"),
            on_revoke=self._told("revoked"),
            on_lost=self._told("lost"),
        )

    def _told(self, what: str) -> Callable[[object, list[Any]], None]:
        def told(_: object, partitions: list[Any]) -> None:
            self.moved(what, [(each.topic, each.partition) for each in partitions])

        return told

    def wake(self) -> None:
        """Do nothing: its polls are short."""

    def poll(self) -> Handed:
        handed: dict[Where, tuple[int, int]] = {}
        for message in self._consumer.consume(_MOST_RECORDS, _POLL_MS / 1000):
            if message.error():
                self.diary.note("error", text=str(message.error()))
                continue
            where = str(message.topic()), int(message.partition() or 0)
            offset = int(message.offset() or 0)
            first, end = handed.get(where, (offset, offset))
            assert end == offset == int(message.value() or b"-1"), (where, end, offset)
            handed[where] = first, offset + 1
        return handed

    def processed(self) -> None:
        if self.orders.commits == "auto":
            try:
                self._consumer.store_offsets(offsets=self._offsets())
            except confluent_kafka.KafkaException as error:
                self.diary.note("error", text=str(error))

    def _offsets(self) -> list[Any]:
        name = self.orders.name
        return [
            confluent_kafka.TopicPartition(*where, offset, name)
            for where, offset in self.read.items()
        ]

    def commit_sync(self, done: Callable[[object], None]) -> None:
        try:
            if self.read:
                self._consumer.commit(offsets=self._offsets(), asynchronous=False)
        except confluent_kafka.KafkaException as error:
            done(error)
        else:
            done(None)

    def commit_async(self, done: Callable[[object], None]) -> None:
        if self.read:
            self._consumer.commit(offsets=self._offsets(), asynchronous=True)
        done(None)  # It does not tell the outcome.

    def close(self) -> None:
        self._consumer.close()


def live(orders: Orders) -> None:
    """Run a member. An error that ends it is the last line of its diary."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        (Ours if orders.is_ours else Theirs)(orders).run()
    except BaseException as error:
        Diary(orders.path).note("failed", error=repr(error))
        raise
