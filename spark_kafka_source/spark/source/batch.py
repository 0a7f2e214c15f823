"""Batches: the driver looks up the offsets once per `load()`. Each partition is one range."""

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from spark_kafka_source.client.configs import log_append_topics
from spark_kafka_source.errors import ConfigurationError, listed
from spark_kafka_source.logs import logger_of
from spark_kafka_source.spark.conditions import partitions_differ, start_after_end
from spark_kafka_source.spark.redaction import hiding
from spark_kafka_source.spark.source.bounds import AtTimestamp, Bound, Extreme, Given, NamedBound
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.spark.source.options import SourceOptions
from spark_kafka_source.spark.source.planner import OffsetPlanner
from spark_kafka_source.spark.source.progress import Progress
from spark_kafka_source.spark.source.tasks import KafkaInputPartition, plan_tasks, read_ranges

logger = logger_of(__name__)

_FROM_EARLIEST = NamedBound("startingOffsets", Extreme.EARLIEST)
_TO_LATEST = NamedBound("endingOffsets", Extreme.LATEST)


class KafkaBatchReader(DataSourceReader):
    """A batch from `startingOffsets` (default earliest) to `endingOffsets` (default latest)."""

    def __init__(self, options: SourceOptions) -> None:
        if options.managed_group is not None:
            raise ConfigurationError(
                "managedGroup", "is given", "A batch is no member of a group: leave it out"
            )
        self._options = options
        self._starting = options.starting or _FROM_EARLIEST
        self._ending = options.ending or _TO_LATEST
        _refuse_latest(self._starting)
        _check_bounds(self._starting.bound, self._ending.bound)

    def partitions(self) -> list[InputPartition]:
        """Return one task for each topic-partition with anything to read, or as options say."""
        planner = OffsetPlanner(self._options)
        try:
            with hiding(self._options.hidden):
                ends = planner.log_ends()
                starts, limits = self._bind(planner, ends.offsets)
        finally:
            planner.close()
        return plan_tasks(starts, replace(ends, offsets=limits), self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return a task's rows. Spark's stand-in for a batch without tasks has none."""
        if not isinstance(partition, KafkaInputPartition):
            return iter(())
        progress = Progress(partition.ranges, partition.number, partition.count)
        return read_ranges(partition, self._options, progress if self._options.progress else None)

    def _bind(self, planner: OffsetPlanner, latest: Offsets) -> tuple[Offsets, Offsets]:
        if isinstance(self._starting.bound, Given):
            for partition, start in self._starting.bound.offsets.items():
                if start > latest.get(partition, start):
                    raise start_after_end(partition, start, latest[partition], resolved=True)
        if isinstance(self._ending.bound, AtTimestamp):
            _warn_of_order(planner, self._ending.option, latest)
        starts = {
            # The group may have read beyond the ends since they were looked up.
            partition: min(start, latest[partition])
            for partition, start in planner.resolve(self._starting, latest).items()
        }
        ends = planner.resolve(self._ending, latest)
        for partition in sorted(ends):
            if starts[partition] > ends[partition]:
                raise start_after_end(partition, starts[partition], ends[partition], resolved=True)
        return starts, ends


def _warn_of_order(planner: OffsetPlanner, option: str, latest: Offsets) -> None:
    """Warn of topics in which a record of an earlier time may come after the end."""
    names = sorted({partition.topic for partition in latest})
    ordered = planner.client.run(log_append_topics(planner.client, names))
    unordered = [name for name in names if name not in ordered]
    if unordered:
        logger.warning(
            "Option '%s' ends each partition at its first record of that time or later. In %s the "
            "producers give the times (CreateTime), so older records may follow, and they are not "
            "read. To have them, end later and filter by the column 'timestamp'",
            option,
            listed(unordered),
        )


def _refuse_latest(starting: NamedBound) -> None:
    bound, latest = starting.bound, Extreme.LATEST.value
    latest_of_some = isinstance(bound, Given) and latest in bound.offsets.values()
    latest_of_topic = isinstance(bound, Given) and latest in bound.whole_topics.values()
    if bound is Extreme.LATEST or latest_of_some or latest_of_topic:
        found = "found -1, which stands for latest" if latest_of_some else "found 'latest'"
        expected = "A batch cannot start there: give 'earliest', -2, or offsets from 0"
        raise ConfigurationError(starting.option, found, expected)


def _check_bounds(starting: Bound, ending: Bound) -> None:
    """Raise errors of the bounds that need no broker to be found."""
    if not isinstance(starting, Given) or not isinstance(ending, Given):
        return
    # Which partitions a whole topic has, brokers know.
    whole = {*starting.whole_topics, *ending.whole_topics}
    starts, ends = (
        {
            partition: offset
            for partition, offset in bound.offsets.items()
            if partition.topic not in whole
        }
        for bound in (starting, ending)
    )
    if starts.keys() != ends.keys():
        raise partitions_differ(starts, ends)
    for partition, start in starts.items():
        if 0 <= ends[partition] < start:
            raise start_after_end(partition, start, ends[partition], resolved=False)
