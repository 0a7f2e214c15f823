"""Batch: the offsets are looked up anew at each run, and every partition is one range."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.spark.conditions import partitions_differ, start_after_end
from spark_kafka_source.spark.executor import KafkaInputPartition, read_range
from spark_kafka_source.spark.offsets import Offsets
from spark_kafka_source.spark.options import Bound, Extreme, SourceOptions
from spark_kafka_source.spark.planner import OffsetPlanner
from spark_kafka_source.spark.planning import offset_ranges


class KafkaBatchReader(DataSourceReader):
    """Reads from `startingOffsets` (default earliest) to `endingOffsets` (default latest)."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._starting: Bound = _start_of_batch(options)
        self._ending: Bound = options.ending_offsets or Extreme.LATEST
        _check_bounds(self._starting, self._ending)

    def partitions(self) -> list[InputPartition]:
        """One for each topic-partition that has anything in its range."""
        planner = OffsetPlanner(self._options)
        try:
            ranges = offset_ranges(*self._bind(planner))
        finally:
            planner.close()
        return [KafkaInputPartition(wanted) for wanted in ranges]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one partition; none for Spark's stand-in where nothing was planned."""
        if not isinstance(partition, KafkaInputPartition):
            return iter(())
        return read_range(partition.wanted, self._options)

    def _bind(self, planner: OffsetPlanner) -> tuple[Offsets, Offsets]:
        latest = planner.latest(planner.topic_partitions())
        starts = planner.resolve("startingOffsets", self._starting, latest)
        ends = planner.resolve("endingOffsets", self._ending, latest)
        for each in sorted(ends):
            if starts[each] > ends[each]:
                raise start_after_end(each, starts[each], ends[each], resolved=True)
        return starts, ends


def _start_of_batch(options: SourceOptions) -> Bound:
    starting = Extreme.EARLIEST if options.starting_offsets is None else options.starting_offsets
    if starting is Extreme.LATEST:
        raise _latest_refused("found 'latest'")
    if not isinstance(starting, Extreme) and Extreme.LATEST.value in starting.values():
        raise _latest_refused("found -1, which stands for latest")
    return starting


def _latest_refused(found: str) -> ConfigurationError:
    return ConfigurationError(
        "startingOffsets",
        found,
        "A batch cannot start there: give 'earliest', -2, or offsets from 0",
    )


def _check_bounds(starting: Bound, ending: Bound) -> None:
    if isinstance(starting, Extreme) or isinstance(ending, Extreme):
        return
    if starting.keys() != ending.keys():
        raise partitions_differ(starting, ending)
    for each, start in starting.items():
        if 0 <= ending[each] < start:
            raise start_after_end(each, start, ending[each], resolved=False)
