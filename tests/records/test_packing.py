"""Varints of whole columns are those of `encode_varint`, next to each other."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.records.packing import Varints, pack
from spark_kafka_source.records.varints import encode_varint
from tests.records.strategies import untimed

LEAST, MOST = -(1 << 63), (1 << 63) - 1
bits = st.integers(0, 63)
integers = st.builds(
    lambda power, sign, near: min(max(sign * (1 << power) + near, LEAST), MOST),
    bits,
    st.sampled_from([1, -1]),
    st.integers(-2, 2),
) | st.integers(-3, 70)


@untimed
@given(
    st.integers(1, 40).flatmap(
        lambda count: st.lists(
            st.lists(integers, min_size=count, max_size=count) | integers, min_size=1, max_size=4
        )
    ),
    st.sampled_from([pa.binary(), pa.large_binary()]),
    st.binary(max_size=2),
)
def test_columns_are_packed_row_by_row(
    columns: list[list[int] | int], binary: pa.DataType, last: bytes
) -> None:
    count = max(len(each) if isinstance(each, list) else 1 for each in columns)
    packed = pack(
        [Varints.of(np.array(c, np.int64) if isinstance(c, list) else c) for c in columns],
        count,
        binary,
        last,
    )
    packed.validate(full=True)
    assert packed.type == binary
    cells = [each if isinstance(each, list) else [each] * count for each in columns]
    rows = [b"".join(map(encode_varint, row)) for row in zip(*cells, strict=True)]
    assert packed.to_pylist() == [*rows, last]


@pytest.mark.parametrize("width", range(1, 11))
def test_widths_are_those_of_the_bytes(width: int) -> None:
    largest = (1 << 7 * width) - 1 if width < 10 else (1 << 64) - 1
    value = largest >> 1 if largest % 2 == 0 else -(largest >> 1) - 1
    assert len(encode_varint(value)) == width
    both = Varints.of(np.array([value, 0]))
    assert np.broadcast_to(both.widths, 2).tolist() == [width, 1]
    assert (both.least, both.most) == (1, width)


def test_rows_after_the_last_short_one_are_as_they_were_written() -> None:
    """They are taken whole, without asking which of their bytes count."""
    values = np.array([1, 70, 2, 70, 71, 9000, 8999, 70, 9000, 9001])
    for count in range(1, len(values) + 1):
        packed = pack([Varints.of(0), Varints.of(values[:count])], count, pa.binary())
        expected = [b"\0" + encode_varint(value) for value in values[:count].tolist()]
        assert packed.to_pylist() == [*expected, b""]
