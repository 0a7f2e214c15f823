"""Records that are deleted before a read: skipped or an error. No record is read twice.

In the peer's suite, retention deletes segments of 70 bytes. Kafka 4 no longer makes such segments.
Here a request deletes the records. The effect is the same, and the test chooses the moment.
"""

import random
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from tests.parity.refusals import refused
from tests.parity.scenario import Follow, Source, process_all_available
from tests.spark_session import Start
from tools.traffic import Events, values, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.peer]

WRITTEN, GONE = range(50), range(30)
LEFT = [number for number in WRITTEN if number not in GONE]
_UNREADABLE = "COULD_NOT_READ_OFFSET_RANGE"
STRESS_STEPS = 200


@pytest.fixture
def aged(events: Events) -> Events:
    """Topic of 50 records. The first 30 are deleted."""
    events.create()
    events.write(WRITTEN)
    events.trim({0: len(GONE)})
    return events


def skip(source: Source) -> dict[str, Any]:
    """Return options to go on after a loss. Only the peer polls in vain for what is gone."""
    soon = {} if source.is_ours else {"kafkaConsumer.pollTimeoutMs": 1_000}
    return {"failOnDataLoss": False} | soon


def from_zero(events: Events, **more: Any) -> dict[str, Any]:
    """Return the options of a source that starts at offset 0."""
    return events.options(startingOffsets=events.offsets(0), **more)


def aged_out(source: Source) -> str:
    """Return the condition of a deleted start. The peer finds it in a read, ours in planning."""
    return f"[KAFKA_DATA_LOSS.{'START_OFFSET_RESET' if source.is_ours else _UNREADABLE}]"


def test_a_stream_skips_what_is_gone(source: Source, aged: Events, follow: Follow) -> None:
    stream = follow(source.stream(from_zero(aged) | skip(source)))
    assert stream.numbers() == LEFT
    aged.write([50])
    assert stream.numbers() == [*LEFT, 50]


def test_a_batch_skips_what_is_gone(source: Source, aged: Events) -> None:
    found = values(source.batch(from_zero(aged) | skip(source)))
    assert [*map(int, found)] == LEFT


def test_a_stream_fails_on_what_is_gone(source: Source, aged: Events, start: Start) -> None:
    query = start(source.stream(from_zero(aged)).writeStream.format("noop"))
    assert aged_out(source) in refused(lambda: process_all_available(query))


def test_a_batch_fails_on_what_is_gone(source: Source, aged: Events) -> None:
    assert aged_out(source) in refused(source.batch(from_zero(aged)).collect)


def test_a_stream_skips_what_goes_after_planning(
    source: Source, events: Events, start: Start
) -> None:
    found: list[int] = []

    def sink(frame: DataFrame, batch_id: int) -> None:
        if batch_id == 0:
            events.trim({0: len(GONE)})
        found.extend(map(int, values(frame)))

    events.create()
    events.write(WRITTEN)
    query = start(source.stream(events.options() | skip(source)).writeStream.foreachBatch(sink))
    process_all_available(query)
    assert found == LEFT


def test_a_stream_fails_on_what_goes_after_planning(
    source: Source, events: Events, start: Start
) -> None:
    found: list[str] = []

    def sink(frame: DataFrame, _: int) -> None:
        events.trim({0: len(GONE)})
        found.append(refused(lambda: values(frame)))

    events.create()
    events.write(WRITTEN)
    query = start(source.stream(events.options()).writeStream.foreachBatch(sink))
    process_all_available(query)
    assert f"[KAFKA_DATA_LOSS.{_UNREADABLE}]" in found[0]


@pytest.mark.parametrize("fails", [True, False], ids=["fails", "goes on"])
def test_an_added_partition_has_lost_records(
    source: Source, events: Events, follow: Follow, *, fails: bool
) -> None:
    events.create()
    events.write([0])
    stream = follow(source.stream(events.options(failOnDataLoss=fails)))
    assert stream.numbers() == [0]
    stream.stop()
    events.grow(2)
    events.write([1, 2], 1)
    events.trim({1: 1})
    stream.start()
    if fails:
        condition = "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO"
        assert f"KAFKA_DATA_LOSS.{condition}" in refused(stream.read)
    else:
        assert stream.numbers() == [0, 2]


@pytest.mark.parity_full
def test_stress(source: Source, events: Events, follow: Follow) -> None:
    stream = follow(
        source.stream(
            events.options(
                subscribe=None,
                subscribePattern=f"{events.name}-.*",
                **skip(source),
                **{
                    "kafka.metadata.max.age.ms": 1,
                    "kafka.request.timeout.ms": 3_000,
                    "kafka.default.api.timeout.ms": 3_000,
                    "fetchOffset.numRetries": 10,
                    "fetchOffset.retryIntervalMs": 500,
                },
            )
        )
    )

    def goes_on() -> bool:
        error = stream.query.exception()
        if error is not None:
            # A task of the peer may fail, and needs a retry. `local[2]` does not retry tasks.
            assert not source.is_ours, error
            stream.start()
        return True

    topics = Topics(events)
    for _ in range(STRESS_STEPS):
        topics.change()
        assert goes_on()
    topics.create().write(["last"])
    wait_until(lambda: goes_on() and "last" in stream.sink.values)
    found = stream.sink.values
    assert len(found) == len(set(found))
    assert len(found) > 1


class Topics:
    """Topics that are created, deleted and recreated. Each record has its own value."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._random = random.Random(4)  # The steps are always the same.
        self._there: list[Events] = []
        self._gone: list[Events] = []
        self._written = 0

    def change(self) -> None:
        """Create or delete a topic, or write to all topics."""
        steps: list[Callable[[], object]] = [self.create, self.delete, self.recreate]
        self._random.choice([*steps, *[self.write] * 7])()

    def create(self) -> Events:
        """Create a topic with a new name."""
        return self._create(self._events.another(str(len(self._there) + len(self._gone))))

    def recreate(self) -> None:
        """Create a topic with the name of a deleted topic."""
        if self._gone:
            self._create(self._gone.pop(self._random.randrange(len(self._gone))))

    def delete(self) -> None:
        """Delete a topic."""
        if self._there:
            topic = self._there.pop(self._random.randrange(len(self._there)))
            topic.delete()
            self._gone.append(topic)

    def write(self) -> None:
        """Write a few records to each topic."""
        for topic in self._there:
            first, self._written = self._written, self._written + self._random.randrange(10)
            topic.write(range(first, self._written))

    def _create(self, topic: Events) -> Events:
        topic.create()
        self._there.append(topic)
        return topic
