"""Topics that grow while a stream reads them. The stream reads new partitions from their start."""

from itertools import count
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.reliability.conftest import Trial
from tests.spark_session import Start
from tools.traffic import Batches, Events, stream, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

FEW, MANY = 5, 10


def test_partitions_are_added_under_a_running_stream(
    spark: SparkSession, events: Events, start: Start, trial: Trial
) -> None:
    rows = missed = doubled = 0
    for turn in range(trial.rounds):
        growing = events.another(str(turn))
        growing.create(FEW)
        sink = Batches()
        starting = trial.chance.choice(["earliest", "latest"])
        frame = stream(spark, growing.options(startingOffsets=starting))
        query = start(frame.writeStream.foreachBatch(sink), f"checkpoint-{turn}")
        wait_until(lambda: query.lastProgress, query)  # noqa: B023 - called now
        written = grow(growing, trial.chance)
        wait_until(lambda: set(sink.values) >= set(written), query)  # noqa: B023 - called now
        query.stop()
        rows += len(written)
        missed += len(set(written) - set(sink.values))
        doubled += len(sink.values) - len(set(sink.values))
        growing.delete()
    trial.report(
        "10",
        f"{trial.rounds} topics grown from {FEW} to {MANY} partitions under a stream; {rows} rows",
        f"rows missed: {missed}; doubled: {doubled}",
    )
    assert (missed, doubled) == (0, 0)


def grow(events: Events, chance: Random) -> list[str]:
    """Write to random partitions, and add partitions now and then. Return all rows."""
    written: list[str] = []
    number = count()

    def write(partition: int) -> None:
        rows = [f"{partition}:{next(number):04d}" for _ in range(chance.randint(1, 5))]
        events.write(rows, partition)
        written.extend(rows)

    while events.partitions < MANY:
        for _ in range(chance.randint(0, 5)):
            write(chance.randrange(events.partitions))
        events.grow(chance.randint(events.partitions + 1, MANY))
        write(events.partitions - 1)
    for partition in range(MANY):
        write(partition)
    return sorted(written)
