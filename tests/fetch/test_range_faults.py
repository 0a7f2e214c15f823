"""Faults of records and brokers during a range: no record is lost or doubled."""

import logging
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import (
    BootstrapError,
    BrokerError,
    CorruptRecordError,
    KafkaTimeoutError,
    ProtocolError,
    UnsupportedRecordFormatError,
    error_named,
)
from spark_kafka_source.fetch import FetchConfig, OffsetOutOfRangeError
from spark_kafka_source.protocol import ZERO_UUID
from spark_kafka_source.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from spark_kafka_source.records import (
    Codec,
    Record,
    RecordTooLargeError,
    encode_batch,
    to_arrow,
)
from spark_kafka_source.records.encode import with_crc
from spark_kafka_source.testing.memory import KAFKA_2_1, Action, MemoryBroker, PartitionLog
from tests.consumer.consumers import longer_and_longer
from tests.fetch.reading import (
    COMMITTED,
    SMALL,
    T0,
    fetched,
    fetches_of,
    offsets,
    reader,
    values,
)

pytestmark = pytest.mark.memory(nodes=3)

# -- missing records -------------------------------------------------------------------------------


def test_records_that_are_promised_and_never_come_are_a_timeout_that_says_so(
    client: KafkaClient, log: PartitionLog
) -> None:
    log.append(b"a", b"b")
    log.append(b"c")
    log.fixed_high_watermark = 2
    reading = reader(client, 2, 3, poll_timeout_ms=20)
    with pytest.raises(KafkaTimeoutError) as caught:
        offsets(reading)
    assert str(caught.value) == (
        "Cannot read t-0 [2, 3): nothing at offset 2 within 20 ms (kafkaConsumer.pollTimeoutMs); "
        "the partition's high watermark is 2, its last stable offset 2"
    )


def test_remote_storage_that_fails_for_a_while_is_tried_again(
    broker: MemoryBroker, log: PartitionLog, caplog: pytest.LogCaptureFixture
) -> None:
    """Brokers say no more of it than UNKNOWN_SERVER_ERROR. One warning names the place."""
    log.append(b"a", b"b")
    broker.control(FetchRequest, error_named("UNKNOWN_SERVER_ERROR"), times=2)
    with KafkaClient(broker.config(retry_backoff_ms=1, retry_backoff_max_ms=1)) as client:
        assert offsets(reader(client, 0, 2, skip_lost=True)) == [0, 1]
    (warning,) = [each for each in caplog.records if each.levelname == "WARNING"]
    assert "t-0 at offset 0" in warning.getMessage()


def test_remote_storage_that_fails_is_told_of_when_the_time_is_up(
    broker: MemoryBroker, log: PartitionLog
) -> None:
    """No record is passed over."""
    log.append(b"a", b"b")
    broker.control(FetchRequest, error_named("UNKNOWN_SERVER_ERROR"), times=None)
    pauses: dict[str, Any] = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 1}
    for timeout_ms in longer_and_longer(500):
        with (
            KafkaClient(broker.config(default_api_timeout_ms=timeout_ms, **pauses)) as client,
            pytest.raises((KafkaTimeoutError, BootstrapError)) as caught,
        ):
            offsets(reader(client, 0, 2, skip_lost=True))
        if "UNKNOWN_SERVER_ERROR" in str(caught.value):
            break
    assert "Fetch of t-0 at offset 0: UNKNOWN_SERVER_ERROR (-1)" in str(caught.value)
    assert "remote storage may have failed" in str(caught.value)


def test_what_was_there_came_first(client: KafkaClient, log: PartitionLog) -> None:
    log.append(b"a", b"b")
    found = []
    with pytest.raises(KafkaTimeoutError, match="nothing at offset 2"):
        for chunk in reader(client, 0, 3, poll_timeout_ms=20).chunks():
            found += to_arrow(chunk)["offset"].to_pylist()
    assert found == [0, 1]


def test_records_that_come_late_are_read(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    log.append(b"a")

    def late(_: FetchRequest) -> Action:
        log.append(b"b")
        return Action.HANDLE

    broker.control(FetchRequest, Action.HANDLE, times=5)
    broker.control(FetchRequest, late)
    assert values(reader(client, 0, 2)) == [b"a", b"b"]
    assert fetched(broker) == [0, 1, 1, 1, 1, 1]


@pytest.mark.parametrize(("start", "end"), [(0, 4), (7, 9)])
def test_an_offset_that_the_log_does_not_have_is_told_with_those_it_has(
    client: KafkaClient, log: PartitionLog, start: int, end: int
) -> None:
    log.append(b"a", b"b", b"c", b"d", b"e")
    log.log_start_offset = 2
    with pytest.raises(OffsetOutOfRangeError) as caught:
        offsets(reader(client, start, end))
    assert (caught.value.offset, caught.value.earliest, caught.value.latest) == (start, 2, 5)
    assert f"t-0: offset {start}" in str(caught.value)
    assert "offsets 2 to 5" in str(caught.value)


def test_retention_that_overtakes_a_read_is_told_after_what_was_read(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    """The answer to the fetch ahead has come by then."""
    for _ in range(6):
        log.append(b"a")
    found = []
    with pytest.raises(OffsetOutOfRangeError, match=r"offset 4 is not in the log.* 5 to 6"):
        for chunk in reader(client, 0, 6, fetches_of(150)).chunks():
            found += to_arrow(chunk)["offset"].to_pylist()
            broker.wait_for(FetchRequest, 2)
            log.log_start_offset = 5
    assert found == [0, 1, 2, 3]


# -- brokers ---------------------------------------------------------------------------------------


def test_a_leader_that_moves_in_mid_read_costs_no_record_and_doubles_none(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    for _ in range(9):
        log.append(b"a")
    found: list[int] = []
    for node, chunk in enumerate(reader(client, 0, 9, SMALL).chunks()):
        found += to_arrow(chunk)["offset"].to_pylist()
        broker.move_leader(T0, node % 3)
    assert found == list(range(9))


def test_a_leader_that_dies_in_mid_read_costs_no_record_and_doubles_none(
    broker: MemoryBroker, log: PartitionLog
) -> None:
    for _ in range(4):
        log.append(b"a")
    with KafkaClient(broker.config(bootstrap_servers=(broker.address(2),))) as client:
        chunks = reader(client, 0, 4, SMALL).chunks()
        found = to_arrow(next(chunks))["offset"].to_pylist()
        broker.stop(0)
        broker.move_leader(T0, 1)
        for chunk in chunks:
            found += to_arrow(chunk)["offset"].to_pylist()
    assert found == [0, 1, 2, 3]


@pytest.mark.parametrize("trouble", [Action.CLOSE, error_named("REQUEST_TIMED_OUT")])
def test_trouble_in_mid_read_costs_no_record_and_doubles_none(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog, trouble: Any
) -> None:
    for _ in range(4):
        log.append(b"a")
    broker.control(FetchRequest, Action.HANDLE, times=2)
    broker.control(FetchRequest, trouble, times=2)
    assert offsets(reader(client, 0, 4, SMALL)) == [0, 1, 2, 3]
    assert fetched(broker) == [0, 1, 2, 2, 2, 3]


def test_the_oldest_broker_is_read() -> None:
    with MemoryBroker(versions=KAFKA_2_1) as broker, KafkaClient(broker.config()) as client:
        (log,) = broker.create_topic("t")
        log.append(b"no", producer_id=1, transactional=True)
        log.append(b"yes")
        log.append_marker(1, commit=False, first_offset=0)
        assert values(reader(client, 0, 3, COMMITTED)) == [b"yes"]
        assert {seen.version for seen in broker.seen if type(seen.request) is FetchRequest} == {10}


@pytest.mark.parametrize(("topic_id", "version"), [(ZERO_UUID, 12), (uuid.UUID(int=1), 18)])
def test_a_topic_without_an_id_goes_by_its_name(
    broker: MemoryBroker, client: KafkaClient, topic_id: uuid.UUID, version: int
) -> None:
    (log,) = broker.create_topic("t", topic_id=topic_id)
    log.append(b"a")
    assert values(reader(client, 0, 1)) == [b"a"]
    assert {seen.version for seen in broker.seen if type(seen.request) is FetchRequest} == {version}


# -- hostile ---------------------------------------------------------------------------------------


def corrupted(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x01]) + data[at + 1 :]


@pytest.mark.parametrize("codec", list(Codec))
def test_a_corrupt_batch_is_told_with_its_place_and_nothing_is_skipped(
    client: KafkaClient, log: PartitionLog, codec: Codec
) -> None:
    log.append(b"a")
    bad = encode_batch([Record(value=b"b" * 100)], base_offset=1, codec=codec)
    log.append_batch(corrupted(bad, len(bad) - 1))
    log.append(b"c")
    found = []
    with pytest.raises(CorruptRecordError) as caught:
        for chunk in reader(client, 0, 3, SMALL).chunks():
            found += to_arrow(chunk)["offset"].to_pylist()
    assert found == [0]
    assert (caught.value.topic_partition, caught.value.offset) == (T0, 1)
    assert str(caught.value).startswith("t-0 at offset 1: CRC")


def test_unchecked_corruption_of_a_value_is_what_was_asked_for(
    client: KafkaClient, log: PartitionLog
) -> None:
    bad = encode_batch([Record(value=b"b" * 100)])
    log.append_batch(corrupted(bad, len(bad) - 2))
    assert values(reader(client, 0, 1, FetchConfig(check_crcs=False)))[0] != b"b" * 100


def test_a_message_of_before_kafka_0_11_is_named(client: KafkaClient, log: PartitionLog) -> None:
    old = bytearray(encode_batch([Record(value=b"a")]))
    old[16] = 1
    log.append_batch(bytes(old))
    with pytest.raises(UnsupportedRecordFormatError, match=r"t-0 at offset 0: .*v1"):
        offsets(reader(client, 0, 1))


@pytest.mark.parametrize(
    "response",
    [
        FetchResponse(),
        FetchResponse(responses=[FetchableTopicResponse("t")]),
        FetchResponse(responses=[FetchableTopicResponse("t", partitions=[PartitionData(1)])]),
        FetchResponse(responses=[FetchableTopicResponse("t", partitions=[PartitionData(0)] * 2)]),
    ],
)
def test_an_answer_about_something_else_is_refused(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog, response: FetchResponse
) -> None:
    log.append(b"a")
    broker.control(FetchRequest, response)
    with pytest.raises(ProtocolError, match=r"Fetch.*answer"):
        offsets(reader(client, 0, 1))


def test_no_right_to_a_topic_is_told_with_partition_and_offset(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    log.append(b"a")
    broker.control(FetchRequest, error_named("TOPIC_AUTHORIZATION_FAILED"))
    with pytest.raises(BrokerError, match="Fetch of t-0 at offset 0: TOPIC_AUTHORIZATION_FAILED"):
        offsets(reader(client, 0, 1))


# -- too large -------------------------------------------------------------------------------------


def test_a_record_too_large_is_passed_over_alone_and_logged_where_losses_are(
    client: KafkaClient, log: PartitionLog, caplog: pytest.LogCaptureFixture
) -> None:
    log.append(b"a")
    log.append(b"b", bytes(5 << 20), b"d", codec=Codec.ZSTD)
    log.append(b"e")
    with pytest.raises(RecordTooLargeError) as caught:
        offsets(reader(client, 0, 5, max_record_bytes=4 << 20))
    assert str(caught.value) == (
        f"t-0 at offset 2: a record of {(5 << 20) + 13} bytes; maxRecordBytes is {4 << 20}"
    )
    assert offsets(reader(client, 0, 5, max_record_bytes=4 << 20, skip_lost=True)) == [0, 1, 3, 4]
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == f"t-0 [0, 5): {caught.value}; skipped"
    assert offsets(reader(client, 3, 5, max_record_bytes=4 << 20)) == [3, 4]


@pytest.mark.parametrize("skip_lost", [False, True])
@pytest.mark.parametrize("damage", [corrupted, lambda data, _: with_crc(corrupted(data, 70))])
def test_what_is_corrupt_is_never_passed_over(
    client: KafkaClient, log: PartitionLog, skip_lost: bool, damage: Callable[[bytes, int], bytes]
) -> None:
    log.append(b"a")
    bad = encode_batch([Record(value=b"b" * 100)], base_offset=1, codec=Codec.ZSTD)
    log.append_batch(damage(bad, len(bad) - 1))
    log.append(b"c")
    with pytest.raises(CorruptRecordError, match="t-0 at offset 1"):
        offsets(reader(client, 0, 3, skip_lost=skip_lost))
