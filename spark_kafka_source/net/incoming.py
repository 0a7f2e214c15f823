"""The answer that is coming in on a connection, without IO: a size of four bytes, then so many."""

from collections.abc import Callable

# A frame's memory is taken in steps as its bytes come in, whatever length its first four claim.
_STEP_BYTES = 4 * 1024 * 1024
_PREFIX_BYTES = 4


class Incoming:
    """Says where the next bytes belong, and gives each frame once it is whole.

    `size_of` makes a size of the first four bytes, and raises for one that cannot be.
    """

    def __init__(self, size_of: Callable[[bytes], int]) -> None:
        self._size_of = size_of
        self._buffer = bytearray(_PREFIX_BYTES)
        self._received = 0
        self._size: int | None = None

    def room(self) -> memoryview:
        """Return the place for the next bytes. Release it before `received` and `frame`."""
        return memoryview(self._buffer)[self._received :]

    def received(self, count: int) -> None:
        """So many bytes of the room are filled."""
        self._received += count

    def frame(self) -> memoryview | None:
        """Return the frame, without its size, or None while some of it is still to come."""
        if self._received < len(self._buffer):
            return None
        if self._size is None:
            self._size = self._size_of(bytes(self._buffer))
            self._buffer, self._received = bytearray(min(self._size, _STEP_BYTES)), 0
            return None
        left = self._size - self._received
        if left:
            self._buffer.extend(bytes(min(left, len(self._buffer))))
            return None
        frame = memoryview(self._buffer)
        self._buffer, self._received, self._size = bytearray(_PREFIX_BYTES), 0, None
        return frame
