"""Free ports for servers on this machine."""

import fcntl
import os
import socket
from functools import cache

from spark_kafka_source.chance import CHANCE
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.testing.jars import cache_directory
from spark_kafka_source.testing.properties import LOOPBACK

# Below the ports of outgoing connections: such a connection could take the port of a broker that
# restarts.
_PORTS = range(12_000, 32_000)
_TOO_HIGH = 1 << 16
_MOST_TAKEN = 2_000

_taken: dict[int, None] = {}
"""The ports that this process has taken, in their order. The first of too many are given back."""


def free_ports(count: int) -> list[int]:
    """Return `count` different loopback ports that no server listens at.

    They are taken for this process: no process of this user gets one of them while this one runs.
    A server listens at its port only after a while, and not while it restarts.
    """
    found: list[int] = []
    for port in CHANCE.sample(_PORTS, len(_PORTS)):
        if len(found) == count:
            break
        if _is_free(port) and _take(port):
            found.append(port)
    return found


def check_free(port: int) -> None:
    """Raise `ConfigurationError` if no server can listen at this loopback port."""
    if not 0 < port < _TOO_HIGH:
        expected = f"Give a number from 1 to {_TOO_HIGH - 1}"
        raise ConfigurationError("ports", "{} is no port", expected, port)
    with socket.socket() as candidate:
        # As Java does it: connections to a broker that ended a moment ago do no harm.
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind((LOOPBACK, port))
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            text = f"{{}} cannot be had: {reason}"
            raise ConfigurationError("ports", text, "Give another one", port) from error


def _is_free(port: int) -> bool:
    with socket.socket() as candidate:
        try:
            candidate.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def _take(port: int) -> bool:
    """Take a port for this process. Return False if a process has it."""
    if port in _taken or not _lock(port, fcntl.LOCK_EX | fcntl.LOCK_NB):
        return False
    _taken[port] = None
    while len(_taken) > _MOST_TAKEN:
        first = next(iter(_taken))
        del _taken[first]
        _lock(first, fcntl.LOCK_UN)
    return True


def _lock(port: int, how: int) -> bool:
    """Lock or unlock a port. Return False if another process has it.

    Where there are no locks, all ports can be had.
    """
    book = _book()
    if book is not None:
        try:
            fcntl.lockf(book, how, 1, port)
        except (BlockingIOError, PermissionError):
            return False
        except OSError:  # As on a network drive without locks.
            return True
    return True


@cache
def _book() -> int | None:
    """Open the file in which each process locks its ports, a byte for each. None: there is none.

    The locks end with the process. A fork has none of its parent's.
    """
    folder = cache_directory()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(folder / "ports", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None
