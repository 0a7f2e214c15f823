"""Streaming: which offsets each micro-batch reads, planned and committed on the driver.

Spark keeps one reader in a Python process of its own per query and asks it at every trigger; a
second one is only pickled, for `read`. So nothing is looked up before the first question.
"""

import time
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from spark_kafka_source.errors import ConfigurationError, UnsupportedVersionError
from spark_kafka_source.spark.admission import (
    HAS_ADMISSION_CONTROL,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from spark_kafka_source.spark.conditions import (
    added_partition_not_from_zero,
    partition_offset_changed,
    partitions_deleted,
)
from spark_kafka_source.spark.executor import KafkaInputPartition, read_range
from spark_kafka_source.spark.group_commits import GroupCommits
from spark_kafka_source.spark.offsets import INITIAL, Offsets, SourceOffset
from spark_kafka_source.spark.options import Extreme, SourceOptions
from spark_kafka_source.spark.planner import OffsetPlanner
from spark_kafka_source.spark.planning import limit_offsets, offset_ranges
from spark_kafka_source.topic_partition import TopicPartition

# Spark asks an idle source some 87 times a second; a look at the brokers now and then is enough.
_IDLE_PAUSE_SECONDS = 0.2


class KafkaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads from `startingOffsets` (latest unless given), then on from the checkpoint."""

    def __init__(self, options: SourceOptions) -> None:
        _refuse_unsupported(options)
        self._options = options
        # None as long as Spark has not said where the query stands.
        self._position: SourceOffset | None = None
        self._latest: Offsets = {}
        self._pinned: Offsets | None = None

    # -- on the driver ---------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        """Always the same: the first micro-batch looks `startingOffsets` up and keeps them."""
        # Spark asks twice for the first micro-batch, the second time after `latestOffset`.
        self._position = self._position or INITIAL
        return INITIAL.to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """What `maxOffsetsPerTrigger` says."""
        limit = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self) -> None:
        """Pins the latest offsets: rows that come later wait for the next run."""
        self._pinned = self._look_up_latest()

    def latestOffset(
        self, start: Mapping[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """Up to where the next micro-batch reads; `start` again where nothing is new.

        `start` is the end of the last finished micro-batch, so it is committed to the group here.
        Spark before 4.2 gives neither argument.
        """
        if start is not None:
            self._position = SourceOffset.from_json(start)
            self._finished(self._position)
        self._latest = self._look_up_latest() if self._pinned is None else self._pinned
        end = self._next(self._position, limit)
        if end == self._position and self._pinned is None:
            time.sleep(_IDLE_PAUSE_SECONDS)
        self._position = end
        return end.to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """The ends of the log as last seen, for the query's progress: lag is the distance."""
        return SourceOffset(self._latest).to_json() if self._latest else None

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[InputPartition]:
        """One for each topic-partition with anything new; the same again after a restart."""
        before, after = SourceOffset.from_json(start), SourceOffset.from_json(end)
        starts = {**after.starts, **before.offsets}
        # Some are left only where Spark before 4.2 restarted and did not say from which offset.
        starts |= self._added(after.offsets.keys() - starts.keys())
        return [KafkaInputPartition(wanted) for wanted in offset_ranges(starts, after.offsets)]

    def commit(self, end: Mapping[str, Any]) -> None:
        """Commits a finished micro-batch to the group."""
        self._finished(SourceOffset.from_json(end))

    def stop(self) -> None:
        """Closes the connections."""
        if "_planner" in self.__dict__:
            self._planner.close()

    # -- on the executors ------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one partition."""
        if not isinstance(partition, KafkaInputPartition):
            return iter(())
        return read_range(partition.wanted, self._options)

    # -- private ---------------------------------------------------------------------------------

    @cached_property
    def _planner(self) -> OffsetPlanner:
        return OffsetPlanner(self._options)

    @cached_property
    def _group_commits(self) -> GroupCommits | None:
        group_id = self._options.group_id
        return None if group_id is None else GroupCommits(self._planner.client, group_id)

    def _finished(self, position: SourceOffset) -> None:
        if self._group_commits is not None and not position.initial:
            self._group_commits.finished(position.offsets)

    def _look_up_latest(self) -> Offsets:
        return self._planner.latest(self._planner.topic_partitions())

    def _next(self, position: SourceOffset | None, limit: ReadLimit | None) -> SourceOffset:
        """The end of the next micro-batch; `position` itself where nothing is new."""
        if position is None:
            # Spark before 4.2 restarts without saying from where: `partitions` will be told.
            return SourceOffset(self._latest)
        starts = self._starts(position)
        begin = {**position.offsets, **starts}
        _check_ends(begin, self._latest)
        end = self._latest
        if isinstance(limit, ReadMaxRows):
            end = limit_offsets(begin, end, limit.max_rows)
        unchanged = end == position.offsets and not position.initial
        return position if unchanged else SourceOffset(end, starts)

    def _starts(self, position: SourceOffset) -> Offsets:
        """Where the partitions begin that are new to the query."""
        if not position.initial:
            return self._added(self._latest.keys() - position.offsets.keys())
        starting = self._options.starting_offsets
        bound = Extreme.LATEST if starting is None else starting
        return self._planner.resolve("startingOffsets", bound, self._latest)

    def _added(self, topic_partitions: Collection[TopicPartition]) -> Offsets:
        """Added partitions are read from their start, which must be 0 or records were lost."""
        added = self._planner.earliest(topic_partitions) if topic_partitions else {}
        late = {each: offset for each, offset in added.items() if offset}
        if late:
            raise added_partition_not_from_zero(late)
        return added


def _check_ends(begin: Offsets, latest: Offsets) -> None:
    gone = begin.keys() - latest.keys()
    if gone:
        raise partitions_deleted(gone)
    for each in sorted(latest):
        if latest[each] < begin[each]:
            raise partition_offset_changed(each, begin[each], latest[each])


def _refuse_unsupported(options: SourceOptions) -> None:
    if options.ending_offsets is not None:
        raise ConfigurationError("endingOffsets", "is given", "A stream has no end: leave it out")
    if options.max_offsets_per_trigger is not None and not HAS_ADMISSION_CONTROL:
        raise UnsupportedVersionError(
            "Option 'maxOffsetsPerTrigger' needs Spark 4.2 or newer, which has admission control "
            f"for Python data sources; this is Spark {pyspark.__version__}"
        )
