"""Clients that a Python worker keeps between tasks, and the rows of a task's range."""

import gc
import math
from collections.abc import Iterator
from uuid import UUID

import pyarrow as pa
import pytest

from spark_kafka_source.client import ClientConfig, KafkaClient
from spark_kafka_source.errors import KafkaError, KafkaTimeoutError
from spark_kafka_source.fetch import (
    OffsetOutOfRangeError,
    OffsetRange,
    TopicGoneError,
)
from spark_kafka_source.protocol.messages.fetch import FetchRequest
from spark_kafka_source.records import Chunk, Record, chunks, encode_batch
from spark_kafka_source.spark.conditions import DataLossError
from spark_kafka_source.spark.pool import Pool
from spark_kafka_source.spark.source import tasks
from spark_kafka_source.spark.source.offset_arithmetic import LogEnds
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.spark.source.progress import Progress
from spark_kafka_source.spark.source.tasks import (
    KafkaInputPartition,
    plan_tasks,
    read_ranges,
)
from spark_kafka_source.testing.memory import MemoryBroker
from tests.spark.settings import A0, A1, A2, A10, parsed, shipped

TOPIC_ID = UUID(int=7)
WANTED = OffsetRange(A0, 1, 3, TOPIC_ID)
TASK = KafkaInputPartition((WANTED,), 1, 1)
OPTIONS = parsed()


KeptClients = Pool[ClientConfig, KafkaClient]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> KeptClients:
    """Kept clients of a fresh worker: none."""
    kept = Pool(KafkaClient, KafkaClient.close, math.inf)
    monkeypatch.setattr(tasks, "_kept_clients", kept)
    return kept


# -- rows ----------------------------------------------------------------------------------------


class FakeRangeReader:
    """Stand-in for the reader of a range: four records, then `error`."""

    error: KafkaError | None = None
    skips_lost = False

    def __init__(
        self, *given: object, poll_timeout_ms: int, skip_lost: bool, max_record_bytes: int
    ) -> None:
        assert given[1] == (WANTED,)
        assert max_record_bytes == 64 << 20
        assert poll_timeout_ms == 120_000
        assert skip_lost is self.skips_lost

    def chunks(self) -> Iterator[Chunk]:
        records = [Record(value=b"%d" % number) for number in range(4)]
        data = memoryview(encode_batch(records))
        wanted = {"topic_partition": A0, "position": WANTED.start, "end": WANTED.end}
        yield from chunks(data, **wanted)  # type: ignore[arg-type]  # of different types
        if self.error:
            raise self.error


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[FakeRangeReader]:
    class Fake(FakeRangeReader):
        pass

    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(tasks, "RangeReader", Fake)
    return Fake


@pytest.mark.usefixtures("fake")
def test_a_task_yields_its_range_and_gives_its_client_back(kept: KeptClients) -> None:
    (batch,) = read_ranges(TASK, OPTIONS)
    assert isinstance(batch, pa.RecordBatch)
    assert batch.column("value").to_pylist() == [b"1", b"2"]
    assert batch.column("offset").to_pylist() == [1, 2]
    assert not kept.take(OPTIONS.client).closed


@pytest.mark.usefixtures("fake", "kept")
def test_a_task_says_what_it_reads() -> None:
    said: list[object] = []

    class Listening(Progress):
        def read(self, chunk: Chunk, rows: int) -> None:
            said.append((chunk.topic_partition, rows))

        def finished(self) -> None:
            said.append("finished")

    list(read_ranges(TASK, OPTIONS, Listening(TASK.ranges, 1, 1)))
    assert said == [(A0, 2), "finished"]


@pytest.mark.usefixtures("kept")
def test_records_that_are_gone_are_data_loss(fake: type[FakeRangeReader]) -> None:
    fake.error = OffsetOutOfRangeError(A0, 1, earliest=7, latest=9)
    with pytest.raises(DataLossError, match=r"COULD_NOT_READ_OFFSET_RANGE.*a-0 \[1, 3\).*7 to 9"):
        list(read_ranges(TASK, OPTIONS))


@pytest.mark.usefixtures("kept")
def test_records_that_are_gone_are_skipped_without_fail_on_data_loss(
    fake: type[FakeRangeReader],
) -> None:
    fake.skips_lost = True
    (batch,) = read_ranges(TASK, parsed(failOnDataLoss="false"))
    assert batch.num_rows == 2


@pytest.mark.usefixtures("kept")
def test_a_topic_that_is_gone_is_data_loss(fake: type[FakeRangeReader]) -> None:
    fake.error = TopicGoneError(A0, 2)
    with pytest.raises(DataLossError, match=r"COULD_NOT_READ_OFFSET_RANGE.*from offset 2 .*delete"):
        list(read_ranges(TASK, OPTIONS))


@pytest.mark.usefixtures("kept", "fake")
def test_only_the_columns_that_were_asked_for() -> None:
    (batch,) = read_ranges(TASK, parsed(columns="offset,value"))
    assert batch.column_names == ["value", "offset"]


@pytest.mark.usefixtures("kept")
def test_rows_before_a_failure_are_given_then_it_is_raised(fake: type[FakeRangeReader]) -> None:
    fake.error = KafkaTimeoutError("too late")
    rows = read_ranges(TASK, OPTIONS)
    assert next(rows).num_rows == 2
    with pytest.raises(KafkaTimeoutError, match="too late"):
        next(rows)


@pytest.mark.usefixtures("fake")
def test_a_task_that_is_dropped_gives_its_client_back(kept: KeptClients) -> None:
    client = kept.take(OPTIONS.client)
    kept.put(OPTIONS.client, client)
    rows = read_ranges(TASK, OPTIONS)
    next(rows)
    del rows
    assert kept.take(OPTIONS.client) is client


@pytest.mark.usefixtures("fake")
def test_a_client_that_was_closed_meanwhile_is_not_kept(kept: KeptClients) -> None:
    client = kept.take(OPTIONS.client)
    kept.put(OPTIONS.client, client)
    rows = read_ranges(TASK, OPTIONS)
    next(rows)
    client.close()
    del rows
    assert not kept.take(OPTIONS.client).closed


# -- tasks ---------------------------------------------------------------------------------------


def planned(starts: Offsets, ends: Offsets, **options: str) -> list[str]:
    """Return the description of each task's ranges."""
    tasks = plan_tasks(starts, LogEnds(ends, topic_ids={"a": TOPIC_ID}), parsed(**options))
    for number, task in enumerate(tasks, 1):
        assert isinstance(task, KafkaInputPartition)
        assert (task.number, task.count) == (number, len(tasks))
        assert {each.topic_id for each in task.ranges} == {TOPIC_ID}
    return [str(task.value) for task in tasks]


def test_a_partition_is_a_task_unless_options_split_it() -> None:
    one = {A0: 0, A1: 5}, {A0: 6, A1: 5}
    assert planned(*one) == ["a-0 [0, 6)"]
    assert planned(*one, maxRecordsPerPartition="4") == ["a-0 [0, 3)", "a-0 [3, 6)"]
    assert planned(*one, minPartitions="3") == ["a-0 [0, 2)", "a-0 [2, 4)", "a-0 [4, 6)"]


def test_small_partitions_share_a_task_where_that_is_asked_for() -> None:
    several = dict.fromkeys((A0, A1, A2, A10), 0), {A0: 2, A1: 3, A2: 9, A10: 1}
    assert len(planned(*several)) == 4
    together = planned(*several, minRecordsPerPartition="5")
    assert together == ["a-0 [0, 2), a-1 [0, 3)", "a-2 [0, 9)", "a-10 [0, 1)"]
    assert len(planned(*several, minRecordsPerPartition="5", minPartitions="4")) == 4


def test_only_the_offsets_that_are_wanted_are_read() -> None:
    several = {A0: 0, A1: 5}, {A0: 6, A1: 9}
    assert planned(*several, minOffset="4", maxOffset="6") == ["a-0 [4, 6)", "a-1 [5, 7)"]
    assert planned(*several, maxOffset="3") == ["a-0 [0, 4)"]


def test_a_partition_crosses_processes() -> None:
    copy = shipped(TASK)
    assert (copy.ranges, copy.number, copy.count) == ((WANTED,), 1, 1)
    assert str(WANTED) in str(copy.value)


def test_fetches_ask_for_no_more_of_a_partition_than_the_option_says(
    kept: KeptClients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gc, "freeze", lambda: None)
    with MemoryBroker() as broker:
        (log,) = broker.create_topic("a")
        for _ in range(30):
            log.append(b"value")
        servers = {"kafka.bootstrap.servers": str(broker.address())}
        options = parsed(**servers, **{"kafka.max.partition.fetch.bytes": "200"})
        task = KafkaInputPartition((OffsetRange(A0, 0, 30),), 1, 1)
        assert sum(batch.num_rows for batch in read_ranges(task, options)) == 30
        asked = {
            each.topics[0].partitions[0].partition_max_bytes
            for each in broker.requests(FetchRequest)
        }
        kept.take(options.client).close()
    assert asked == {200}
