"""`Trigger.AvailableNow`: a run reads exactly the records that exist at its start, or fails."""

import pytest
from pyspark.sql import DataFrame

from tests.parity.refusals import refused
from tests.parity.scenario import Source
from tests.spark_session import Start
from tools.traffic import TIMEOUT_SECONDS, Batches, Events

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.peer]


def test_what_is_there_is_read_in_limited_batches(
    source: Source, events: Events, start: Start
) -> None:
    events.fill(15, 0, 0)
    sink = Batches()

    def and_write(frame: DataFrame, batch_id: int) -> None:
        sink(frame, batch_id)
        events.write(["0:later"])

    frame = source.stream(events.options(maxOffsetsPerTrigger=5))
    query = start(frame.writeStream.foreachBatch(and_write).trigger(availableNow=True))
    assert query.awaitTermination(TIMEOUT_SECONDS)
    assert [len(values) for _, values in sink.seen] == [5, 5, 5]
    assert sink.values == sorted(f"0:{offset}" for offset in range(15))


# The peer's errors have the texts of these conditions, but not the names.
LOST = ("partitions in Kafka topic(s) have been lost", "LOST_TOPIC_PARTITIONS_IN_END_OFFSET")
SHRUNK = (
    "available offset which is less than end offset",
    "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_LATEST",
)


@pytest.mark.parametrize(
    ("partitions", "rows", "says"),
    [(3, 15, LOST), (5, 10, SHRUNK)],
    ids=["with fewer partitions", "with fewer rows"],
)
def test_the_topic_is_made_anew_meanwhile(
    source: Source,
    events: Events,
    start: Start,
    *,
    partitions: int,
    rows: int,
    says: tuple[str, str],
) -> None:
    events.fill(15, 0, 0, 0, 0)

    def recreate(_: DataFrame, __: int) -> None:
        events.delete()
        events.fill(rows, *[0] * (partitions - 1))

    frame = source.stream(events.options(maxOffsetsPerTrigger=5))
    query = start(frame.writeStream.foreachBatch(recreate).trigger(availableNow=True))
    text = refused(lambda: query.awaitTermination(TIMEOUT_SECONDS))
    text_of_peer, condition = says
    assert (f"[{condition}_WITH_TRIGGER_AVAILABLENOW]" if source.is_ours else text_of_peer) in text


def test_a_batch_that_failed_is_run_again_as_it_was(
    source: Source, events: Events, start: Start
) -> None:
    events.create()
    events.write(range(1, 8))
    sink = Batches()

    def fail_on_7(frame: DataFrame, batch_id: int) -> None:
        sink(frame, batch_id)
        assert "7" not in sink.values, "there is a 7"

    writer = source.stream(events.options()).writeStream.foreachBatch(fail_on_7)
    writer = writer.trigger(availableNow=True)
    assert "there is a 7" in refused(lambda: start(writer).awaitTermination(TIMEOUT_SECONDS))
    events.grow(2)
    events.write([8])
    events.write([9], 1)
    assert "there is a 7" in refused(lambda: start(writer).awaitTermination(TIMEOUT_SECONDS))
    assert sink.seen == [(0, ["1", "2", "3", "4", "5", "6", "7"])] * 2
