"""Ranges with `minPartitions` and `maxRecordsPerPartition`: the peer's range calculator suite.

Each case checks the pure function, and the rows that the tasks of both formats read.
"""

import json
import uuid
from dataclasses import dataclass

import pytest
from pyspark.sql import functions

from spark_kafka_source.fetch import OffsetRange
from spark_kafka_source.spark.source.offset_arithmetic import split_ranges
from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.topic_partition import TopicPartition
from tests.parity.scenario import Source
from tools.traffic import Events, Writer

# Enough records in partitions 0, 1 and 2 for all cases.
RECORDS = (10_000, 15_000, 20_000)


@dataclass(frozen=True)
class Case:
    """Ranges of partitions 0, 1 and 2. `ends` has the expected ends of each range's parts."""

    scenario: str
    wanted: list[tuple[int, int]]
    ends: list[list[int]]
    min_partitions: int | None = None
    max_records: int | None = None

    @property
    def parts(self) -> list[tuple[int, int, int]]:
        """Partition, start and end of each part."""
        return [
            (partition, start, end)
            for partition, ((first, _), ends) in enumerate(zip(self.wanted, self.ends, strict=True))
            for start, end in zip([first, *ends], ends, strict=False)
        ]


CASES = [
    Case("one task for each partition", [(1, 2)], [[2]]),
    Case("no task for an empty range", [(1, 2), (1, 1)], [[2], []]),
    Case("as many tasks as partitions", [(1, 2)] * 3, [[2]] * 3, min_partitions=3),
    Case("one partition in four", [(1, 5)], [[2, 3, 4, 5]], min_partitions=4),
    Case("a skewed topic", [(1, 5), (1, 21)], [[5], [7, 14, 21]], min_partitions=4),
    Case("one empty, one cut", [(1, 1), (1, 21)], [[], [6, 11, 16, 21]], min_partitions=4),
    Case("a very skewed topic", [(1, 2), (1, 1001)], [[2], [334, 667, 1001]], min_partitions=4),
    Case("fewer tasks than partitions", [(1, 5), (1, 21)], [[5], [21]], min_partitions=1),
    Case("the remainder goes last", [(1, 11)], [[4, 7, 11]], min_partitions=3),
    Case(
        "a skewed topic with an empty partition",
        [(1, 5), (1, 21), (1, 1)],
        [[5], [7, 14, 21], []],
        min_partitions=4,
    ),
    Case(
        "no offset is dropped",
        [(0, 10), (0, 10), (0, 1)],
        [[3, 6, 10], [3, 6, 10], [1]],
        min_partitions=6,
    ),
    Case(
        "three large ones",
        [(0, 10_000), (0, 15_000), (0, 20_000)],
        [[5_000, 10_000], [5_000, 10_000, 15_000], [5_000, 10_000, 15_000, 20_000]],
        min_partitions=9,
    ),
    Case(
        "one small and two large ones",
        [(0, 500), (0, 12_000), (0, 15_001)],
        [[500], [6_000, 12_000], [5_000, 10_000, 15_001]],
        min_partitions=6,
    ),
    Case(
        "two small ones and a large one",
        [(0, 1), (0, 1), (0, 10_000)],
        [[1], [1], [2_500, 5_000, 7_500, 10_000]],
        min_partitions=6,
    ),
    Case("as many records as allowed", [(1, 5)], [[5]], max_records=4),
    Case("fewer records than allowed", [(1, 2)], [[2]], max_records=4),
    Case("one record more than allowed", [(1, 6)], [[3, 6]], max_records=4),
    Case(
        "more records than allowed in all",
        [(1, 40), (1, 50), (1, 60)],
        [[20, 40], [17, 33, 50], [20, 40, 60]],
        max_records=20,
    ),
    Case("both, the records count", [(1, 40)], [[20, 40]], min_partitions=1, max_records=20),
    Case("both, the tasks count", [(1, 40)], [[10, 20, 30, 40]], min_partitions=4, max_records=20),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.scenario)
def test_split_ranges(case: Case) -> None:
    wanted = [
        OffsetRange(TopicPartition("t", partition), *bounds)
        for partition, bounds in enumerate(case.wanted)
    ]
    found = split_ranges(
        wanted, min_partitions=case.min_partitions, max_records_per_partition=case.max_records
    )
    assert [(each.topic_partition.partition, each.start, each.end) for each in found] == case.parts


@pytest.fixture(scope="module")
def filled(kafka: LocalKafka) -> Events:
    """Topic with the offsets of all cases. The cases share it, since they only read."""
    events = Events(kafka, f"ranges-{uuid.uuid4().hex[:8]}")
    events.create(len(RECORDS))
    with Writer(kafka.bootstrap_servers, linger_ms=50) as writer:
        for partition, count in enumerate(RECORDS):
            for _ in range(count):
                writer.queue(events.name, None, partition=partition)
    return events


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.peer
@pytest.mark.parity_full
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.scenario)
def test_ranges_are_cut_into_tasks(source: Source, filled: Events, case: Case) -> None:
    assert tasks(source, filled, case) == case.parts


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.peer
def test_empty_partitions_do_not_count(source: Source, filled: Events) -> None:
    wanted = [(1, 11), (1, 1), (1, 1)]
    case = Case("", wanted, [[4, 7, 11] if source.is_ours else [11], [], []], min_partitions=3)
    assert tasks(source, filled, case) == case.parts


def tasks(source: Source, filled: Events, case: Case) -> list[tuple[int, int, int]]:
    """Return partition, start and end of each task's rows."""
    found = source.batch(
        filled.options(
            subscribe=None,
            assign=json.dumps({filled.name: list(range(len(case.wanted)))}),
            startingOffsets=filled.offsets(*(start for start, _ in case.wanted)),
            endingOffsets=filled.offsets(*(end for _, end in case.wanted)),
            minPartitions=case.min_partitions,
            maxRecordsPerPartition=case.max_records,
        )
    )
    by_task = found.groupBy(functions.spark_partition_id(), "partition")
    parts = by_task.agg(functions.min("offset"), functions.max("offset") + 1).collect()
    return sorted((row[1], row[2], row[3]) for row in parts)
