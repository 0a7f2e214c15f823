"""The connections of one client, by address, and those that are on their way."""

from spark_kafka_source.net import Address, Connection, ConnectionSettings, Contacts, Dial


class Connections:
    """Belongs to one thread; `close` may be called from another."""

    def __init__(self, settings: ConnectionSettings, contacts: Contacts) -> None:
        self._settings = settings
        self._contacts = contacts
        # Of several to one address all but one are busy.
        self._open: dict[Address, list[Connection]] = {}
        self._dials: dict[Address, Dial] = {}
        self._is_closed = False

    def close(self) -> None:
        """Close all, those on their way too, and those that are still to come. Never raises."""
        self._is_closed = True
        for dial in list(self._dials.values()):
            dial.close()
        self.close_all()

    def close_all(self) -> None:
        """Close those that there are."""
        for connections in list(self._open.values()):
            for each in list(connections):
                each.close()

    def has(self, address: Address) -> bool:
        """Whether a request could be sent to this address at once."""
        return any(each.usable for each in self._open.get(address, ()))

    def has_room(self, address: Address, most_in_flight: int) -> bool:
        """Whether a request could go to this address behind those in flight; see `takes`."""
        return any(each.takes(most_in_flight) for each in self._open.get(address, ()))

    def usable_to(self, address: Address, most_in_flight: int = 1) -> Connection | None:
        """Return the connection that a request can be sent on now, if there is one.

        With it no more than `most_in_flight` await their answers there.
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
        """Return a connection on its way, perhaps since an earlier request gave up on it."""
        dial = self._dials.get(address)
        if dial is not None and not dial.is_good:
            dial.close()
            dial = None
        if dial is None:
            dial = self._dials[address] = Dial.connecting(address, self._settings, self._contacts)
            self._close_if_late()
        return dial

    def renewing(self, connection: Connection) -> Dial:
        """Return the same connection, on its way to authenticate anew (KIP-368)."""
        connection.is_renewing = True  # Before the thread begins: nobody else is to use it.
        return Dial.renewing(connection, self._settings.request_timeout_ms)

    def dialed(self, dial: Dial) -> Connection:
        """Return the connection that a dial has led to. Raises why there is none."""
        if self._dials.get(dial.address) is dial:
            del self._dials[dial.address]
        connection = dial.connection()
        connections = self._open.setdefault(dial.address, [])
        if connection not in connections:
            connections.append(connection)
        self._close_if_late()
        return connection

    def _close_if_late(self) -> None:
        """`close` may have come from another thread before these could be seen."""
        if self._is_closed:
            self.close()
