"""The next answer on a connection, without IO: four bytes with its size, then the answer."""

from collections.abc import Callable

# Memory for a frame grows in steps while its bytes come in: the size before it may be wrong.
_STEP_BYTES = 4 * 1024 * 1024
_PREFIX_BYTES = 4


class Incoming:
    """A buffer with room for the next bytes, which returns each frame once it is complete.

    `size_of` returns the size in the first four bytes, and raises for an impossible one.
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
        """Note that `count` bytes of the room are filled."""
        self._received += count

    def frame(self) -> memoryview | None:
        """Return the frame without its size, or None while part of it is missing."""
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
