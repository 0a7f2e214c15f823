"""The bytes that are still to be sent on a connection, without IO."""

from collections import deque
from collections.abc import Sequence

# Every system takes at least this many pieces in one call (POSIX's `_XOPEN_IOV_MAX`).
_MOST_PIECES = 16


class Outgoing:
    """A queue of frames in pieces, sent in order. Nothing is joined or copied."""

    def __init__(self) -> None:
        self._pieces: deque[memoryview] = deque()
        self.queued_bytes = 0
        """Bytes of all frames so far.

        A frame is sent once `sent_bytes` reaches the value after it.
        """
        self.sent_bytes = 0

    def __bool__(self) -> bool:
        return self.sent_bytes < self.queued_bytes

    def queue(self, frame: Sequence[bytes | memoryview]) -> None:
        """Add the pieces of a frame at the end."""
        for piece in frame:
            view = memoryview(piece).cast("B")
            if view:
                self._pieces.append(view)
                self.queued_bytes += len(view)

    def next_pieces(self) -> list[memoryview]:
        """Return the next pieces to send, as many as one call takes."""
        count = min(len(self._pieces), _MOST_PIECES)
        return [self._pieces[place] for place in range(count)]

    def sent(self, count: int) -> None:
        """Remove the first `count` bytes of the next pieces."""
        self.sent_bytes += count
        while count:
            piece = self._pieces.popleft()
            if count < len(piece):
                self._pieces.appendleft(piece[count:])
                return
            count -= len(piece)
