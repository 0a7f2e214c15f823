"""Varints, one at a time and all at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.errors import ProtocolError
from spark_kafka_source.records.varints import (
    VARINT_BYTES,
    VARLONG_BYTES,
    encode_varint,
    varint,
    varints,
)
from tests.records.strategies import untimed

longs = st.integers(-(1 << 63), (1 << 63) - 1)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (8191, "fe7f"),
        (8192, "808001"),
        ((1 << 31) - 1, "feffffff0f"),
        (-(1 << 31), "ffffffff0f"),
        ((1 << 63) - 1, "feffffffffffffffff01"),
        (-(1 << 63), "ffffffffffffffffff01"),
    ],
)
def test_a_value_has_one_encoding(value: int, encoded: str) -> None:
    assert encode_varint(value).hex() == encoded


@untimed
@given(st.lists(longs, min_size=1))
def test_all_ways_of_reading_agree(values: list[int]) -> None:
    encoded = [encode_varint(value) for value in values]
    data = b"".join(encoded)
    starts = np.cumsum([0, *map(len, encoded)])
    found, after = varints(np.frombuffer(data, np.uint8), starts[:-1], VARLONG_BYTES)
    assert found.tolist() == values
    assert after.tolist() == starts[1:].tolist()
    assert [varint(data, int(at), VARLONG_BYTES) for at in starts[:-1]] == [
        *zip(values, starts[1:].tolist(), strict=True)
    ]


@pytest.mark.parametrize("max_bytes", [VARINT_BYTES, VARLONG_BYTES])
@pytest.mark.parametrize("ends", [False, True])
def test_a_varint_ends_within_its_bytes(max_bytes: int, ends: bool) -> None:
    data = b"\xff" * (max_bytes - ends) + b"\x01" * 5
    _, after = varints(np.frombuffer(data, np.uint8), np.array([0]), max_bytes)
    assert (after.item() <= len(data)) is ends
    if not ends:
        with pytest.raises(ProtocolError, match=f"no varint of {max_bytes} bytes or fewer"):
            varint(data, 0, max_bytes)


@untimed
@given(st.binary(min_size=1), st.data())
def test_a_varint_cut_by_the_end_of_the_data_ends_beyond_it(
    data: bytes, draw: st.DataObject
) -> None:
    at = draw.draw(st.integers(0, len(data) + 20))
    _, (after,) = varints(np.frombuffer(data, np.uint8), np.array([at]))
    try:
        assert varint(data, at)[1] == after <= len(data)
    except ProtocolError:
        assert after > len(data)
