"""With `failOnDataLoss=false` a query continues after any loss, and reads no record twice.

In the model every written record has its own number. Between any two steps of Spark, topics are
deleted, recreated, truncated by unclean elections, aged and grown.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from types import MappingProxyType
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.fetch import OffsetRange
from spark_kafka_source.spark.source import idle_pace
from spark_kafka_source.spark.source.admission import ReadLimit, ReadMaxRows
from spark_kafka_source.spark.source.idle_pace import IdlePace
from spark_kafka_source.spark.source.offset_arithmetic import LogEnds
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.spark.source.options import SourceOptions
from spark_kafka_source.spark.source.planner import OffsetPlanner
from spark_kafka_source.spark.source.stream import KafkaStreamReader
from spark_kafka_source.topic_partition import TopicPartition
from tests.spark.settings import parsed
from tests.spark.source.engine import READ_ALL, Json, initial, latest, ranges, tell

OPTIONS = parsed(startingOffsets="earliest", failOnDataLoss="false")
LIMITED = parsed(startingOffsets="earliest", failOnDataLoss="false", maxOffsetsPerTrigger="3")
TOPICS = st.sampled_from(["a", "b"])
PARTITIONS = st.integers(0, 2)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), TOPICS, PARTITIONS, st.integers(1, 9)),
        st.tuples(st.sampled_from(["cut", "age"]), TOPICS, PARTITIONS, st.integers(0, 12)),
        st.tuples(st.just("make"), TOPICS, st.integers(1, 3), st.integers(0, 9)),
        st.tuples(st.sampled_from(["delete", "grow"]), TOPICS),
        st.tuples(st.just("run"), st.sampled_from([1, 3, None])),
        st.tuples(st.sampled_from(["plan", "run, crash", "restart"])),
    ),
    max_size=30,
)


@dataclass
class Partition:
    """A log: number and leader epoch of each record. Records before `first` have aged out."""

    records: list[tuple[int, int]] = field(default_factory=list)
    first: int = 0
    epoch: int = 0

    def cut(self, offset: int) -> None:
        """Do an unclean election. The new leader lacks the records from `offset` on."""
        self.epoch += 1
        del self.records[max(offset, self.first) :]

    def epoch_end(self, epoch: int) -> int:
        if epoch >= self.epoch:
            return len(self.records) if epoch == self.epoch else -1
        later = (offset for offset, (_, other) in enumerate(self.records) if other > epoch)
        return next(later, len(self.records))


@dataclass
class Topic:
    topic_id: UUID
    partitions: list[Partition]


class Cluster:
    """Existing topics and their changes. Topics have ids (Kafka 2.8 and later) if `with_ids`."""

    def __init__(self, *, with_ids: bool) -> None:
        self.with_ids = with_ids
        self.topics: dict[str, Topic] = {}
        self._ids, self._records = count(1), count()

    def make(self, name: str, partitions: int, records: int = 0) -> None:
        made = Topic(UUID(int=next(self._ids)), [Partition() for _ in range(partitions)])
        self.topics[name] = made
        for partition in range(partitions):
            self.write(name, partition, records)

    def write(self, name: str, partition: int, records: int) -> None:
        for log in self.logs(name)[partition : partition + 1]:
            log.records += [(next(self._records), log.epoch) for _ in range(records)]

    def logs(self, name: str) -> list[Partition]:
        return self.topics[name].partitions if name in self.topics else []

    def all_logs(self) -> dict[TopicPartition, Partition]:
        return {
            TopicPartition(name, index): log
            for name, topic in self.topics.items()
            for index, log in enumerate(topic.partitions)
        }

    def read(self, wanted: OffsetRange) -> list[int]:
        """Return the records that a task reads of its range if it skips lost records."""
        name, partition = wanted.topic_partition
        if partition >= len(self.logs(name)):
            return []
        if wanted.topic_id not in (None, self.topics[name].topic_id):
            return []
        log = self.logs(name)[partition]
        if wanted.start > len(log.records):
            return []
        return [number for number, _ in log.records[max(wanted.start, log.first) : wanted.end]]


class Planner(OffsetPlanner):
    """Planner that asks the model instead of brokers."""

    def __init__(self, options: SourceOptions, cluster: Cluster) -> None:
        super().__init__(options)
        self._cluster = cluster

    def log_ends(self, read: Offsets = MappingProxyType({})) -> LogEnds:
        logs, topics = self._cluster.all_logs(), self._cluster.topics
        return LogEnds(
            {each: len(log.records) for each, log in logs.items()},
            {each: log.epoch for each, log in logs.items()},
            {name: topics[name].topic_id for name in topics if self._cluster.with_ids},
        )

    def news(self, ends: LogEnds, pace: IdlePace) -> bool:
        return True

    def earliest(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        logs = self._cluster.all_logs()
        return {each: logs[each].first for each in topic_partitions}

    def epoch_ends(self, leader_epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        logs = self._cluster.all_logs()
        return {each: logs[each].epoch_end(epoch) for each, epoch in leader_epochs.items()}


class Spark:
    """Runner of one query. A crash loses the reader and the rows of the current micro-batch."""

    def __init__(self, cluster: Cluster, options: SourceOptions = OPTIONS) -> None:
        self._cluster, self._options = cluster, options
        self._offset_log: list[Json] = []
        self.sink: list[list[int]] = []
        self.restart()

    def restart(self) -> None:
        self._reader = KafkaStreamReader(self._options)
        self._reader.__dict__["_planner"] = Planner(self._options, self._cluster)

    @property
    def unfinished(self) -> bool:
        return len(self._offset_log) > len(self.sink)

    def plan(self, limit: ReadLimit = READ_ALL) -> bool:
        """Plan a micro-batch. Return whether there is one to run."""
        start = self._start()
        if not self.unfinished:
            end = self._next_end(start, limit)
            self._offset_log += [end] if end != start else []
        return self.unfinished

    def run(self, *, crash: bool = False) -> None:
        planned = ranges(self._reader, self._start(), self._offset_log[len(self.sink)])
        if crash:
            self.restart()
        else:
            self.sink.append([number for each in planned for number in self._cluster.read(each)])

    def _next_end(self, start: Json, limit: ReadLimit) -> Json:
        return latest(self._reader, start, limit)

    def _start(self) -> Json:
        return self._offset_log[len(self.sink) - 1] if self.sink else initial(self._reader)


class EarlierSpark(Spark):
    """Spark 4.0 or 4.1: it tells the last planned end at a restart, and gives no start or limit."""

    def restart(self) -> None:
        super().restart()
        if self._offset_log:
            tell(self._reader, self._offset_log[-1])

    def _next_end(self, start: Json, limit: ReadLimit) -> Json:
        return latest(self._reader)


def happen(event: tuple[str | int | None, ...], cluster: Cluster, spark: Spark) -> None:
    match event:
        case ["write", str(name), int(partition), int(records)]:
            cluster.write(name, partition, records)
        case ["cut", str(name), int(partition), int(offset)] if not spark.unfinished:
            # A running task cannot notice that its log is cut: its range has no leader epoch.
            for log in cluster.logs(name)[partition : partition + 1]:
                log.cut(offset)
        case ["age", str(name), int(partition), int(offset)]:
            for log in cluster.logs(name)[partition : partition + 1]:
                log.first = min(max(offset, log.first), len(log.records))
        case ["make", str(name), int(partitions), int(records)]:
            cluster.make(name, partitions, records)
        case ["delete", str(name)]:
            cluster.topics.pop(name, None)
        case ["grow", str(name)] if name in cluster.topics:
            cluster.topics[name].partitions.append(Partition())
        case _:
            step(event, spark)


def step(event: tuple[str | int | None, ...], spark: Spark) -> None:
    match event:
        case ["plan"]:
            spark.plan()
        case ["run", limit]:
            if spark.plan(ReadMaxRows(limit) if isinstance(limit, int) else READ_ALL):
                spark.run()
        case ["run, crash"]:
            if spark.plan():
                spark.run(crash=True)
        case ["restart"]:
            spark.restart()


@given(st.sampled_from(["4.2", "4.0", "4.0, limited"]), EVENTS, st.booleans())
def test_a_query_goes_on_doubles_nothing_and_reads_all_that_is_there(
    version: str, events: list[tuple[str | int | None, ...]], with_ids: bool
) -> None:
    cluster = Cluster(with_ids=with_ids)
    cluster.make("a", 2, 5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "sleep", lambda _: None)
        patch.setattr(idle_pace, "LEAST_PAUSE_SECONDS", 0.0)
        options = LIMITED if "limited" in version else OPTIONS
        spark = Spark(cluster) if version == "4.2" else EarlierSpark(cluster, options)
        for event in events:
            happen(event, cluster, spark)
        while spark.plan(ReadMaxRows(7)):
            spark.run()
    found = [number for batch in spark.sink for number in batch]
    assert len(found) == len(set(found))
    if with_ids:  # Without ids, a recreated topic looks like the old one.
        logs = cluster.all_logs().values()
        assert {number for log in logs for number, _ in log.records[log.first :]} <= set(found)
