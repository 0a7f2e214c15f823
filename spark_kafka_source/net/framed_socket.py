"""A connected socket, plain or with TLS, and the frames on it. Waits end at a deadline."""

import contextlib
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Sequence

from spark_kafka_source.forks import OwnProcess
from spark_kafka_source.net.deadline import Deadline
from spark_kafka_source.net.security import TlsSettings
from spark_kafka_source.net.tls.context import start_tls

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


# Errors of a socket that only mean that the caller has to wait.
_NOT_YET = (
    TimeoutError,
    BlockingIOError,
    InterruptedError,
    ssl.SSLWantReadError,
    ssl.SSLWantWriteError,
)


class FramedSocket:
    """A connected socket. Its methods raise `OSError` if the connection is lost or closed.

    A method with a deadline waits until then. Without a deadline it does not wait.
    """

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._process = OwnProcess("connection")
        self._last_used_seconds = time.monotonic()
        self.closed = False

    def start_tls(self, settings: TlsSettings, host: str, deadline: Deadline) -> None:
        """Use TLS from now on, with the server's certificate checked for `host`."""
        self._socket = encrypted = start_tls(self._socket, settings, host)
        self._set_timeout(deadline)
        encrypted.do_handshake()

    def send(self, outgoing: Outgoing, deadline: Deadline | None) -> None:
        """Send as much as goes out in time."""
        try:
            self._set_timeout(deadline)
            while outgoing:
                outgoing.sent(self._send_pieces(outgoing.next_pieces()))
                self._last_used_seconds = time.monotonic()
        except _NOT_YET:
            return

    def receive(self, incoming: Incoming, deadline: Deadline | None) -> bool:
        """Receive more bytes. Return whether some came in time."""
        try:
            with incoming.room() as room:
                self._set_timeout(deadline)
                count = self._socket.recv_into(room)
        except _NOT_YET:
            return False
        if not count:
            raise ConnectionResetError("the broker closed the connection")
        incoming.received(count)
        self._last_used_seconds = time.monotonic()
        return True

    def hung_up(self) -> bool:
        """Return whether the broker closed the connection, which then is closed here, too.

        Nothing may be in flight: then "readable" can only mean that.
        """
        self._process.check()
        # TLS cannot peek. Bytes read in its place are of no use anyway, and the connection ends.
        flags = 0 if isinstance(self._socket, ssl.SSLSocket) else socket.MSG_PEEK
        try:
            self._socket.settimeout(0)
            self._socket.recv(1, flags)
        except (BlockingIOError, InterruptedError, ssl.SSLWantReadError):
            return False
        except OSError:
            pass
        self.close()
        return True

    @property
    def silent_seconds(self) -> float:
        """Seconds since something was received or sent."""
        return time.monotonic() - self._last_used_seconds

    def fileno(self) -> int:
        """Return the socket's descriptor, to wait for several at once; -1 once it is closed."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the socket, and wake a thread that waits on it. Never raises.

        A fork's child closes its copy, and the parent's connection stays.
        """
        self.closed = True
        with contextlib.suppress(OSError):  # The socket may have lost its connection.
            # Not the method of TLS's sockets: after it, a thread that sends would go on without
            # TLS.
            if self._process.is_here:
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        self._socket.close()

    def _send_pieces(self, pieces: list[memoryview]) -> int:
        if isinstance(self._socket, ssl.SSLSocket):
            return self._socket.send(pieces[0])
        return self._socket.sendmsg(pieces)

    def _set_timeout(self, deadline: Deadline | None) -> None:
        self._process.check()
        if self.closed:
            raise ConnectionAbortedError("the connection is closed")
        if deadline is None:
            self._socket.settimeout(0)
            return
        remaining_seconds = deadline.remaining_seconds()
        if remaining_seconds <= 0:
            raise TimeoutError
        self._socket.settimeout(remaining_seconds)
