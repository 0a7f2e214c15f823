"""Transactions of librdkafka's producer. `read_committed` skips open and aborted ones."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark_session import Start
from tools.traffic import TIMEOUT_SECONDS, Events, Writer, batch, sizes, stream, values

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

COMMITTED = {"kafka.isolation.level": "read_committed"}


class Transactions(Writer):
    """Producer that writes the values of each call in one transaction."""

    def __init__(self, events: Events, name: str, **settings: object) -> None:
        servers = events.kafka.bootstrap_servers
        # Queries read meanwhile, on a busy machine for longer than the default of a minute.
        patient = {"transaction_timeout_ms": 900_000}
        transactional_id = f"{events.name}-{name}"
        super().__init__(servers, transactional_id=transactional_id, **patient | settings)
        self.topic = events.name
        self.producer.init_transactions(TIMEOUT_SECONDS)

    def commit(self, *values: str) -> None:
        """Write the values in a transaction of their own, and commit it."""
        self.open(*values)
        self.commit_opened()

    def abort(self, *values: str) -> None:
        """Write the values in a transaction of their own, and abort it."""
        self.open(*values)
        self.abort_opened()

    def open(self, *values: str) -> None:
        """Begin a transaction, and write the values."""
        self.producer.begin_transaction()
        self.write(self.topic, values)

    def commit_opened(self) -> None:
        """Commit the open transaction."""
        self.end_transaction(self.topic, self.producer.commit_transaction)

    def abort_opened(self) -> None:
        """Abort the open transaction."""
        self.end_transaction(self.topic, self.producer.abort_transaction)


@pytest.fixture
def transactions(events: Events) -> Callable[[str], Transactions]:
    """Create a topic with one partition. Return a function that makes a transactional producer."""
    events.create()
    return lambda name: Transactions(events, name)


def test_both_isolation_levels(
    spark: SparkSession,
    events: Events,
    transactions: Callable[[str], Transactions],
) -> None:
    first, second = transactions("first"), transactions("second")
    first.commit("a", "b")
    second.abort("no", "no")
    first.abort("no")
    first.commit("c")
    second.open("open")
    events.write(["after"])
    found = events.options()
    assert values(batch(spark, found | COMMITTED)) == ["a", "b", "c"]
    assert values(batch(spark, found)) == ["a", "b", "no", "no", "no", "c", "open", "after"]
    second.abort_opened()
    assert values(batch(spark, found | COMMITTED)) == ["a", "b", "c", "after"]


def test_a_range_that_begins_and_ends_on_markers(
    spark: SparkSession,
    events: Events,
    transactions: Callable[[str], Transactions],
) -> None:
    writer = transactions("only")
    writer.commit("0")  # its marker is offset 1
    writer.abort("2")  # 3
    writer.commit("4")  # 5
    for start, end, expected in ((1, 6, ["4"]), (1, 4, []), (3, 4, []), (0, 2, ["0"])):
        found = events.options(
            startingOffsets=events.offsets(start), endingOffsets=events.offsets(end)
        )
        assert values(batch(spark, found | COMMITTED)) == expected


def test_a_stream_waits_for_open_transactions_and_passes_over_the_rest(
    spark: SparkSession,
    events: Events,
    transactions: Callable[[str], Transactions],
    start: Start,
    tmp_path: Path,
) -> None:
    committing, aborting, waiting = (transactions(name) for name in ("c", "a", "o"))
    frame = stream(spark, events.options(maxOffsetsPerTrigger=2) | COMMITTED)
    writer = frame.writeStream.format("parquet").option("path", str(tmp_path / "rows"))

    def run() -> list[str]:
        assert start(writer.trigger(availableNow=True)).awaitTermination(TIMEOUT_SECONDS)
        return values(spark.read.schema(frame.schema).parquet(str(tmp_path / "rows")))

    committing.commit("0", "1", "2")
    aborting.abort("no", "no", "no", "no")
    assert run() == ["0", "1", "2"]
    waiting.open("9", "10")
    committing.commit("12")
    assert run() == ["0", "1", "2"]
    waiting.commit_opened()
    assert run() == ["0", "1", "2", "9", "10", "12"]
    aborting.abort("no")
    assert run() == ["0", "1", "2", "9", "10", "12"]


def test_a_batch_of_a_stream_may_be_markers_only(
    spark: SparkSession,
    events: Events,
    transactions: Callable[[str], Transactions],
    start: Start,
) -> None:
    writer = transactions("only")
    writer.abort("no")
    writer.commit("2")
    frame = stream(spark, events.options(maxOffsetsPerTrigger=1) | COMMITTED)
    query = start(frame.writeStream.format("noop").trigger(availableNow=True))
    assert query.awaitTermination(TIMEOUT_SECONDS)
    assert sizes(query) == [0, 0, 1, 0]
