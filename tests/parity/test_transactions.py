"""Transactions: `read_committed` skips open and aborted ones, and markers are never rows.

The value of each record is its offset. Offsets without a record belong to markers.
"""

import pytest
from pyspark.sql import DataFrame

from tests.parity.scenario import Source, process_all_available
from tests.spark.source.test_transactions import COMMITTED, Transactions
from tests.spark_session import Run, Start
from tools.traffic import Batches, Events, values

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.peer]


@pytest.fixture
def writer(events: Events) -> Transactions:
    """Transactional producer for a topic with one partition."""
    events.create()
    return Transactions(events, "only")


def limited(source: Source, events: Events, isolation: str) -> DataFrame:
    """Return a stream with at most three offsets per micro-batch."""
    return source.stream(
        events.options(maxOffsetsPerTrigger=3, **{"kafka.isolation.level": isolation})
    )


def batches(run: Run, frame: DataFrame) -> list[list[int]]:
    """Wait until everything is read. Return the values of each micro-batch."""
    sink = Batches()
    run(frame, sink)
    return [[*map(int, batch)] for _, batch in sink.seen]


def finish(writer: Transactions) -> None:
    """Commit the open transaction (0 to 4). Write on to offset 24."""
    writer.commit_opened()
    writer.abort("6", "7", "8", "9", "10")
    writer.commit("12", "13", "14", "15", "16")
    writer.commit("18")
    writer.commit("20")
    writer.commit("22", "23")


def test_limited_batches_of_what_is_committed(
    source: Source, events: Events, writer: Transactions, run: Run
) -> None:
    frame = limited(source, events, "read_committed")
    writer.open("0", "1", "2", "3", "4")
    assert not any(batches(run, frame))
    finish(writer)
    assert batches(run, frame) == [
        [0, 1, 2],
        [3, 4],  # and a marker
        [],  # 6 to 8 were aborted
        [],
        [12, 13, 14],
        [15, 16],
        [18, 20],  # and a marker between
        [22, 23],  # after a marker
        [],  # only a marker
    ]


@pytest.mark.parity_full
def test_limited_batches_of_what_is_not_committed(
    source: Source, events: Events, writer: Transactions, run: Run
) -> None:
    frame = limited(source, events, "read_uncommitted")
    writer.open("0", "1", "2", "3", "4")
    assert batches(run, frame) == [[0, 1, 2], [3, 4]]
    finish(writer)
    assert batches(run, frame) == [
        [6, 7],  # after the marker of the first
        [8, 9, 10],
        [12, 13],
        [14, 15, 16],
        [18],  # between two markers
        [20, 22],
        [23],
    ]


def test_records_committed_after_planning_wait_for_the_next_batch(
    source: Source, events: Events, writer: Transactions, start: Start
) -> None:
    seen: dict[int, list[str]] = {}

    def sink(frame: DataFrame, batch_id: int) -> None:
        if batch_id == 0:
            writer.commit("5", "6", "7", "8")
        seen[batch_id] = values(frame)

    writer.commit("0", "1", "2", "3")
    frame = source.stream(events.options() | COMMITTED)
    process_all_available(start(frame.writeStream.foreachBatch(sink)))
    assert seen == {0: ["0", "1", "2", "3"], 1: ["5", "6", "7", "8"]}


def test_null_keys_and_values(
    source: Source, events: Events, writer: Transactions, start: Start
) -> None:
    expected = [(None, None), (b"key", None), (None, b"value"), (b"", b"")] * 5
    found: list[tuple[bytes | None, bytes | None]] = []

    def sink(frame: DataFrame, _: int) -> None:
        found.extend(map(tuple, frame.orderBy("offset").select("key", "value").collect()))

    query = start(source.stream(events.options() | COMMITTED).writeStream.foreachBatch(sink))
    writer.producer.begin_transaction()
    for key, value in expected:
        writer.queue(events.name, value, key=key)
    writer.flush()
    writer.commit_opened()
    process_all_available(query)
    assert found == expected
