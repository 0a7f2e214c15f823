"""A range of one partition: exactly its records, for logs of all kinds."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import (
    CorruptRecordError,
)
from spark_kafka_source.fetch import FetchConfig
from spark_kafka_source.net import ConnectionSettings
from spark_kafka_source.protocol.messages.fetch import AbortedTransaction, FetchRequest
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.records import Codec, IsolationLevel, Record
from spark_kafka_source.testing.memory import MemoryBroker, PartitionLog
from tests.fetch.reading import (
    COMMITTED,
    SMALL,
    answer,
    fetched,
    fetches_of,
    offsets,
    reader,
    values,
)

pytestmark = pytest.mark.memory(nodes=3)

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
    assert offsets(reader(client, 0, 10, fetches_of(300))) == list(range(10))
    assert fetched(broker) == [0, 2, 4, 6, 8]
    assert len(broker.requests(MetadataRequest)) == 1


def test_what_is_asked_is_what_is_configured(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    log.append(b"a")
    log.leader_epoch = 4
    offsets(reader(client, 0, 1, FetchConfig(7, 8, 9_000, 1_000, IsolationLevel.READ_COMMITTED)))
    (request,) = broker.requests(FetchRequest)
    assert (request.min_bytes, request.max_wait_ms, request.max_bytes) == (7, 8, 1_000)
    assert request.isolation_level == 1
    (partition,) = request.topics[0].partitions
    assert (partition.partition_max_bytes, partition.current_leader_epoch) == (1_000, 4)


# -- kinds of logs ---------------------------------------------------------------------------------


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


# -- sizes of fetches ------------------------------------------------------------------------------


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
    with pytest.raises(CorruptRecordError, match=r"t-0 at offset 0: .* did not come whole"):
        offsets(reader(client, 0, 1))


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
