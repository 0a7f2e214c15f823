"""Connections of one client, by address, and connections that are being made."""

import threading
import time

from spark_kafka_source.client.cluster import Cluster
from spark_kafka_source.client.traffic import Traffic
from spark_kafka_source.errors import RebootstrapError
from spark_kafka_source.net import Address, BrokerHistory, Connection, ConnectionSettings, Dial
from spark_kafka_source.protocol import Response

# A broker answers nothing else on a connection while it holds a fetch back, so a client has two to
# most brokers. More are rare: each one more means a question that waits for its answer.
_MOST_IDLE = 2


class Connections:
    """Connections of one thread's client. Another thread may call `close`.

    `requests_sent` counts the requests on all of them.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        history: BrokerHistory,
        traffic: Traffic | None = None,
        *,
        checked_by: Cluster | None = None,
    ) -> None:
        """Create it. Brokers check whether connections are meant for them, by this metadata."""
        self.history = history
        self.traffic = traffic
        self._checked_by = checked_by
        self.requests_sent = 0
        self.closing = threading.Event()
        """Set once another request could not be sent any more."""
        self._settings = settings
        # The one that was used last is at the end.
        self._open: dict[Address, list[Connection]] = {}
        self._shared: dict[Address, Connection] = {}
        """The connection on which requests last went out behind each other."""
        self._dials: dict[Address, Dial] = {}
        self._throttled_until_seconds: dict[Address, float] = {}

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self.closing.is_set()

    def close(self) -> None:
        """Close all connections, also the ones being made and the later ones. Never raises."""
        self.closing.set()
        for dial in list(self._dials.values()):
            dial.close()
        self.close_all()

    def close_all(self) -> None:
        """Close the connections that are made."""
        for connections in list(self._open.values()):
            for connection in list(connections):
                connection.close()

    def has(self, address: Address) -> bool:
        """Whether a request can be sent to this address at once."""
        return any(connection.usable for connection in self._open.get(address, ()))

    def is_open(self, address: Address) -> bool:
        """Whether there is a connection to this address, perhaps with requests in flight."""
        return any(not connection.closed for connection in self._open.get(address, ()))

    def has_shared(self, address: Address) -> bool:
        """Whether the connection is open on which requests last went out behind each other."""
        shared = self._shared.get(address)
        return shared is not None and (shared.usable or shared.is_busy)

    def has_room(self, address: Address, most_in_flight: int) -> bool:
        """Whether a request can go behind the ones in flight to this address; see `may_send`."""
        shared = self._shared.get(address)
        if shared is not None and shared.in_flight:  # Requests that keep their order await answers.
            return shared.takes(most_in_flight)
        return self.has(address)

    def usable_to(self, address: Address, most_in_flight: int = 1) -> Connection | None:
        """Return a connection for a request at once, or None. See `may_send`.

        Close connections that are of no use any more, and all but two idle ones.
        """
        chosen = None
        kept: list[Connection] = []
        idle = 0
        opened = sorted(self._open.pop(address, []), key=self._is_shared)
        for connection in reversed(opened):
            if chosen is None and self._takes(connection, most_in_flight):
                chosen = connection
            elif connection.is_busy and not connection.closed:
                kept.append(connection)
            elif idle < _MOST_IDLE and connection.usable:
                kept.append(connection)
                idle += 1
            else:
                connection.close()
        kept.reverse()
        self._open[address] = kept if chosen is None else [*kept, chosen]
        self._close_if_late()
        return chosen

    def may_send(self, connection: Connection, most_in_flight: int) -> bool:
        """Whether a request may go out on this connection now. If so, it has to follow at once.

        With `most_in_flight` of 1 the request has the connection to itself. A connection on which a
        request without an answer went out is not for it. With more the request goes behind others
        of its kind, on the one connection that has them, since they keep their order.
        """
        if not self._takes(connection, most_in_flight):
            return False
        if most_in_flight > 1:
            self._shared[connection.address] = connection
        elif self._is_shared(connection):
            del self._shared[connection.address]
        return True

    def _takes(self, connection: Connection, most_in_flight: int) -> bool:
        if most_in_flight == 1:
            return connection.takes(1) and not connection.is_one_way
        return connection.takes(most_in_flight if self._is_shared(connection) else 1)

    def _is_shared(self, connection: Connection) -> bool:
        return self._shared.get(connection.address) is connection

    def heard(self, address: Address, response: Response | None, seconds: float) -> None:
        """Note an answer, how long it took, and how long its broker throttles us (KIP-219)."""
        self.history.answered(address)
        if self.traffic is not None and response is not None:
            self.traffic.answered(address, seconds)
        throttle_time_ms = getattr(response, "throttle_time_ms", 0)
        if throttle_time_ms > 0:
            self._throttled_until_seconds[address] = time.monotonic() + throttle_time_ms / 1000

    def throttled_seconds(self, address: Address) -> float:
        """Return how long the client must still leave a broker alone (KIP-219); at least 0."""
        until_seconds = self._throttled_until_seconds.get(address, 0.0)
        return max(until_seconds - time.monotonic(), 0.0)

    def dial(self, address: Address) -> Dial:
        """Begin to connect to the address, or return the attempt that an earlier request began."""
        dial = self._dials.get(address)
        if dial is not None and not dial.is_good:
            dial.close()
            dial = None
        if dial is None:
            identity = None if self._checked_by is None else self._checked_by.identity(address)
            dial = self._dials[address] = Dial.connecting(
                address, self._settings, self.history, identity
            )
            self._close_if_late()
        return dial

    def renewing(self, connection: Connection) -> Dial:
        """Begin to authenticate anew on the same connection (KIP-368)."""
        # Set before the thread begins, so that no other request uses the connection.
        connection.is_renewing = True
        return Dial.renewing(connection, self._settings.request_timeout_ms)

    def dialed(self, dial: Dial) -> Connection:
        """Return the connection that a dial has made. Raises the dial's error if there is none.

        A `RebootstrapError` makes the metadata forget all brokers: the next try asks the bootstrap
        addresses.
        """
        if self._dials.get(dial.address) is dial:
            del self._dials[dial.address]
        try:
            connection = dial.connection()
        except RebootstrapError:
            if self._checked_by is not None:
                self._checked_by.forget_brokers()
            raise
        connections = self._open.setdefault(dial.address, [])
        if connection not in connections:
            connections.append(connection)
            if self.traffic is not None:
                self.traffic.connected()
        self._close_if_late()
        return connection

    def _close_if_late(self) -> None:
        """Close all connections if another thread called `close` before it could see the newest."""
        if self.is_closed:
            self.close()
