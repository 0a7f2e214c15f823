"""Sockets without a broker: a port that refuses, a port that drops, a black hole."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from spark_kafka_source.net import Address

LOOPBACK = "127.0.0.1"


@contextmanager
def refused_port() -> Iterator[int]:
    """Return a port that refuses connections. It is bound, so that nobody else can listen on it."""
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        yield taken.getsockname()[1]


@contextmanager
def black_hole() -> Iterator[Address]:
    """Return an address that accepts connections and data, and never answers."""
    with socket.create_server((LOOPBACK, 0)) as listening:
        yield Address(LOOPBACK, listening.getsockname()[1])


@contextmanager
def dropping_port() -> Iterator[int]:
    """Return a port that drops attempts to connect: its queue of connections is full."""
    with ExitStack() as opened:
        listening = opened.enter_context(socket.socket())
        listening.bind((LOOPBACK, 0))
        listening.listen(0)
        for _ in range(4):
            filling = opened.enter_context(socket.socket())
            filling.setblocking(False)
            filling.connect_ex(listening.getsockname())
        yield listening.getsockname()[1]
