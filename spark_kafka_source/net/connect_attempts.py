"""Sockets to the addresses of a host's name, tried in quick turns (RFC 8305)."""

import os
import selectors
import socket
import time
from collections import deque
from collections.abc import Mapping
from itertools import chain, zip_longest
from typing import cast

from spark_kafka_source.errors import ConnectionFailedError
from spark_kafka_source.net.address import Address
from spark_kafka_source.net.broker_history import BrokerHistory
from spark_kafka_source.net.deadline import Deadline

SocketAddress = tuple[str, int]
"""With IPv6 it has two more numbers."""

Target = tuple[int, int, int, str, SocketAddress]
"""Family, kind, protocol, canonical name and socket address, as the resolver gives them."""

# RFC 8305 recommends a quarter of a second between two attempts to connect.
_TURN_SECONDS = 0.25


class ConnectAttempts:
    """Attempts to connect to all addresses of one name, a quarter of a second apart.

    `next` returns the first connected socket, then the others: the first may lead to a broker that
    never answers. `close` gives up the attempts under way.
    """

    def __init__(
        self,
        address: Address,
        buffer_bytes: Mapping[int, int],
        history: BrokerHistory,
        deadline: Deadline,
    ) -> None:
        """Resolve the name. `buffer_bytes` are sizes by socket option; 0 and less are left out.

        Raises `ConnectionFailedError`.
        """
        self._address = address
        self._buffer_bytes = buffer_bytes
        self._history = history
        self._deadline = deadline
        targets = {target[4]: target for target in _resolve(address)}
        self._waiting = deque(targets[target] for target in history.best_first(targets))
        self._failures: list[str] = []
        self._selector = selectors.DefaultSelector()
        self._next_turn_seconds = 0.0

    @property
    def has_more(self) -> bool:
        """Whether there are addresses left to try or to wait for."""
        return bool(self._waiting or self._selector.get_map())

    def close(self) -> None:
        """Give up all attempts that are not connected yet."""
        for key in list(self._selector.get_map().values()):
            cast(socket.socket, key.fileobj).close()
        self._selector.close()

    def next(self) -> tuple[socket.socket, SocketAddress]:
        """Return the next connected socket and its address.

        Raises `ConnectionFailedError`, with the fault at each address, when none is left.
        """
        while self.has_more and not self._deadline.expired:
            if self._waiting and time.monotonic() >= self._next_turn_seconds:
                connected = self._begin(self._waiting.popleft())
            else:
                connected = self._connected()
            if connected is not None:
                return connected
        for key in self._selector.get_map().values():
            self._failed(key.data, "timed out")
        self._failures += [f"{target[4][0]}: timed out" for target in self._waiting]
        raise ConnectionFailedError(f"{self._address} ({', '.join(self._failures)})")

    def _begin(self, target: Target) -> tuple[socket.socket, SocketAddress] | None:
        """Start to connect. A refusal comes at once, and then the next address has its turn."""
        try:
            attempt = socket.socket(*target[:3])
        except OSError as error:  # For example if IPv6 is switched off.
            self._failed(target, error.strerror or str(error))
            return None
        try:
            _set_options(attempt, self._buffer_bytes)
            attempt.setblocking(False)
            attempt.connect(target[4])
        except BlockingIOError:
            self._selector.register(attempt, selectors.EVENT_WRITE, target)
            self._next_turn_seconds = time.monotonic() + _TURN_SECONDS
            return None
        except OSError as error:
            attempt.close()
            self._failed(target, error.strerror or str(error))
            return None
        return attempt, target[4]

    def _connected(self) -> tuple[socket.socket, SocketAddress] | None:
        """Wait for one of the attempts under way, until it is the next address's turn."""
        seconds = self._deadline.remaining_seconds()
        if self._waiting:
            seconds = min(seconds, max(0.0, self._next_turn_seconds - time.monotonic()))
        for key, _ in self._selector.select(seconds):
            attempt = cast(socket.socket, key.fileobj)
            self._selector.unregister(attempt)
            code = attempt.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if not code:
                return attempt, key.data[4]
            attempt.close()
            self._failed(key.data, os.strerror(code))
            self._next_turn_seconds = 0.0
        return None

    def _failed(self, target: Target, reason: str) -> None:
        self._history.failed(target[4])
        self._failures.append(f"{target[4][0]}: {reason}")


def _resolve(address: Address) -> list[Target]:
    """Return all addresses of the host's name, IPv6 and IPv4 in turns (RFC 8305)."""
    if not 0 < address.port < 65536:  # The system would use only its last 16 bits.
        raise ConnectionFailedError(f"{address} ({address.port} is not a port number)")
    try:
        resolved = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ConnectionFailedError(f"{address} (the name cannot be resolved: {error})") from error
    targets = cast("list[Target]", resolved)
    first = [target for target in targets if target[0] == targets[0][0]]
    others = [target for target in targets if target[0] != targets[0][0]]
    in_turns = chain.from_iterable(zip_longest(first, others))
    return [target for target in in_turns if target is not None]


def _set_options(attempt: socket.socket, buffer_bytes: Mapping[int, int]) -> None:
    attempt.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # Then the system notices a half-open connection, even with nothing in flight.
    attempt.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, size in buffer_bytes.items():
        if size > 0:
            attempt.setsockopt(socket.SOL_SOCKET, option, size)
