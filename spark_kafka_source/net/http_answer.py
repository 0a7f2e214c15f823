"""HTTP answers with a deadline, and with a limit for their bytes."""

import io
import socket

from spark_kafka_source.net.deadline import Deadline


class BoundedLink:
    """A socket for the standard library's HTTP client, for one request and its answer.

    A socket's timeout starts again with every byte; this deadline does not. Without a limit on
    bytes, the standard library would read a chunk of size -1 for ever.
    """

    def __init__(self, link: socket.socket, most_bytes: int, deadline: Deadline) -> None:
        self._answer = _Answer(link, most_bytes, deadline)
        self._link, self._deadline = link, deadline

    @property
    def was_too_long(self) -> bool:
        """Whether the answer was cut after `most_bytes`."""
        return self._answer.left_bytes == 0

    def sendall(self, data: bytes) -> None:
        """Send all bytes. Raises `OSError`."""
        set_timeout(self._link, self._deadline)
        self._link.sendall(data)

    def makefile(self, _: str) -> io.BufferedReader:
        """Return a file from which to read the answer."""
        return io.BufferedReader(self._answer)

    def close(self) -> None:
        """Do nothing: the owner of the socket closes it once the answer has been read."""


class _Answer(io.RawIOBase):
    def __init__(self, link: socket.socket, most_bytes: int, deadline: Deadline) -> None:
        self._link, self.left_bytes, self._deadline = link, most_bytes, deadline

    def readable(self) -> bool:
        """Return True, for `io.BufferedReader`."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # it has no other
        """Read into the buffer. Raises `OSError`."""
        if not self.left_bytes:  # A socket would take 0 bytes for "as many as fit".
            return 0
        set_timeout(self._link, self._deadline)
        count = self._link.recv_into(buffer, min(len(buffer), self.left_bytes))
        self.left_bytes -= count
        return count


def set_timeout(link: socket.socket, deadline: Deadline) -> None:
    """Let the next call on the socket end by the deadline.

    Raises `TimeoutError` if it has passed.
    """
    remaining_seconds = deadline.remaining_seconds()
    if not remaining_seconds:  # For a socket, 0 means not to wait at all.
        raise TimeoutError("timed out")
    link.settimeout(remaining_seconds)
