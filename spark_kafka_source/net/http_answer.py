"""Reading answers of HTTP that end: by a deadline, and after so many bytes."""

import io
import socket

from spark_kafka_source.net.deadline import Deadline


class BoundedLink:
    """What the standard library takes for the socket that it asks by, and reads one answer from.

    A timeout of a socket starts anew with every byte; this deadline does not. Without an end to the
    bytes a chunk of -1 of them is read by the standard library for ever.
    """

    def __init__(self, link: socket.socket, most_bytes: int, deadline: Deadline) -> None:
        self._answer = _Answer(link, most_bytes, deadline)
        self._link, self._deadline = link, deadline

    @property
    def was_too_long(self) -> bool:
        """Whether the answer was cut after `most_bytes`."""
        return self._answer.left_bytes == 0

    def sendall(self, data: bytes) -> None:
        """Raises `OSError`."""
        set_timeout(self._link, self._deadline)
        self._link.sendall(data)

    def makefile(self, _: str) -> io.BufferedReader:
        """What the answer is read from."""
        return io.BufferedReader(self._answer)

    def close(self) -> None:
        """Nothing: whoever opened the socket closes it, once the answer has been read."""


class _Answer(io.RawIOBase):
    def __init__(self, link: socket.socket, most_bytes: int, deadline: Deadline) -> None:
        self._link, self.left_bytes, self._deadline = link, most_bytes, deadline

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # it has no other
        """Raises `OSError`."""
        if not self.left_bytes:  # To a socket, no bytes are as many as there is room for.
            return 0
        set_timeout(self._link, self._deadline)
        count = self._link.recv_into(buffer, min(len(buffer), self.left_bytes))
        self.left_bytes -= count
        return count


def set_timeout(link: socket.socket, deadline: Deadline) -> None:
    """What is done next with the socket is over by then, or fails. Raises `TimeoutError`."""
    remaining_seconds = deadline.remaining_seconds()
    if not remaining_seconds:  # To a socket, 0 is not to wait at all.
        raise TimeoutError("timed out")
    link.settimeout(remaining_seconds)
