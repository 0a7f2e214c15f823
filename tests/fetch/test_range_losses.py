"""Lost records of a range: an error, or a gap if the user allows data loss.

A new topic with the name of a deleted one is never read in its place.
"""

import logging
import pickle
import uuid

import pytest

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import BrokerError, RemoteError, error_named
from spark_kafka_source.fetch import (
    FetchConfig,
    LogTruncatedError,
    OffsetOutOfRangeError,
    OffsetRange,
    RangeReader,
    RecordsLostError,
    TopicGoneError,
)
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol import ZERO_UUID
from spark_kafka_source.protocol.messages.fetch import FetchRequest
from spark_kafka_source.records import to_arrow
from spark_kafka_source.testing.memory import KAFKA_2_1, MemoryBroker, PartitionLog
from tests.fetch.reading import T0, fetched, fetches_of, offsets, reader, values

pytestmark = pytest.mark.memory(nodes=3)

PLANNED, MADE_ANEW = uuid.UUID(int=1), uuid.UUID(int=2)


def reader_of(
    client: KafkaClient, topic_id: uuid.UUID | None, *, skip_lost: bool = False
) -> RangeReader:
    return RangeReader(
        client, [OffsetRange(T0, 0, 2, topic_id)], FetchConfig(), skip_lost=skip_lost
    )


# -- aged out --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(0, 5, [3, 4]), (2, 4, [3]), (0, 3, []), (1, 2, []), (7, 9, []), (3, 5, [3, 4])],
)
def test_what_aged_out_or_was_cut_off_is_passed_over_where_that_is_asked_for(
    client: KafkaClient, log: PartitionLog, start: int, end: int, expected: list[int]
) -> None:
    log.append(b"a", b"b", b"c", b"d", b"e")
    log.log_start_offset = 3
    assert offsets(reader(client, start, end, skip_lost=True)) == expected


@pytest.mark.parametrize(("end", "passed_over"), [(5, "1 to 3"), (2, "1 to 2")])
def test_what_is_passed_over_is_logged_with_its_offsets(
    client: KafkaClient,
    log: PartitionLog,
    caplog: pytest.LogCaptureFixture,
    end: int,
    passed_over: str,
) -> None:
    log.append(b"a", b"b", b"c", b"d", b"e")
    log.log_start_offset = 3
    offsets(reader(client, 1, end, skip_lost=True))
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert f"t-0 [1, {end})" in record.getMessage()
    assert record.getMessage().endswith(f"offsets {passed_over} are skipped")


def test_retention_that_overtakes_a_read_neither_ends_it_nor_doubles_a_record(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    for _ in range(10):
        log.append(b"a")
    found = []
    config = fetches_of(150)
    for chunk in reader(client, 0, 10, config, skip_lost=True).chunks():
        found += to_arrow(chunk)["offset"].to_pylist()
        broker.wait_for(FetchRequest, 2)
        log.log_start_offset = 7
    assert found == [0, 1, 2, 3, 7, 8, 9]


# -- deleted and created again ---------------------------------------------------------------------


def test_a_topic_of_the_same_name_is_not_read_in_its_place(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    (log,) = broker.create_topic("t", topic_id=MADE_ANEW)
    log.append(b"of", b"another", b"topic")
    with pytest.raises(TopicGoneError, match=r"t-0 from offset 0 .* topic was deleted"):
        offsets(reader_of(client, PLANNED))
    assert fetched(broker) == []
    assert offsets(reader_of(client, PLANNED, skip_lost=True)) == []
    assert offsets(reader_of(client, MADE_ANEW)) == [0, 1]


def test_a_topic_that_is_made_anew_in_mid_read_ends_it(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    (log,) = broker.create_topic("t", topic_id=PLANNED)
    for value in (b"a", b"b", b"c"):
        log.append(value)
    found = []
    wanted = OffsetRange(T0, 0, 3, PLANNED)
    with pytest.raises(TopicGoneError) as gone:
        for chunk in RangeReader(
            client, [wanted], FetchConfig(max_partition_fetch_bytes=1)
        ).chunks():
            found += to_arrow(chunk)["value"].to_pylist()
            broker.wait_for(FetchRequest, 2)
            (log,) = broker.create_topic("t", topic_id=MADE_ANEW)
            log.append(b"not", b"this", b"neither")
    assert found == [b"a", b"b"]
    assert (gone.value.topic_partition, gone.value.offset) == (T0, 2)


def test_without_a_planned_id_the_name_is_enough(broker: MemoryBroker, client: KafkaClient) -> None:
    (log,) = broker.create_topic("t", topic_id=MADE_ANEW)
    log.append(b"a", b"b")
    assert values(reader_of(client, None)) == [b"a", b"b"]


@pytest.mark.parametrize("skip_lost", [False, True])
def test_a_deleted_topic_is_told_of_or_passed_over(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog, skip_lost: bool
) -> None:
    log.append(b"a", b"b")
    offsets(reader(client, 0, 2))
    del broker.cluster.topics["t"]
    if skip_lost:
        assert offsets(reader(client, 0, 2, skip_lost=True)) == []
        return
    with pytest.raises(TopicGoneError) as gone:
        offsets(reader(client, 0, 2))
    assert isinstance(gone.value.__cause__, BrokerError)


@pytest.mark.parametrize("name", ["UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID"])
def test_a_broker_that_has_not_heard_of_a_topic_yet_is_asked_again(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog, name: str
) -> None:
    log.append(b"a", b"b")
    broker.control(FetchRequest, error_named(name), times=5)
    assert offsets(reader(client, 0, 2)) == [0, 1]
    broker.control(FetchRequest, error_named(name), times=6)
    with pytest.raises(TopicGoneError):
        offsets(reader(client, 0, 2))


def test_an_id_that_metadata_has_late_is_waited_for(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    """The driver knows the new topic. The executor's broker learns of it a moment later."""
    broker.create_topic("t", topic_id=PLANNED)
    client.run(client.leaders([T0], Deadline.after_ms(10_000)))
    (log,) = broker.create_topic("t", topic_id=MADE_ANEW)
    log.append(b"a", b"b")
    assert offsets(reader_of(client, MADE_ANEW)) == [0, 1]


def test_a_broker_without_topic_ids_reads_by_name() -> None:
    with MemoryBroker(versions=KAFKA_2_1) as broker, KafkaClient(broker.config()) as client:
        (log,) = broker.create_topic("t", topic_id=ZERO_UUID)
        log.append(b"a", b"b")
        assert offsets(reader_of(client, None)) == [0, 1]


# -- the errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        OffsetOutOfRangeError(T0, 1, 7, 9),
        OffsetOutOfRangeError(T0, 8, 1, 7, held_up=9),
        TopicGoneError(T0, 2),
        LogTruncatedError(T0, 5, 4),
    ],
    ids=lambda error: type(error).__name__,
)
def test_losses_cross_processes_and_are_not_tried_again(error: RecordsLostError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.offset) == (str(error), error.offset)
    assert copy.topic_partition == error.topic_partition
    assert isinstance(error, RemoteError)
    assert not error.retriable
