"""Servers that are no brokers, and a proxy that counts connections."""

import contextlib
import select
import socket
import socketserver
import ssl
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_kafka_source.testing.properties import LOOPBACK

_CHUNK_BYTES = 1 << 16
_TIMEOUT_SECONDS = 30

Serve = Callable[[socket.socket], None]


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, serve: Serve) -> None:
        super().__init__((LOOPBACK, 0), socketserver.BaseRequestHandler)
        self.serve = serve
        self.accepted = 0

    def finish_request(self, request: object, client_address: object) -> None:
        assert isinstance(request, socket.socket)
        request.settimeout(_TIMEOUT_SECONDS)
        with contextlib.suppress(OSError):
            self.serve(request)

    def process_request(self, request: object, client_address: object) -> None:
        self.accepted += 1
        super().process_request(request, client_address)  # type: ignore[arg-type]  # a socket


class Counted:
    """An address, and the number of its connections."""

    def __init__(self, server: _Server) -> None:
        self._server = server

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self._server.server_address[1]}"

    @property
    def connections(self) -> int:
        return self._server.accepted


@contextmanager
def serving(serve: Serve) -> Iterator[Counted]:
    """Serve each connection in its own thread."""
    server = _Server(serve)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield Counted(server)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def counting(address: str) -> contextlib.AbstractContextManager[Counted]:
    """Run a proxy to the server at `address`."""
    host, port = address.split(":")

    def pass_on(client: socket.socket) -> None:
        with socket.create_connection((host, int(port)), _TIMEOUT_SECONDS) as there:
            other = {client: there, there: client}
            while True:
                for each in select.select(list(other), [], [], _TIMEOUT_SECONDS)[0]:
                    data = each.recv(_CHUNK_BYTES)
                    if not data:
                        return
                    other[each].sendall(data)

    return serving(pass_on)


def says(data: bytes, *, first: bool = False) -> Serve:
    """Send these bytes, after the client's first bytes or with `first` at once. Then close."""

    def serve(client: socket.socket) -> None:
        if not first:
            client.recv(_CHUNK_BYTES)
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        client.recv(_CHUNK_BYTES)

    return serve


def keeps_silent(client: socket.socket) -> None:
    """Read until the client closes."""
    while client.recv(_CHUNK_BYTES):
        pass


def old_tls(keystore: Path) -> Serve:
    """Speak only TLS 1.1, with the certificate and key of a PEM file."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.load_cert_chain(keystore)

    def serve(client: socket.socket) -> None:
        context.wrap_socket(client, server_side=True).close()

    return serve
