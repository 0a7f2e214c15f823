"""A proxy before a broker that cuts connections at Produce requests, or is silent for a time."""

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from random import Random

from spark_kafka_source.testing.properties import LOOPBACK
from tests.security.servers import serving

_PRODUCE = 0
_LENGTH = struct.Struct(">i")
_REQUEST = struct.Struct(">hhi")
_CONNECT_SECONDS = 5
_LONGEST_PAUSE_SECONDS = 0.01


class Gate:
    """A proxy from its address to a broker's port. It hangs up if no broker listens there.

    `cut_rate` is the share of Produce requests at which it cuts the connection: in the midst of the
    request, after it, or before the client gets the broker's answer.
    """

    def __init__(self, chance: Random) -> None:
        self.target_port = 0
        self.cut_rate = 0.0
        self.cuts = 0
        self.delay_seconds = 0.0
        """The time that each frame waits, one after another on each connection."""
        self._chance = chance
        self._is_open = threading.Event()
        self._is_open.set()

    @contextmanager
    def serving(self) -> Iterator[int]:
        """Yield its port, for the time of the context."""
        with serving(self._pass_on) as served:
            yield int(served.address.split(":")[1])

    def _pass_on(self, client: socket.socket) -> None:
        with socket.create_connection((LOOPBACK, self.target_port), _CONNECT_SECONDS) as broker:
            line = _Line(self, client, broker)
            answers = threading.Thread(target=line.pass_answers, daemon=True)
            answers.start()
            line.pass_requests()
            answers.join()

    def hold(self, seconds: float) -> None:
        """Pass nothing on for so long. Connections stay, and what was sent arrives after that."""
        self._is_open.clear()
        opening = threading.Timer(seconds, self._is_open.set)
        opening.daemon = True
        opening.start()

    def wait_until_open(self) -> None:
        """Wait until frames are passed on, and for the gate's delay."""
        self._is_open.wait()
        if self.delay_seconds:
            time.sleep(self.delay_seconds)

    def takes(self) -> str:
        """Return the fate of a Produce request: passed on, or the place of the cut."""
        if self._chance.random() >= self.cut_rate:
            return "passed on"
        self.cuts += 1
        return self._chance.choice(["in its midst", "after it", "after its answer"])

    def pause(self) -> None:
        """Wait a little: the broker may begin with the data that it has, or not."""
        threading.Event().wait(self._chance.uniform(0, _LONGEST_PAUSE_SECONDS))


class _Line:
    """One connection, frame by frame."""

    def __init__(self, gate: Gate, client: socket.socket, broker: socket.socket) -> None:
        self._gate, self._client, self._broker = gate, client, broker
        self._doomed: int | None = None
        """Correlation id of the request whose answer is not passed on."""
        for each in (client, broker):
            each.settimeout(None)  # Brokers that are stopped take their time.

    def pass_requests(self) -> None:
        with suppress(OSError):
            for frame in _frames(self._client):
                self._gate.wait_until_open()
                key, _, correlation_id = _REQUEST.unpack_from(frame, _LENGTH.size)
                fate = self._gate.takes() if key == _PRODUCE else "passed on"
                if fate == "after its answer":
                    self._doomed = correlation_id
                if fate == "in its midst":
                    self._broker.sendall(frame[: len(frame) // 2])
                else:
                    self._broker.sendall(frame)
                if fate in {"in its midst", "after it"}:
                    self._gate.pause()
                    break
        self._hang_up()

    def pass_answers(self) -> None:
        with suppress(OSError):
            for frame in _frames(self._broker):
                self._gate.wait_until_open()
                (correlation_id,) = _LENGTH.unpack_from(frame, _LENGTH.size)
                if correlation_id == self._doomed:
                    break
                self._client.sendall(frame)
        self._hang_up()

    def _hang_up(self) -> None:
        for each in (self._client, self._broker):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def _frames(peer: socket.socket) -> Iterator[bytes]:
    """Yield the frames of a client or a broker, with their lengths, until it hangs up."""
    with peer.makefile("rb") as stream:
        while len(head := stream.read(_LENGTH.size)) == _LENGTH.size:
            (length,) = _LENGTH.unpack(head)
            body = stream.read(length)
            if len(body) < length:
                return
            yield head + body
