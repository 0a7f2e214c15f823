"""A consumer as a process: `member ours`, or `member theirs`, which is confluent-kafka's.

It takes orders by lines on its standard input. `JavaMember.java` takes and prints the same lines:

    set NAME VALUE              a setting, by Kafka's name
    subscribe TOPIC...          or `match PATTERN`, or `assign TOPIC:PARTITION...`
    every MS                    commit the records read so often, and wait for it
    begin                       poll from now on, each time for 100 ms
    commit TOPIC:PARTITION OFFSET TIMEOUT_MS
    close                       close the consumer, and end

It prints lines on its standard output. Moments are milliseconds since 1970.

    ready
    > WHAT MOMENT               begins `start`, `poll`, `commit`, `ask` (a commit by order), `close`
    < WHAT MOMENT MS ERROR      has ended it, after so many ms; ERROR is `-` if there is none
    read MOMENT TOPIC:PARTITION FIRST NEXT
    owns MOMENT GENERATION TOPIC:PARTITION...      after each change; GENERATION is -1 if unknown

It ends at once when its standard input ends: then its parent is gone.
"""

import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

import confluent_kafka

from spark_kafka_source import ConsumerRebalanceListener, KafkaConsumer
from spark_kafka_source.topic_partition import TopicPartition

POLL_MS = 100
_MOST_RECORDS = 500
_CLOSE_MS = 30_000

Read = tuple[TopicPartition, int, int]
"""A partition, the first offset read, and the offset after the last one."""


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _say(*words: object) -> None:
    print(*words, flush=True)


def _partition(text: str) -> TopicPartition:
    topic, _, partition = text.rpartition(":")
    return TopicPartition(topic, int(partition))


def _texts(partitions: Iterable[Any]) -> list[str]:
    return sorted(f"{each.topic}:{each.partition}" for each in partitions)


class Member(ABC):
    """The common part of both kinds: the lines."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.reads: tuple[str, list[str]] = ("subscribe", [])
        self.next: dict[TopicPartition, int] = {}
        self._every_ms = 0
        self._due_ms = 0
        self._lines: SimpleQueue[str] = SimpleQueue()
        self._is_open = True

    def live(self) -> None:
        Thread(target=self._listen, daemon=True).start()
        _say("ready")
        while not self._told(self._lines.get()):
            pass
        self._timed("start", self.start)
        while self._is_open:
            self._timed("poll", self._poll)
            if self._every_ms and self.next and _now_ms() >= self._due_ms:
                self._timed("commit", self.commit)
                self._due_ms = _now_ms() + self._every_ms
            try:
                self._told(self._lines.get_nowait())
            except Empty:
                continue

    def _listen(self) -> None:
        for line in sys.stdin:
            self._lines.put(line)
        os._exit(1)

    def _told(self, line: str) -> bool:
        """Carry out the order of a line. Return whether the order is to begin."""
        match line.split():
            case ["set", name, value]:
                self.settings[name] = value
            case ["every", milliseconds]:
                self._every_ms = int(milliseconds)
            case ["commit", where, offset, timeout_ms]:
                asked = (_partition(where), int(offset), int(timeout_ms))
                self._timed("ask", lambda: self.commit_one(*asked))
            case ["close"]:
                self._timed("close", self.close)
                self._is_open = False
            case [how, *names]:
                self.reads = self.reads if how == "begin" else (how, names)
                return how == "begin"
        return False

    def _timed(self, what: str, act: Callable[[], object]) -> None:
        began_ms, began = _now_ms(), time.monotonic()
        _say(">", what, began_ms)
        error = "-"
        try:
            act()
        except Exception as raised:
            error = repr(raised).replace("\n", " ")
        _say("<", what, _now_ms(), int(1000 * (time.monotonic() - began)), error)

    def _poll(self) -> None:
        for where, first, after in self.poll():
            self.next[where] = after
            _say("read", _now_ms(), f"{where.topic}:{where.partition}", first, after)

    def owns(self, generation: int, partitions: Iterable[Any]) -> None:
        names = _texts(partitions)
        self.next = {each: at for each, at in self.next.items() if _texts([each])[0] in names}
        _say("owns", _now_ms(), generation, *names)

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def poll(self) -> list[Read]: ...

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def commit_one(self, where: TopicPartition, offset: int, timeout_ms: int) -> None: ...

    @abstractmethod
    def close(self) -> None: ...


class Ours(Member, ConsumerRebalanceListener):
    """A `KafkaConsumer`."""

    def start(self) -> None:
        given: dict[str, Any] = {
            name.replace(".", "_"): value for name, value in self.settings.items()
        }
        self._consumer = KafkaConsumer(columns=["offset"], max_poll_records=_MOST_RECORDS, **given)
        listener = self if "group.id" in self.settings else None
        match self.reads:
            case ("assign", names):
                self._consumer.assign(map(_partition, names))
            case ("match", [pattern]):
                self._consumer.subscribe(pattern=pattern, listener=listener)
            case (_, topics):
                self._consumer.subscribe(topics, listener=listener)

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        member = self._consumer.group_metadata()
        owned = self._consumer.assignment()
        self.owns(-1 if member is None else member.generation_id, owned)

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self.owns(-1, self._consumer.assignment() - set(partitions))

    def poll(self) -> list[Read]:
        records = self._consumer.poll(POLL_MS)
        found = []
        for where in records.partitions:
            offsets = records.of(where).to_arrow()["offset"].to_pylist()
            assert offsets == list(range(offsets[0], offsets[-1] + 1)), offsets
            found.append((where, offsets[0], offsets[-1] + 1))
        return found

    def commit(self) -> None:
        self._consumer.commit()

    def commit_one(self, where: TopicPartition, offset: int, timeout_ms: int) -> None:
        self._consumer.commit({where: offset}, timeout_ms=timeout_ms)

    def close(self) -> None:
        self._consumer.close(_CLOSE_MS)


class Theirs(Member):
    """A consumer of confluent-kafka."""

    def start(self) -> None:
        # librdkafka has its own interval to look up topics again.
        age_ms = self.settings.get("metadata.max.age.ms", "300000")
        settings = {"log_level": 0, "topic.metadata.refresh.interval.ms": age_ms} | self.settings
        begin_at = [] if "group.id" in settings else [confluent_kafka.OFFSET_BEGINNING]
        self._consumer = confluent_kafka.Consumer({"group.id": "of-nobody"} | settings)
        how, names = self.reads
        if how == "assign":
            where = [[*_partition(each), *begin_at] for each in names]
            wanted = [confluent_kafka.TopicPartition(*each) for each in where]  # type: ignore[arg-type]
            self._consumer.assign(wanted)
            return
        topics = [f"^{names[0]}" if how == "match" else each for each in names]
        self._consumer.subscribe(
            topics, on_assign=self._moved(1), on_revoke=self._moved(-1), on_lost=self._moved(-1)
        )

    def _moved(self, sign: int) -> Callable[[object, list[Any]], None]:
        def moved(_: object, partitions: list[Any]) -> None:
            changed = {(each.topic, each.partition): each for each in partitions}
            owned = {(each.topic, each.partition): each for each in self._consumer.assignment()}
            if sign > 0:
                owned |= changed
            self.owns(-1, [at for each, at in owned.items() if sign > 0 or each not in changed])

        return moved

    def poll(self) -> list[Read]:
        found: dict[TopicPartition, tuple[int, int]] = {}
        for message in self._consumer.consume(_MOST_RECORDS, POLL_MS / 1000):
            if message.error():
                continue
            where = TopicPartition(str(message.topic()), int(message.partition() or 0))
            offset = int(message.offset() or 0)
            first, after = found.get(where, (offset, offset))
            assert after == offset, (where, after, offset)
            found[where] = first, offset + 1
        return [(where, *offsets) for where, offsets in found.items()]

    def commit(self) -> None:
        self._commit(self.next)

    def commit_one(self, where: TopicPartition, offset: int, timeout_ms: int) -> None:
        self._commit({where: offset})  # Its `commit` takes no timeout.

    def _commit(self, offsets: dict[TopicPartition, int]) -> None:
        wanted = [confluent_kafka.TopicPartition(*each, at) for each, at in offsets.items()]
        done = self._consumer.commit(offsets=wanted, asynchronous=False) or []
        for each in done:
            if each.error:
                raise confluent_kafka.KafkaException(each.error)

    def close(self) -> None:
        self._consumer.close()


if __name__ == "__main__":
    {"ours": Ours, "theirs": Theirs}[sys.argv[1]]().live()
