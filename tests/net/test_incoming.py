"""Answers that arrive in parts."""

import pytest

from spark_kafka_source.errors import ProtocolError
from spark_kafka_source.net import framed_socket
from spark_kafka_source.net.framed_socket import Incoming


def size_of(prefix: bytes) -> int:
    size = int.from_bytes(prefix)
    if size > 1_000:
        raise ProtocolError("too large")
    return size


def fed(incoming: Incoming, data: bytes, most: int) -> list[bytes]:
    """Return the frames in the data. At most `most` bytes arrive at a time."""
    found = []
    while data:
        with incoming.room() as room:
            count = min(most, len(room), len(data))
            room[:count] = data[:count]
        incoming.received(count)
        data = data[count:]
        frame = incoming.frame()
        if frame is not None:
            found.append(bytes(frame))
    return found


def framed(*contents: bytes) -> bytes:
    return b"".join(len(each).to_bytes(4) + each for each in contents)


@pytest.mark.parametrize("most", [1, 3, 7, 10_000])
@pytest.mark.parametrize("step", [1, 4, 10, 10_000])
def test_frames_are_whole_however_their_bytes_come(
    most: int, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(framed_socket, "_STEP_BYTES", step)
    contents = (b"a", b"0123456789" * 12, b"xyz")
    assert fed(Incoming(size_of), framed(*contents), most) == list(contents)


def test_memory_is_taken_as_the_bytes_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framed_socket, "_STEP_BYTES", 8)
    incoming = Incoming(size_of)
    assert fed(incoming, framed(bytes(900))[:20], 1_000) == []
    assert len(incoming.room()) <= 16


def test_a_size_that_cannot_be_is_refused_at_once() -> None:
    incoming = Incoming(size_of)
    with pytest.raises(ProtocolError, match="too large"):
        fed(incoming, (1_001).to_bytes(4), 4)


def test_a_frame_is_not_written_over() -> None:
    incoming = Incoming(size_of)
    with incoming.room() as room:
        room[:4] = framed(b"abc")[:4]
    incoming.received(4)
    assert incoming.frame() is None
    with incoming.room() as room:
        room[:] = b"abc"
    incoming.received(3)
    first = incoming.frame()
    fed(incoming, framed(b"xyz"), 10)
    assert bytes(first or b"") == b"abc"
