"""Joining and cutting of Spark's batches: same rows, same order, a limited size in bytes."""

import gc
from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.spark.sink.writer import gathered
from tests.spark.sink.settings import values

BATCHES = st.lists(st.lists(st.text("ab", max_size=60), max_size=12), max_size=12)


@given(BATCHES, st.integers(1, 500))
def test_the_same_rows_in_batches_of_about_that_size(
    batches: list[list[str]], most_bytes: int
) -> None:
    found = list(gathered((values(*each) for each in batches), most_bytes))
    rows = [row for each in found for row in each["value"].to_pylist()]
    assert rows == [row for each in batches for row in each]
    assert all(each.num_rows == 1 or 0 < each.nbytes <= most_bytes for each in found)
    # Two neighbours that fit together are one batch.
    assert not any(
        one.nbytes + other.slice(0, 1).nbytes <= most_bytes
        for one, other in pairwise(found)
        if other.num_rows == 1
    )


def test_no_batch_is_held_on_to() -> None:
    row = values("x" * 1_000_000)
    gc.collect()
    before = pa.total_allocated_bytes()
    for _ in gathered((pa.concat_batches([row] * 2) for _ in range(50)), 4_000_000):
        assert pa.total_allocated_bytes() - before < 13_000_000
