"""Decimals of any bytes: Python's value, or malformed."""

from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.values.decimals import decimals
from spark_kafka_source.values.octets import OctetReader
from tests.values.avro_oracle import laid

_WIDE = Context(prec=60)
BYTES = st.one_of(
    st.binary(max_size=9),
    st.binary(max_size=20),
    st.builds(
        lambda more, data, sign: sign * more + data,
        st.integers(0, 20), st.binary(max_size=17), st.sampled_from([b"\0", b"\xff"]),
    ),
)  # fmt: skip


@given(st.lists(BYTES, min_size=1, max_size=6), st.sampled_from([1, 4, 18, 19, 20, 37, 38]))
def test_decimals_are_what_their_bytes_say(rows: list[bytes], precision: int) -> None:
    data, start, end = laid(rows, b"")
    halves, bad = decimals(OctetReader(data), start, end, precision)
    numbers = [int.from_bytes(row, signed=True) for row in rows]
    wanted = [
        not row or abs(number) >= 10**precision for row, number in zip(rows, numbers, strict=True)
    ]
    assert bad.tolist() == wanted
    kind = pa.decimal128(precision, 0)
    array = pa.Array.from_buffers(
        kind, len(rows), [None, pa.py_buffer(np.ascontiguousarray(halves))]
    )
    assert array.to_pylist() == [
        Decimal(0) if wrong else _WIDE.create_decimal(number)
        for number, wrong in zip(numbers, wanted, strict=True)
    ]
