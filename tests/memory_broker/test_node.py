"""The port of a node of the in-memory broker while the node is stopped."""

import socket

import pytest

from tests.memory_broker import MemoryBroker


def test_a_stopped_node_keeps_its_port_and_refuses() -> None:
    with MemoryBroker() as broker:
        address = broker.address()
        met = (address.host, address.port)
        for _ in range(3):
            # The node closes this connection first, so the kernel keeps it on the node's port.
            with socket.create_connection(met) as client:
                broker.stop(0)
                assert client.recv(1) == b""
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(met)
            with pytest.raises(OSError, match="in use"):
                socket.create_server(met)
            broker.start(0)
            assert broker.address() == address
