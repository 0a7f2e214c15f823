"""Addresses on the loopback without a broker, which do not refuse connections either."""

import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from spark_kafka_source.testing.properties import LOOPBACK
from tests.security.servers import serving
from tools.ports import dropping_port

_PROOF_SECONDS = 0.3
_SELECT_SECONDS = 5.0
_CHUNK_BYTES = 1 << 16


@contextmanager
def dropping() -> Iterator[str]:
    """Yield an address that drops connection attempts, as behind a firewall.

    Linux drops attempts to connect to a socket with a full accept queue.
    """
    with dropping_port() as port:
        _assert_drops((LOOPBACK, port))
        yield f"{LOOPBACK}:{port}"


def _assert_drops(where: tuple[str, int]) -> None:
    with socket.socket() as late:
        late.settimeout(_PROOF_SECONDS)
        try:
            late.connect(where)
        except TimeoutError:
            return
    raise AssertionError(f"{where} takes connections")


@contextmanager
def silent() -> Iterator[str]:
    """Yield an address that takes connections and all data, and never answers."""
    with socket.create_server((LOOPBACK, 0), backlog=1024) as listening:
        yield f"{LOOPBACK}:{listening.getsockname()[1]}"


class Line:
    """A line from its address to a port that may change. It hangs up if the port is closed.

    After `cut` the existing connections lead nowhere, and neither end is told. They are half open,
    as if a firewall had forgotten them.
    """

    def __init__(self) -> None:
        self.target_port = 0
        self._cuts = 0

    def cut(self) -> None:
        """Swallow all data on the existing connections from now on."""
        self._cuts += 1

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Yield its address, for the time of the context."""
        with serving(self._pass_on) as served:
            yield served.address

    def _pass_on(self, client: socket.socket) -> None:
        made_before = self._cuts
        with socket.create_connection((LOOPBACK, self.target_port)) as there:
            other = {client: there, there: client}
            while True:
                for each in select.select(list(other), [], [], _SELECT_SECONDS)[0]:
                    data = each.recv(_CHUNK_BYTES)
                    if not data:
                        return
                    if made_before == self._cuts:
                        other[each].sendall(data)
