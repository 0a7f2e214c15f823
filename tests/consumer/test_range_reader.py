"""A range of one partition: its records and no others, whatever the log and the brokers do."""

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.consumer import FetchConfig, OffsetOutOfRangeError, OffsetRange, RangeReader
from spark_kafka_source.errors import (
    BrokerError,
    CorruptRecordError,
    KafkaTimeoutError,
    ProtocolError,
    UnsupportedRecordFormatError,
    error_named,
)
from spark_kafka_source.net import ConnectionSettings
from spark_kafka_source.protocol import (
    ZERO_UUID,
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    PartitionData,
)
from spark_kafka_source.records import Codec, IsolationLevel, Record, encode_batch, to_arrow
from spark_kafka_source.topic_partition import TopicPartition
from tests.memory_broker import KAFKA_2_1, Action, MemoryBroker, PartitionLog

T0 = TopicPartition("t", 0)
COMMITTED = FetchConfig(isolation_level=IsolationLevel.READ_COMMITTED)
SMALL = FetchConfig(max_partition_fetch_bytes=100)


@pytest.fixture
def log(broker: MemoryBroker) -> PartitionLog:
    (log,) = broker.create_topic("t")
    return log


def reader(
    client: KafkaClient, start: int, end: int, config: FetchConfig | None = None, **values: Any
) -> RangeReader:
    return RangeReader(client, OffsetRange(T0, start, end), config or FetchConfig(), **values)


def offsets(reading: RangeReader) -> list[int]:
    return [
        offset for chunk in reading.chunks() for offset in to_arrow(chunk)["offset"].to_pylist()
    ]


def values(reading: RangeReader) -> list[bytes]:
    return [value for chunk in reading.chunks() for value in to_arrow(chunk)["value"].to_pylist()]


def fetched(broker: MemoryBroker) -> list[int]:
    return [
        request.topics[0].partitions[0].fetch_offset for request in broker.requests(FetchRequest)
    ]


def answer(records: bytes, **rest: Any) -> Any:
    """A fetch answered with `records`, whatever the log has."""

    def respond(request: FetchRequest) -> FetchResponse:
        topic = request.topics[0]
        partition = PartitionData(topic.partitions[0].partition, records=records, **rest)
        return FetchResponse(
            responses=[FetchableTopicResponse(topic.topic, topic.topic_id, [partition])]
        )

    return respond


# -- the range -------------------------------------------------------------------------------------


def test_a_range_is_its_start_and_all_before_its_end(
    client: KafkaClient, log: PartitionLog
) -> None:
    log.append(b"a", b"b", b"c")
    log.append(b"d", b"e", b"f", codec=Codec.LZ4)
    assert values(reader(client, 1, 5)) == [b"b", b"c", b"d", b"e"]


def test_an_empty_range_asks_nothing(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    assert offsets(reader(client, 3, 3)) == []
    assert broker.seen == []


@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=8),
    ends=st.tuples(st.integers(0, 40), st.integers(0, 40)),
    fetch_bytes=st.integers(1, 400),
)
def test_any_range_of_any_log_with_any_fetch_size(
    sizes: list[int], ends: tuple[int, int], fetch_bytes: int
) -> None:
    with MemoryBroker() as broker, KafkaClient(broker.config()) as client:
        (log,) = broker.create_topic("t")
        for size in sizes:
            log.append(*[b"value"] * size)
        start, end = sorted(min(each, sum(sizes)) for each in ends)
        config = FetchConfig(max_partition_fetch_bytes=fetch_bytes)
        assert offsets(reader(client, start, end, config)) == list(range(start, end))


def test_a_range_takes_as_many_fetches_as_it_must_and_no_metadata_between(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    for _ in range(10):
        log.append(b"x" * 50)
    assert offsets(reader(client, 0, 10, FetchConfig(max_partition_fetch_bytes=300))) == list(
        range(10)
    )
    assert fetched(broker) == [0, 2, 4, 6, 8]
    assert len(broker.requests(MetadataRequest)) == 1


def test_what_is_asked_is_what_is_configured(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    log.append(b"a")
    log.leader_epoch = 4
    offsets(reader(client, 0, 1, FetchConfig(7, 8, 9_000, 1_000, IsolationLevel.READ_COMMITTED)))
    (request,) = broker.requests(FetchRequest)
    assert (request.min_bytes, request.max_wait_ms, request.max_bytes) == (7, 8, 9_000)
    assert request.isolation_level == 1
    (partition,) = request.topics[0].partitions
    assert (partition.partition_max_bytes, partition.current_leader_epoch) == (1_000, 4)


# -- what a log can look like ----------------------------------------------------------------------


def test_control_batches_at_the_end_end_the_range(client: KafkaClient, log: PartitionLog) -> None:
    log.append(b"a", producer_id=1, transactional=True)
    log.append_marker(1, commit=True)
    log.append_marker(2, commit=True)
    assert offsets(reader(client, 0, 3)) == [0]
    assert offsets(reader(client, 1, 3)) == []


def test_compaction_leaves_gaps(client: KafkaClient, log: PartitionLog) -> None:
    log.append(Record(value=b"a"), Record(value=b"d", offset_delta=3), last_offset_delta=5)
    log.append(base_offset=6, last_offset_delta=3)  # emptied
    log.append(b"u", base_offset=20)
    log.append(b"v", base_offset=30)
    assert offsets(reader(client, 0, 31)) == [0, 3, 20, 30]
    assert offsets(reader(client, 1, 25)) == [3, 20]
    assert offsets(reader(client, 4, 10)) == []
    assert offsets(reader(client, 4, 18)) == []


def test_a_range_within_a_gap_ends_with_the_batch_after_it(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    log.append(b"a")
    log.append(b"z", base_offset=100)
    assert offsets(reader(client, 1, 50)) == []
    assert fetched(broker) == [1]


def test_aborted_transactions_are_seen_by_the_isolation_level(
    client: KafkaClient, log: PartitionLog
) -> None:
    log.append(b"no", b"no", producer_id=1, transactional=True)
    log.append(b"yes", producer_id=2, transactional=True)
    log.append_marker(1, commit=False, first_offset=0)
    log.append_marker(2, commit=True)
    log.append(b"yes", producer_id=1, transactional=True)
    log.append_marker(1, commit=True)
    assert values(reader(client, 0, 7)) == [b"no", b"no", b"yes", b"yes"]
    assert values(reader(client, 0, 7, COMMITTED)) == [b"yes", b"yes"]
    assert values(reader(client, 0, 2, COMMITTED)) == []


def test_aborted_transactions_that_span_several_fetches(
    client: KafkaClient, log: PartitionLog
) -> None:
    for _ in range(4):
        log.append(b"no", producer_id=1, transactional=True)
        log.append(b"yes")
    log.append_marker(1, commit=False, first_offset=0)
    config = FetchConfig(max_partition_fetch_bytes=1, isolation_level=IsolationLevel.READ_COMMITTED)
    assert offsets(reader(client, 0, 9, config)) == [1, 3, 5, 7]


def test_an_aborted_list_in_any_order_with_a_marker_twice_or_without_data(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    log.append(b"no", producer_id=1, transactional=True)
    log.append(b"no", producer_id=2, transactional=True)
    log.append_marker(2, commit=False, first_offset=1)
    log.append_marker(2, commit=False, first_offset=2)
    log.append_marker(1, commit=False, first_offset=0)
    log.append_marker(3, commit=False, first_offset=5)
    log.append(b"yes", producer_id=1, transactional=True)
    aborted = [AbortedTransaction(each.producer_id, each.first_offset) for each in log.aborted]
    records = log.read(0, 7, 10_000)
    for order in (aborted, aborted[::-1]):
        broker.control(FetchRequest, answer(records, aborted_transactions=order))
        assert values(reader(client, 0, 7, COMMITTED)) == [b"yes"]


# -- how much is fetched ---------------------------------------------------------------------------


def test_a_record_larger_than_the_fetch_limit_comes_whole(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    """KIP-74."""
    log.append(b"a")
    log.append(b"x" * 100_000)
    assert values(reader(client, 0, 2, SMALL)) == [b"a", b"x" * 100_000]
    assert len(fetched(broker)) == 2


def test_where_a_broker_cuts_even_the_first_batch_more_is_asked_for(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    log.append(b"x" * 100_000)
    whole = log.read(0, 1, 0)

    def cut(request: FetchRequest) -> Any:
        most_bytes = request.topics[0].partitions[0].partition_max_bytes
        return answer(whole[: min(most_bytes, request.max_bytes)])(request)

    broker.control(FetchRequest, cut, times=None)
    config = FetchConfig(fetch_max_bytes=50, max_partition_fetch_bytes=100)
    assert values(reader(client, 0, 1, config)) == [b"x" * 100_000]
    assert len(fetched(broker)) == 2


def test_a_batch_that_never_comes_whole_is_told_of(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    log.append(b"x" * 1_000)
    broker.control(FetchRequest, answer(log.read(0, 1, 0)[:500]), times=None)
    with pytest.raises((CorruptRecordError, KafkaTimeoutError), match="t-0"):
        offsets(reader(client, 0, 1, poll_timeout_ms=100))


def test_a_batch_that_claims_to_be_larger_than_any_answer_is_told_of(
    broker: MemoryBroker, log: PartitionLog
) -> None:
    log.append(b"x" * 1_000)
    whole = bytearray(log.read(0, 1, 0))
    whole[8:12] = (0x7FFFFFF0).to_bytes(4)
    broker.control(FetchRequest, answer(bytes(whole)), times=None)
    settings = ConnectionSettings(max_response_bytes=1024 * 1024)
    with (
        KafkaClient(broker.config(settings=settings)) as client,
        pytest.raises(CorruptRecordError, match="t-0 at offset 0"),
    ):
        offsets(reader(client, 0, 1))


# -- promised, and not there -----------------------------------------------------------------------


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
    assert f"t-0 [{start}, {end})" in str(caught.value)
    assert "offsets 2 to 5" in str(caught.value)


def test_retention_that_overtakes_a_read_is_told_after_what_was_read(
    client: KafkaClient, log: PartitionLog
) -> None:
    for _ in range(4):
        log.append(b"a")
    found = []
    with pytest.raises(OffsetOutOfRangeError, match=r"offset 2 is not in the log.* 3 to 4"):
        for chunk in reader(client, 0, 4, FetchConfig(max_partition_fetch_bytes=150)).chunks():
            found += to_arrow(chunk)["offset"].to_pylist()
            log.log_start_offset = 3
    assert found == [0, 1]


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
    with pytest.raises(ProtocolError, match="Fetch of t-0"):
        offsets(reader(client, 0, 1))


def test_no_right_to_a_topic_is_told_with_partition_and_offset(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    log.append(b"a")
    broker.control(FetchRequest, error_named("TOPIC_AUTHORIZATION_FAILED"))
    with pytest.raises(BrokerError, match="Fetch of t-0 at offset 0: TOPIC_AUTHORIZATION_FAILED"):
        offsets(reader(client, 0, 1))
