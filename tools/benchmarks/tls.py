"""What TLS costs a reader: processor time for each byte that is received, without and with TLS.

    python -m tools.benchmarks.tls [--megabytes 512] [--runs 5]

Another process sends over the loopback. The reader receives as the package does: into one buffer,
up to a megabyte at a time.
"""

import argparse
import multiprocessing
import socket
import ssl
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

from tools.certificates import authority, certified_by
from tools.ports import LOOPBACK

_MIB = 1 << 20


def main() -> None:
    given = _arguments()
    ca = authority()
    with tempfile.TemporaryDirectory() as directory:
        server = certified_by(ca, LOOPBACK).server_context(Path(directory))
        client = ssl.create_default_context(cadata=ca.certificate_pem)
        ways = {"without TLS": (None, None), "with TLS": (server, client)}
        found: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(given.runs):
            for name, (sending, receiving) in ways.items():
                found[name].append(measure(given.megabytes, sending, receiving))
    print(f"OpenSSL: {ssl.OPENSSL_VERSION}")
    for name, each in found.items():
        print(
            f"{name:12} {statistics.median(each):6.3f} ns a byte ({min(each):.3f}-{max(each):.3f})"
        )


def measure(
    megabytes: int, sending: ssl.SSLContext | None, receiving: ssl.SSLContext | None
) -> float:
    """Return the nanoseconds of processor time for each byte received."""
    with closing(socket.create_server((LOOPBACK, 0))) as listener:
        # The context cannot be pickled, so the process must be forked.
        sender = multiprocessing.get_context("fork").Process(
            target=_send, args=(listener, megabytes, sending)
        )
        sender.start()
        plain = socket.create_connection(listener.getsockname())
        link = receiving.wrap_socket(plain, server_hostname=LOOPBACK) if receiving else plain
        with closing(link):
            return _receive(link, megabytes)


def _receive(link: socket.socket, megabytes: int) -> float:
    room = memoryview(bytearray(_MIB))
    left = megabytes * _MIB
    began_seconds = time.thread_time()
    while left:
        left -= link.recv_into(room[: min(left, _MIB)])
    return (time.thread_time() - began_seconds) * 1e9 / (megabytes * _MIB)


def _send(listener: socket.socket, megabytes: int, context: ssl.SSLContext | None) -> None:
    plain, _ = listener.accept()
    link = context.wrap_socket(plain, server_side=True) if context else plain
    with closing(link):
        for _ in range(megabytes):
            link.sendall(bytes(_MIB))
        link.recv(1)  # Until the reader has all.


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=512)
    parser.add_argument("--runs", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
