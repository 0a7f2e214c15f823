"""Free ports for servers on this machine."""

import os
import socket

from spark_kafka_source.chance import CHANCE
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.testing.properties import LOOPBACK

# Below the ports of outgoing connections: such a connection could take the port of a broker that
# restarts.
_PORTS = range(12_000, 32_000)
_TOO_HIGH = 1 << 16


def free_ports(count: int) -> list[int]:
    """Return `count` different loopback ports that no server listens at."""
    found: list[int] = []
    for port in CHANCE.sample(_PORTS, len(_PORTS)):
        if len(found) == count:
            break
        if _is_free(port):
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
