"""Varints of whole columns equal the varints of `encode_varint`, one after the other."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.records.packing import PackedColumn, Varints, pack
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


def test_some_rows_of_a_column_are_packed_as_in_all_of_it() -> None:
    values = np.array([1, 70, 2, 70, 71, 9000, 8999, 70, 9000, 9001])
    alike = np.full(len(values), 300)
    for start in range(len(values)):
        columns = [
            Varints.of(each).rows(start, len(values)) for each in (values, alike, values[:1])
        ]
        packed = PackedColumn(pack(columns, len(values) - start, pa.binary(), b"x"), start)
        expected = [
            encode_varint(value) + encode_varint(300) + encode_varint(1)
            for value in values[start:].tolist()
        ]
        for stop in range(start, len(values) + 1):
            for first in range(start, stop + 1):
                assert (
                    packed.part(first, stop).to_pylist()
                    == [*expected, b"x"][first - start : stop - start + 1]
                )
