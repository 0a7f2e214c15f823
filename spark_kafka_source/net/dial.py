"""Connections made in the background, so that no thread has to wait for them.

The look-up of a name, the connection, TLS and a login may each take many seconds, and some of these
steps cannot be interrupted. A dial takes them in its own thread. Its caller waits for several dials
at once, or does something else meanwhile.
"""

import threading
from collections.abc import Callable
from typing import cast

from spark_kafka_source.errors import ClosedError, RemoteError
from spark_kafka_source.net.address import Address, Identity
from spark_kafka_source.net.broker_history import BrokerHistory
from spark_kafka_source.net.connection import Connection
from spark_kafka_source.net.connection_settings import ConnectionSettings
from spark_kafka_source.net.deadline import Deadline
from spark_kafka_source.net.readable import Wakeup
from spark_kafka_source.net.threads import start
from spark_kafka_source.spelling import daemon

Opened = Callable[[Connection], None]


class Dial:
    """A connection to one broker while it is made.

    One thread uses it; any thread may call `close`.
    """

    def __init__(
        self, address: Address, make: Callable[[Opened], Connection], pause_seconds: float = 0.0
    ) -> None:
        """Begin after a pause; see `connecting` and `renewing`."""
        self.address = address
        self._make = make
        self._pause_seconds = pause_seconds
        self._closing = threading.Event()
        self._done = Wakeup()
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._is_closed = False
        self._result: Connection | None = None
        self._error: BaseException | None = None
        name = f"connecting to {address}"
        if not start(daemon(self._run, name)):
            self._run()

    @classmethod
    def connecting(
        cls,
        address: Address,
        settings: ConnectionSettings,
        history: BrokerHistory,
        identity: Identity | None = None,
    ) -> "Dial":
        """Connect within `socket.connection.setup.timeout.ms`; see `Connection.connect`.

        After a connection to the broker that could not be made, or was lost, first wait for a pause
        by `reconnect.backoff.ms`.
        """
        timeout_ms = settings.socket_connection_setup_timeout_ms

        def make(opened: Opened) -> Connection:
            deadline = Deadline.after_ms(timeout_ms)
            try:
                made = Connection.connect(
                    address, settings, deadline, opened, history=history, identity=identity
                )
            except RemoteError:
                history.lost(address, settings.reconnects)
                raise
            history.connected(address)
            return made

        return cls(address, make, history.pause_seconds(address))

    @classmethod
    def renewing(cls, connection: Connection, timeout_ms: int) -> "Dial":
        """Authenticate again on a connection; see `Connection.renew`."""

        def make(opened: Opened) -> Connection:
            opened(connection)
            connection.renew(Deadline.after_ms(timeout_ms))
            return connection

        return cls(connection.address, make)

    @property
    def is_done(self) -> bool:
        """Whether there is a connection, or an error in its place."""
        return self._result is not None or self._error is not None

    @property
    def is_good(self) -> bool:
        """Whether the dial is not done yet, or its connection is usable."""
        return self._error is None and (self._result is None or self._result.usable)

    @property
    def is_heard(self) -> bool:
        """Whether the broker has answered anything yet."""
        return self._connection is not None and self._connection.is_heard

    def connection(self) -> Connection:
        """Return the connection, once `is_done`. Raises the errors of `Connection.connect`."""
        if not self.is_done:
            raise ClosedError("the connection is not made yet")
        # An error refers to this dial. Unless closed here, two sockets would stay open until the
        # next garbage collection.
        with self._lock:
            self._done.close()
        if self._error is not None:
            raise self._error
        return cast(Connection, self._result)

    def fileno(self) -> int:
        """Return a descriptor: readable once the dial is done or closed, -1 after `connection`."""
        return self._done.fileno()

    def close(self) -> None:
        """Give up: close the connection now, or as soon as it is made. Never raises."""
        self._closing.set()
        with self._lock:
            self._is_closed = True
            if self._connection is not None:
                self._connection.close()
            self._done.wake()

    def _opened(self, connection: Connection) -> None:
        with self._lock:
            if self._is_closed:
                raise ClosedError("the client is closed")
            self._connection = connection

    def _run(self) -> None:
        try:
            if self._closing.wait(self._pause_seconds):
                raise ClosedError("the client is closed")
            self._result = self._make(self._opened)
        except BaseException as error:
            self._error = error
        if self._is_closed and self._result is not None:
            self._result.close()
        with self._lock:
            self._done.wake()
