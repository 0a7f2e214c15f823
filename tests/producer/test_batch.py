"""A batch of single records and columns, and its parts after a leader refuses the whole batch."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.errors import ClosedError
from spark_kafka_source.producer import ProducerId
from spark_kafka_source.producer.batch import OpenBatch, ProducerBatch
from spark_kafka_source.producer.delivery import Delivery, Outcome
from spark_kafka_source.records import NO_COMPRESSION, Codec, Compression, Row
from tests.producer.writing import T0
from tests.records.batches import rows_of
from tests.records.strategies import untimed

LOST = ClosedError("it is lost")
LAST_SEQUENCE = (1 << 31) - 1


def row(value: bytes | None, **rest: Any) -> Row:
    return rest.get("key"), value, rest.get("headers", []), rest.get("timestamp_ms", 5)


def closed_batch(count: int, compression: Compression = NO_COMPRESSION) -> ProducerBatch:
    opened = OpenBatch(Delivery(T0), 0.0)
    for number in range(count):
        opened.append([row(b"%d" % number)], 100)
    batch = opened.close()
    batch.encoded = opened.encode(compression, 0)
    return batch


def values_of(batch: ProducerBatch) -> list[bytes | None]:
    assert batch.encoded is not None
    return [each.value for each in rows_of(batch.encoded.to_bytes())]


def test_records_are_numbered_as_they_come_one_by_one_or_in_columns() -> None:
    opened = OpenBatch(Delivery(T0), 0.0)
    assert opened.append([row(b"a", key=b"k", headers=[(b"h", None)])], 10) == 0
    assert opened.append([row(None)], 20) == 1
    columns = pa.RecordBatch.from_pydict(
        {"value": ["c", "d"], "timestamp": pa.array([1_000_000, None], pa.timestamp("us"))}
    )
    assert opened.append(columns, 30) == 2
    assert opened.append([row(b"e")], 40) == 4
    assert (opened.record_count, opened.size) == (5, 100)
    batch = opened.close()
    assert (batch.record_count, batch.reserved_bytes, batch.first) == (5, 100, 0)
    rows = rows_of(opened.encode(NO_COMPRESSION, 77).to_bytes())
    assert [each.value for each in rows] == [b"a", None, b"c", b"d", b"e"]
    assert [each.timestamp_ms for each in rows] == [5, 5, 1_000, 77, 5]
    assert (rows[0].key, rows[0].headers) == (b"k", (("h", None),))


def test_times_far_apart_are_kept() -> None:
    opened = OpenBatch(Delivery(T0), 0.0)
    for timestamp_ms in (0, 9_223_372_036_854_775, 5):
        opened.append([row(b"", timestamp_ms=timestamp_ms)], 100)
    opened.close()
    rows = rows_of(opened.encode(NO_COMPRESSION, 0).to_bytes())
    assert [each.timestamp_ms for each in rows] == [0, 9_223_372_036_854_775, 5]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_parts_go_on_with_the_sequences_of_their_records(codec: Codec) -> None:
    batch = closed_batch(5, Compression(codec))
    batch.producer, batch.base_sequence, batch.order = ProducerId(7, 0), LAST_SEQUENCE - 1, 3
    batch.is_sent = True
    first, second = batch.split(1 << 20, Compression(codec))
    assert not first.is_sent
    assert values_of(first) + values_of(second) == [b"%d" % each for each in range(5)]
    assert (first.first, second.first) == (0, first.record_count)
    assert first.base_sequence == LAST_SEQUENCE - 1
    assert second.base_sequence == (LAST_SEQUENCE - 1 + first.record_count) % (1 << 31)
    assert first < second
    assert not second < first
    assert first.reserved_bytes + second.reserved_bytes == 500


def test_parts_of_a_batch_without_sequences_have_none() -> None:
    for part in closed_batch(3).split(1, NO_COMPRESSION):
        assert (part.producer, part.base_sequence) == (None, -1)


@untimed
@given(st.data(), st.integers(1, 12))
def test_what_is_left_out_is_not_in_the_parts_and_the_rest_is_told_apart(
    data: st.DataObject, count: int
) -> None:
    batch = closed_batch(count)
    batch.producer, batch.base_sequence = ProducerId(7, 0), 100
    left_out = data.draw(st.lists(st.integers(0, count - 1), min_size=1))
    parts = batch.without(left_out, NO_COMPRESSION)
    kept = [each for each in range(count) if each not in left_out]
    assert [value for part in parts for value in values_of(part)] == [b"%d" % n for n in kept]
    numbers = [part.first + at for part in parts for at in range(part.record_count)]
    assert numbers == kept
    assert [part.base_sequence for part in parts] == [100 + part.first for part in parts]
    assert sum(part.reserved_bytes for part in parts) == (batch.reserved_bytes if parts else 0)
    for number in set(left_out):
        batch.failed_record(number, LOST)
    for part in parts:
        part.delivered(1_000 + part.first)
    assert batch.delivery.is_done
    outcomes = [batch.delivery.outcome(each) for each in range(count)]
    assert [each.offset_of(number) for number, each in enumerate(outcomes)] == [
        1_000 + each if each in kept else -1 for each in range(count)
    ]


def test_what_came_of_a_batch_is_said_once() -> None:
    batch = closed_batch(2)
    batch.failed(LOST)
    batch.delivered(7)
    assert batch.delivery.outcomes == [Outcome(0, 2, -1, -1, LOST)]


def test_batches_are_in_the_order_of_their_first_sending() -> None:
    batches = [closed_batch(1) for _ in range(3)]
    for order, batch in zip((3, 1, 2), batches, strict=True):
        batch.order = order
    assert sorted(batches) == [batches[1], batches[2], batches[0]]


def test_a_batch_that_is_not_encoded_has_no_parts() -> None:
    opened = OpenBatch(Delivery(T0), 0.0)
    opened.append([row(b"a")], 10)
    with pytest.raises(ValueError, match="not encoded yet"):
        opened.close().split(1, NO_COMPRESSION)
