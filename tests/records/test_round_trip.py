"""Round trips of encoded data, also after cuts, trims and mutations."""

from hypothesis import given, settings
from hypothesis import strategies as st

from spark_kafka_source.errors import CorruptRecordError
from spark_kafka_source.records import RecordLimit, chunks, encode_batch, to_arrow
from spark_kafka_source.records.encode import with_crc
from tests.records.batches import TOPIC_PARTITION, Batch, encoded, rows_in, rows_of
from tests.records.strategies import batch, fetches, untimed


@untimed
@given(fetches())
def test_every_batch_reads_back_as_it_was(batches: list[Batch]) -> None:
    expected = [row for batch in batches for row in batch.expected]
    assert rows_of(b"".join(map(encoded, batches))) == expected


@untimed
@given(fetches(), st.integers(1, 20_000))
def test_the_size_of_chunks_changes_nothing(batches: list[Batch], chunk_bytes: int) -> None:
    expected = [row for batch in batches for row in batch.expected]
    data = b"".join(map(encoded, batches))
    assert rows_of(data, chunk_bytes=chunk_bytes) == expected


@untimed
@given(fetches(), st.data())
def test_a_range_reads_its_own_offsets_only(batches: list[Batch], data: st.DataObject) -> None:
    first = batches[0].base_offset
    last = batches[-1].base_offset + 20_000
    position = data.draw(st.integers(first, last))
    end = data.draw(st.integers(position, last + 1))
    fetch = b"".join(map(encoded, batches))
    found = list(chunks(fetch, topic_partition=TOPIC_PARTITION, position=position, end=end))
    rows = [row for chunk in found for row in rows_in(to_arrow(chunk, include_headers=True))]
    assert rows == [
        row for batch in batches for row in batch.expected if position <= row.offset < end
    ]
    next_offsets = [chunk.next_offset for chunk in found]
    assert next_offsets == sorted(next_offsets)
    assert position <= next_offsets[0] <= next_offsets[-1] <= max(position, end)


@untimed
@given(fetches(), st.integers(500, 5000))
def test_reading_can_stop_after_any_chunk(batches: list[Batch], chunk_bytes: int) -> None:
    """A new read from a chunk's `next_offset` continues after that chunk."""
    fetch = b"".join(map(encoded, batches))
    expected = rows_of(fetch)
    before: list[int] = []
    for chunk in chunks(fetch, topic_partition=TOPIC_PARTITION, chunk_bytes=chunk_bytes):
        before += [row.offset for row in rows_in(to_arrow(chunk, include_headers=True))]
        rest = rows_of(fetch, position=chunk.next_offset)
        assert before + [row.offset for row in rest] == [row.offset for row in expected]


@settings(untimed, max_examples=300)
@given(batch(min_size=1), st.data())
def test_mutated_bytes_raise_only_the_typed_error(original: Batch, data: st.DataObject) -> None:
    """Any bytes either decode or raise CorruptRecordError, also with a correct CRC."""
    damaged = bytearray(encoded(original))
    for _ in range(data.draw(st.integers(1, 4))):
        # Half of the changes are in the header or first record, where most of the structure is.
        reach = data.draw(st.sampled_from([80, len(damaged)]))
        at = data.draw(st.integers(0, min(reach, len(damaged)) - 1))
        damaged[at] = data.draw(st.integers(0, 255) | st.sampled_from([0, 1, 127, 128, 255]))
    cut = bytes(damaged[: data.draw(st.just(len(damaged)) | st.integers(0, len(damaged)))])
    repaired = with_crc(cut) if len(cut) >= 61 and data.draw(st.booleans()) else cut
    try:
        rows_of(
            repaired,
            check_crcs=data.draw(st.booleans()),
            chunk_bytes=data.draw(st.sampled_from([100, 1 << 20])),
            limit=RecordLimit(1 << 24),
        )
    except CorruptRecordError as error:
        assert error.topic_partition == TOPIC_PARTITION
        assert str(error.reason)


@untimed
@given(st.binary(max_size=300), st.integers(1, 20))
def test_random_records_under_a_good_header_raise_only_the_typed_error(
    payload: bytes, count: int
) -> None:
    header = bytearray(encode_batch([], last_offset_delta=count)[:61])
    header[8:12] = (len(payload) + 49).to_bytes(4)
    header[57:61] = count.to_bytes(4)
    try:
        rows_of(with_crc(bytes(header) + payload))
    except CorruptRecordError as error:
        assert error.topic_partition == TOPIC_PARTITION
