"""Free ports for servers on this machine."""

import socket

from spark_kafka_source.chance import CHANCE
from spark_kafka_source.testing.properties import LOOPBACK

# Below the ports of outgoing connections: such a connection could take the port of a broker that
# restarts.
_PORTS = range(12_000, 32_000)


def free_ports(count: int) -> list[int]:
    """Return `count` different loopback ports that no server listens at."""
    found: list[int] = []
    for port in CHANCE.sample(_PORTS, len(_PORTS)):
        if len(found) == count:
            break
        if _is_free(port):
            found.append(port)
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as candidate:
        try:
            candidate.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
