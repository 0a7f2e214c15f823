"""A connected socket, plain or with TLS, whose waits end at a deadline."""

import contextlib
import socket
import ssl
import time

from spark_kafka_source.forks import OwnProcess
from spark_kafka_source.net.deadline import Deadline
from spark_kafka_source.net.incoming import Incoming
from spark_kafka_source.net.outgoing import Outgoing
from spark_kafka_source.net.security import TlsSettings
from spark_kafka_source.net.tls import start_tls

# Errors of a socket that only mean that the caller has to wait.
_NOT_YET = (
    TimeoutError,
    BlockingIOError,
    InterruptedError,
    ssl.SSLWantReadError,
    ssl.SSLWantWriteError,
)


class Link:
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
