"""HTTP answers: a deadline and a limit for their bytes, and their JSON."""

import io
import json
import socket
from typing import Any

from spark_kafka_source.net.deadline import Deadline


class BoundedSocket:
    """A socket for the standard library's HTTP client, for one request and its answer.

    A socket's timeout starts again with every byte; this deadline does not. Without a limit on
    bytes, the standard library would read a chunk of size -1 for ever.
    """

    def __init__(self, connected: socket.socket, most_bytes: int, deadline: Deadline) -> None:
        self._answer = _Answer(connected, most_bytes, deadline)
        self._socket, self._deadline = connected, deadline

    @property
    def was_too_long(self) -> bool:
        """Whether the answer was cut after `most_bytes`."""
        return self._answer.left_bytes == 0

    def sendall(self, data: bytes) -> None:
        """Send all bytes. Raises `OSError`."""
        set_timeout(self._socket, self._deadline)
        self._socket.sendall(data)

    def makefile(self, _: str) -> io.BufferedReader:
        """Return a file from which to read the answer."""
        return io.BufferedReader(self._answer)

    def close(self) -> None:
        """Do nothing: the owner of the socket closes it once the answer has been read."""


class _Answer(io.RawIOBase):
    def __init__(self, connected: socket.socket, most_bytes: int, deadline: Deadline) -> None:
        self._socket, self.left_bytes, self._deadline = connected, most_bytes, deadline

    def readable(self) -> bool:
        """Return True, for `io.BufferedReader`."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # it has no other
        """Read into the buffer. Raises `OSError`."""
        if not self.left_bytes:  # A socket would take 0 bytes for "as many as fit".
            return 0
        set_timeout(self._socket, self._deadline)
        count = self._socket.recv_into(buffer, min(len(buffer), self.left_bytes))
        self.left_bytes -= count
        return count


def set_timeout(connected: socket.socket, deadline: Deadline) -> None:
    """Let the next call on the socket end by the deadline.

    Raises `TimeoutError` if it has passed.
    """
    remaining_seconds = deadline.remaining_seconds()
    if not remaining_seconds:  # For a socket, 0 means not to wait at all.
        raise TimeoutError("timed out")
    connected.settimeout(remaining_seconds)


def json_object(body: bytes) -> dict[str, Any]:
    """Parse a JSON object. Return an empty dict for any other text."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
