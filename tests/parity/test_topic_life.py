"""Topics that are created, deleted, grown and recreated while a stream reads them."""

import random
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.parity.refusals import refused
from tests.parity.scenario import PEER, Follow, Source, Stream, process_all_available
from tests.spark_session import Start
from tools.traffic import Batches, Events

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.peer]

# The stream must not wait for a deleted topic.
RETRY_SOON = {"fetchOffset.retryIntervalMs": 100}
# The peer waits this long for a deleted topic. Our source does not, and keeps its usual times:
# a busy broker may need three seconds for any answer.
ALSO_FOR_THE_PEER = {"kafka.request.timeout.ms": 3_000, "kafka.default.api.timeout.ms": 3_000}


def quick(source: Source) -> dict[str, int]:
    """Return the options of a stream that does not wait for a deleted topic."""
    return RETRY_SOON if source.is_ours else RETRY_SOON | ALSO_FOR_THE_PEER


def pattern(source: Source, events: Events, **more: object) -> dict[str, object]:
    """Return the options of a stream of all topics whose names begin with this topic's name."""
    named = {"subscribe": None, "subscribePattern": events.name + "-.*"}
    return events.options(**more) | named | quick(source)


@pytest.fixture
def at_latest(source: Source, events: Events, follow: Follow) -> Stream:
    """Stream of a pattern from `latest` on, without `failOnDataLoss`. It has read three rows."""
    first = events.another("first")
    first.create(5)
    first.write([-1])
    found = pattern(source, events, startingOffsets="latest", failOnDataLoss=False)
    stream = follow(source.stream(found))
    assert stream.read() == []
    first.write([1, 2, 3], 2)
    assert stream.numbers() == [1, 2, 3]
    return stream


def test_a_topic_of_a_pattern_is_deleted_and_another_created(
    at_latest: Stream, events: Events
) -> None:
    events.another("first").delete()
    second = events.another("second")
    second.create(5)
    second.write([4, 5, 6], 3)
    assert at_latest.numbers() == [1, 2, 3, 4, 5, 6]


def test_an_offset_of_no_partition_is_not_journalled(
    at_latest: Stream, events: Events, tmp_path: Path
) -> None:
    events.another("first").delete()
    at_latest.read()
    at_latest.read()
    journal = list((tmp_path / "checkpoint-0" / "offsets").glob("[0-9]*"))
    assert journal
    for entry in journal:
        _, _, offset = entry.read_text().splitlines()
        assert events.name in offset


def test_a_topic_is_deleted_while_the_stream_is_stopped(
    source: Source, events: Events, follow: Follow
) -> None:
    first, second = events.another("first"), events.another("second")
    first.fill(1)
    second.fill(1)
    stream = follow(source.stream(pattern(source, events)))
    assert len(stream.read()) == 2
    stream.stop()
    second.delete()
    stream.start()
    text = refused(stream.read)
    assert "KAFKA_DATA_LOSS.PARTITIONS_DELETED" in text
    assert second.name in text


@pytest.mark.parametrize("rows", [1, 2], ids=["shorter", "as long"])
def test_a_topic_is_made_anew_while_the_stream_is_stopped(
    source: Source, events: Events, follow: Follow, rows: int
) -> None:
    first, second = events.another("first"), events.another("second")
    first.fill(2)
    second.fill(2)
    stream = follow(source.stream(pattern(source, events)))
    assert len(stream.read()) == 4
    stream.stop()
    second.delete()
    second.fill(rows)
    stream.start()
    if source.is_ours:
        text = refused(stream.read)
        assert "KAFKA_DATA_LOSS.PARTITIONS_DELETED" in text
        assert f"{second.name} were deleted and made anew" in text
    elif rows == 1:
        text = refused(stream.read)
        assert "KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED" in text
        assert "from 2 to 1" in text
    else:
        second.write(["third"])
        assert len(stream.read()) == 5


def test_a_topic_that_the_peer_has_read_is_made_anew_and_shorter(
    spark: SparkSession, source: Source, events: Events, start: Start
) -> None:
    # The peer's checkpoint has no topic ids. The peer can only compare offsets.
    events.fill(2)
    of_peer = Source(spark, PEER).stream(events.options()).writeStream.foreachBatch(Batches())
    first = start(of_peer)
    process_all_available(first)
    first.stop()
    events.delete()
    events.fill(1)
    found = events.options() | quick(source)
    query = start(source.stream(found).writeStream.foreachBatch(Batches()))
    text = refused(lambda: process_all_available(query))
    assert "KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED" in text
    assert f"{events.name}-0" in text


def test_a_topic_is_made_anew_while_a_job_is_to_read_it(
    source: Source, events: Events, start: Start
) -> None:
    events.fill(10)

    def recreate_and_read(frame: DataFrame, batch_id: int) -> None:
        if batch_id == 0:
            events.delete()
            events.create()
        read.append(frame.count())

    read: list[int] = []
    # A task waits so long for its topic.
    gives_up = {"kafka.default.api.timeout.ms": 3_000}
    gives_up |= {} if source.is_ours else {"kafkaConsumer.pollTimeoutMs": 1_000}
    found = events.options(failOnDataLoss=False) | quick(source) | gives_up
    query = start(source.stream(found).writeStream.foreachBatch(recreate_and_read))
    process_all_available(query)
    assert sum(read) == 0


class Life:
    """Random changes to the topics of a stream's pattern. The stream loses no record."""

    def __init__(self, events: Events, seed: int) -> None:
        self._events, self._random = events, random.Random(seed)
        self._topics: list[Events] = []
        self._created = 0
        self.written: list[int] = []
        self.add()

    def add(self) -> None:
        """Create a topic."""
        topic = self._events.another(f"{self._created}")
        topic.create(self._random.randint(1, 5))
        self._topics.append(topic)
        self._created += 1

    def delete(self) -> None:
        """Delete any topic but the first."""
        if len(self._topics) > 1:
            self._topics.pop(self._random.randrange(1, len(self._topics))).delete()

    def grow(self) -> None:
        """Give a topic more partitions."""
        topic = self._random.choice(self._topics)
        topic.grow(topic.partitions + self._random.randint(1, 3))

    def write(self) -> None:
        """Write a few rows to any partition of any topic."""
        topic = self._random.choice(self._topics)
        rows = range(len(self.written), len(self.written) + self._random.randint(1, 5))
        topic.write(rows, self._random.randrange(topic.partitions))
        self.written.extend(rows)

    def happens(self, stream: Stream) -> None:
        """Stop and start the stream, or change the topics. Then write.

        A topic is deleted only after the stream has read it.
        """
        if not stream.query.isActive:
            self._random.choice([stream.start, self.add, self.grow, self.write])()
        else:
            assert stream.numbers() == self.written
            self._random.choice([stream.stop, self.add, self.delete, self.grow, self.write])()
        self.write()


@pytest.mark.parametrize(
    "events_of_life",
    [8, pytest.param(50, marks=pytest.mark.parity_full)],
)
def test_a_life_at_random(
    source: Source, events: Events, follow: Follow, events_of_life: int
) -> None:
    life = Life(events, seed=events_of_life)
    found = pattern(source, events, startingOffsets="latest", failOnDataLoss=False)
    stream = follow(source.stream(found))
    assert stream.read() == []
    for _ in range(events_of_life):
        life.happens(stream)
    if not stream.query.isActive:
        stream.start()
    assert stream.numbers() == life.written
