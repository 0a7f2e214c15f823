"""Unsent frames of a connection: they go out in order, in parts of any size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.net.framed_socket import Outgoing


def drained(outgoing: Outgoing, sizes: list[int]) -> bytes:
    """Send parts of these sizes, and repeat the last size."""
    found = b""
    for size in [*sizes, *[sizes[-1]] * 10_000]:
        pieces = outgoing.next_pieces()
        if not pieces:
            break
        part = b"".join(pieces)[:size]
        found += part
        outgoing.sent(len(part))
    return found


@given(
    st.lists(st.lists(st.binary(max_size=40), max_size=6), max_size=12),
    st.lists(st.integers(1, 100), min_size=1),
)
def test_frames_go_out_in_order_whatever_goes_out_at_once(
    frames: list[list[bytes]], sizes: list[int]
) -> None:
    outgoing = Outgoing()
    ends = []
    for frame in frames:
        outgoing.queue(frame)
        ends.append(outgoing.queued_bytes)
    whole = b"".join(piece for frame in frames for piece in frame)
    assert bool(outgoing) == bool(whole)
    assert drained(outgoing, sizes) == whole
    assert not outgoing
    assert outgoing.sent_bytes == outgoing.queued_bytes == len(whole)
    assert ends == sorted(ends)


def test_no_more_pieces_at_once_than_every_system_takes() -> None:
    outgoing = Outgoing()
    outgoing.queue([b"x"] * 40)
    assert len(outgoing.next_pieces()) == 16
    outgoing.sent(16)
    assert len(outgoing.next_pieces()) == 16
    outgoing.sent(16)
    assert len(outgoing.next_pieces()) == 8


def test_pieces_are_not_copied_and_counted_in_bytes() -> None:
    data = memoryview(bytearray(b"12345678")).cast("i")
    outgoing = Outgoing()
    outgoing.queue([data])
    (piece,) = outgoing.next_pieces()
    assert outgoing.queued_bytes == len(piece) == 8
    assert piece.obj is data.obj


@pytest.mark.parametrize("count", [1, 3, 5])
def test_a_part_of_a_piece_leaves_its_rest_first(count: int) -> None:
    outgoing = Outgoing()
    outgoing.queue([b"abcde", b"fg"])
    outgoing.sent(count)
    outgoing.queue([b"h"])
    assert b"".join(outgoing.next_pieces()) == b"abcdefgh"[count:]
