"""Sizes of micro-batches: with `maxOffsetsPerTrigger`, and with Trigger.AvailableNow."""

from collections import Counter

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.spark_session import Run, Start
from tools.traffic import (
    TIMEOUT_SECONDS,
    Batches,
    Events,
    sizes,
    stream,
    values,
    wait_until,
)

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

# No second micro-batch. Spark begins them at multiples of the interval since 1970: the next one
# after an hour may come at any moment, this one in 2079.
NEVER = "40000 days"


class Shares:
    """A sink that counts the rows of each partition in each micro-batch."""

    def __init__(self) -> None:
        self.by_batch: dict[int, dict[int, int]] = {}

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        rows = frame.select("partition").collect()
        self.by_batch[batch_id] = dict(Counter(row.partition for row in rows))


def test_a_limit_is_shared_out_also_after_a_restart(
    spark: SparkSession, events: Events, start: Start
) -> None:
    events.create(3)
    for partition, count in enumerate((101, 11, 1)):
        events.write(range(count), partition)
    frame = stream(spark, events.options(maxOffsetsPerTrigger=10))
    shares = Shares()
    writing = frame.writeStream.foreachBatch(shares).trigger(processingTime=NEVER)
    query = start(writing)
    wait_until(lambda: query.lastProgress, query)
    query.stop()
    assert shares.by_batch == {0: {0: 8, 1: 1, 2: 1}}
    query = start(writing)
    wait_until(lambda: query.lastProgress, query)
    assert shares.by_batch == {0: {0: 8, 1: 1, 2: 1}, 1: {0: 9, 1: 1}}


@pytest.mark.parametrize("limit", [2**63 - 1, None])
def test_a_limit_beyond_all_rows_is_none(
    spark: SparkSession,
    events: Events,
    run: Run,
    limit: int | None,
) -> None:
    events.create(2)
    events.write(range(200))
    events.write(range(3), 1)
    found = events.options(maxOffsetsPerTrigger=limit)
    query = run(stream(spark, found), Batches())
    assert [size for size in sizes(query) if size] == [203]


def test_available_now_takes_what_is_there_in_limited_batches(
    spark: SparkSession, events: Events, start: Start
) -> None:
    events.create()
    events.write(range(15))
    frame = stream(spark, events.options(maxOffsetsPerTrigger=5))
    seen: dict[int, list[str]] = {}

    def sink(batch: DataFrame, batch_id: int) -> None:
        seen[batch_id] = values(batch)
        if batch_id == 0:
            events.write(["later"])

    writing = frame.writeStream.foreachBatch(sink).trigger(availableNow=True)
    assert start(writing).awaitTermination(TIMEOUT_SECONDS)
    assert [[int(value) for value in seen[batch_id]] for batch_id in sorted(seen)] == [
        [0, 1, 2, 3, 4],
        [5, 6, 7, 8, 9],
        [10, 11, 12, 13, 14],
    ]
    assert start(writing).awaitTermination(TIMEOUT_SECONDS)
    assert seen[3] == ["later"]
    assert start(writing).awaitTermination(TIMEOUT_SECONDS)
    assert len(seen) == 4


def test_trigger_once_ignores_the_limit(spark: SparkSession, events: Events, start: Start) -> None:
    events.create()
    events.write(range(15))
    frame = stream(spark, events.options(maxOffsetsPerTrigger=5))
    sink = Batches()
    query = start(frame.writeStream.foreachBatch(sink).trigger(once=True))
    assert query.awaitTermination(TIMEOUT_SECONDS)
    assert [len(batch) for _, batch in sink.seen] == [15]
