"""Random batches."""

from hypothesis import settings
from hypothesis import strategies as st

from spark_kafka_source.records import Codec, TimestampType
from tests.records.batches import Batch, Row

untimed = settings(deadline=None)
"""Settings without a deadline: a shared machine may be slow, and no property is about time."""

codecs = st.sampled_from(Codec)
payloads = st.none() | st.binary(max_size=80) | st.builds(bytes, st.integers(100, 20_000))
headers = st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=8)), max_size=4)
kafka_timestamps = st.integers(1_699_000_000_000, 1_701_000_000_000) | st.integers(
    -1, 9_223_372_036_854_775
)
"""Kafka's own classes accept no other negative timestamp."""

any_timestamps = kafka_timestamps | st.integers(-9_223_372_036_854_775, -1)

producers = st.just((-1, -1, -1)) | st.tuples(
    st.integers(0, 1 << 40), st.integers(0, 100), st.integers(0, 100)
)


@st.composite
def batch(
    draw: st.DrawFn,
    base_offset: int = 0,
    *,
    min_size: int = 0,
    timestamps: st.SearchStrategy[int] = any_timestamps,
) -> Batch:
    """Draw a batch with gaps between offsets and after the last offset."""
    # Draw few headers, and repeat them: the decoder reads many headers in another way.
    gaps = st.sampled_from([0, 0, 0, 1, 70, 9000])
    content = st.tuples(gaps, st.tuples(timestamps, payloads, payloads, headers))
    contents = draw(st.lists(content, min_size=min_size, max_size=6))
    rows, offset = [], base_offset
    for gap, (timestamp_ms, key, value, pairs) in contents * draw(st.sampled_from([1, 1, 9])):
        offset += gap
        rows.append(Row(offset, timestamp_ms, key, value, tuple(pairs)))
        offset += 1
    producer_id, producer_epoch, base_sequence = draw(producers)
    return Batch(
        rows=tuple(rows),
        base_offset=base_offset,
        codec=draw(codecs) if rows else Codec.NONE,
        timestamp_type=draw(st.sampled_from(TimestampType)),
        append_timestamp_ms=draw(st.integers(0, 1_800_000_000_000)),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        leader_epoch=draw(st.integers(-1, 100)),
        last_offset_delta=max(offset - base_offset - 1, 0) + draw(st.integers(0, 3)),
    )


@st.composite
def fetches(draw: st.DrawFn) -> list[Batch]:
    """Draw successive batches."""
    found: list[Batch] = []
    base_offset = draw(st.integers(0, 1 << 62))
    for _ in range(draw(st.integers(1, 3))):
        found.append(draw(batch(base_offset)))
        base_offset += (found[-1].last_offset_delta or 0) + 1 + draw(st.integers(0, 2))
    return found
