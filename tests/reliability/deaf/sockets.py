"""Addresses on the loopback where no broker is, and nothing refuses either."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from spark_kafka_source.testing.properties import LOOPBACK

_FILLS_THE_BACKLOG = 4
_PROOF_SECONDS = 0.3


@contextmanager
def dropping() -> Iterator[str]:
    """An address that drops connection attempts, as behind a firewall.

    Linux drops what comes to a socket whose queue of connections to accept is full.
    """
    with ExitStack() as opened:
        listening = opened.enter_context(socket.socket())
        listening.bind((LOOPBACK, 0))
        listening.listen(0)
        where = listening.getsockname()
        for _ in range(_FILLS_THE_BACKLOG):
            filling = opened.enter_context(socket.socket())
            filling.setblocking(False)
            filling.connect_ex(where)
        _assert_drops(where)
        yield f"{LOOPBACK}:{where[1]}"


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
    """An address that takes connections and all that is sent to it, and never answers."""
    with socket.create_server((LOOPBACK, 0), backlog=1024) as listening:
        yield f"{LOOPBACK}:{listening.getsockname()[1]}"
