"""Connections of one client, by address, and connections that are being made."""

from spark_kafka_source.net import Address, Connection, ConnectionSettings, Contacts, Dial


class Connections:
    """Connections of one thread's client. Another thread may call `close`."""

    def __init__(self, settings: ConnectionSettings, contacts: Contacts) -> None:
        self._settings = settings
        self._contacts = contacts
        # Of several connections to one address all but one are busy.
        self._open: dict[Address, list[Connection]] = {}
        self._dials: dict[Address, Dial] = {}
        self._is_closed = False

    def close(self) -> None:
        """Close all connections, also those being made and those still to come. Never raises."""
        self._is_closed = True
        for dial in list(self._dials.values()):
            dial.close()
        self.close_all()

    def close_all(self) -> None:
        """Close the connections that are made."""
        for connections in list(self._open.values()):
            for each in list(connections):
                each.close()

    def has(self, address: Address) -> bool:
        """Whether a request can be sent to this address at once."""
        return any(each.usable for each in self._open.get(address, ()))

    def has_room(self, address: Address, most_in_flight: int) -> bool:
        """Whether a request can go behind those in flight to this address. See `takes`."""
        return any(each.takes(most_in_flight) for each in self._open.get(address, ()))

    def usable_to(self, address: Address, most_in_flight: int = 1) -> Connection | None:
        """Return a connection for a request at once, or None.

        At most `most_in_flight` requests then await their answers on it, this request included.
        """
        found = None
        awaiting = []
        for each in self._open.pop(address, ()):
            if found is None and each.takes(most_in_flight):
                found = each
            elif each.is_busy and not each.closed:
                awaiting.append(each)
            else:
                each.close()
        self._open[address] = awaiting if found is None else [*awaiting, found]
        self._close_if_late()
        return found

    def dial(self, address: Address) -> Dial:
        """Begin to connect to the address, or return the attempt that an earlier request began."""
        dial = self._dials.get(address)
        if dial is not None and not dial.is_good:
            dial.close()
            dial = None
        if dial is None:
            dial = self._dials[address] = Dial.connecting(address, self._settings, self._contacts)
            self._close_if_late()
        return dial

    def renewing(self, connection: Connection) -> Dial:
        """Begin to authenticate anew on the same connection (KIP-368)."""
        # Set before the thread begins, so that no other request uses the connection.
        connection.is_renewing = True
        return Dial.renewing(connection, self._settings.request_timeout_ms)

    def dialed(self, dial: Dial) -> Connection:
        """Return the connection that a dial has made. Raises the dial's error if there is none."""
        if self._dials.get(dial.address) is dial:
            del self._dials[dial.address]
        connection = dial.connection()
        connections = self._open.setdefault(dial.address, [])
        if connection not in connections:
            connections.append(connection)
        self._close_if_late()
        return connection

    def _close_if_late(self) -> None:
        """Close all connections if another thread called `close` before it could see the newest."""
        if self._is_closed:
            self.close()
