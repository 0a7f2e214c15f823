"""Stand-ins around a stream reader: the brokers' offsets, and Spark that asks the reader."""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any
from uuid import UUID

from spark_kafka_source.fetch import OffsetRange
from spark_kafka_source.groups import OffsetAndMetadata
from spark_kafka_source.spark.source.admission import ReadAllAvailable, ReadLimit
from spark_kafka_source.spark.source.group_commits import GroupCommits
from spark_kafka_source.spark.source.idle_pace import IdlePace
from spark_kafka_source.spark.source.offset_arithmetic import LogEnds
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.spark.source.options import SourceOptions
from spark_kafka_source.spark.source.planner import OffsetPlanner
from spark_kafka_source.spark.source.stream import KafkaStreamReader
from spark_kafka_source.spark.source.tasks import KafkaInputPartition
from spark_kafka_source.topic_partition import TopicPartition

Json = dict[str, Any]
READ_ALL = ReadAllAvailable()


class Log:
    """Offsets of the brokers: `first` and `end` of each partition."""

    def __init__(self, end: dict[TopicPartition, int]) -> None:
        self.end = dict(end)
        self.first = dict.fromkeys(end, 0)
        self.epochs: dict[TopicPartition, int] = {}
        self.epoch_ends: dict[TopicPartition, int] = {}
        self.topic_ids: dict[str, UUID] = {}
        self.cluster_id = ""
        self.committed: dict[TopicPartition, int] = {}

    async def commit(
        self, _: object, __: str, offsets: dict[TopicPartition, OffsetAndMetadata], **___: object
    ) -> None:
        self.committed.update({where: at.offset for where, at in offsets.items()})


class FakePlanner(OffsetPlanner):
    """A planner over a log in memory. It resolves bounds as the real planner does."""

    def __init__(self, options: SourceOptions, log: Log) -> None:
        super().__init__(options)
        self._log = log
        self.closed = False

    def log_ends(self, _: Offsets = MappingProxyType({})) -> LogEnds:
        log = self._log
        return LogEnds(dict(log.end), dict(log.epochs), dict(log.topic_ids), log.cluster_id)

    def reads(self, _: TopicPartition) -> bool:
        return True  # Whatever is in the log.

    def cluster_id(self) -> str:
        return self._log.cluster_id

    def news(self, _: LogEnds, pace: IdlePace) -> bool:
        time.sleep(pace.pause_seconds)
        return True

    def earliest(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {each: self._log.first[each] for each in topic_partitions}

    def epoch_ends(self, leader_epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return {each: self._log.epoch_ends.get(each, -1) for each in leader_epochs}

    def close(self) -> None:
        super().close()
        self.closed = True


def reader_of(options: SourceOptions, log: Log) -> KafkaStreamReader:
    """Return a reader as in a new Python process. It asks the log instead of brokers."""
    reader = KafkaStreamReader(options)
    planner = FakePlanner(options, log)
    reader.__dict__["_planner"] = planner
    if options.group_id:
        commits = GroupCommits(planner.client, options.group_id, commit=log.commit)
        reader.__dict__["_group_commits"] = commits
    return reader


def initial(reader: KafkaStreamReader) -> Json:
    """Return the offset before the first micro-batch, as Spark's checkpoint gives it back."""
    return _through_text(reader.initialOffset())


def latest(
    reader: KafkaStreamReader, start: Json | None = None, limit: ReadLimit | None = READ_ALL
) -> Json:
    """Ask for the next end as Spark 4.2 does, or without `start` as earlier versions do."""
    found = reader.latestOffset() if start is None else reader.latestOffset(start, limit)
    return _through_text(found)


def tell(reader: KafkaStreamReader, end: Json) -> None:
    """Tell a restarted reader the last planned end, as Spark 4.0 and 4.1 do."""
    assert reader.partitions(end, end) == []


def ranges(reader: KafkaStreamReader, start: Json, end: Json) -> list[OffsetRange]:
    """Return the ranges of a micro-batch's tasks, without leader epochs."""
    found = []
    for partition in reader.partitions(start, end):
        assert isinstance(partition, KafkaInputPartition)
        found += [replace(each, leader_epoch=-1) for each in partition.ranges]
    return found


def _through_text(offset: Json) -> Json:
    found: Json = json.loads(json.dumps(offset))
    return found
