"""A schema registry on this machine that answers as it is told: well, badly, or never."""

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.net.ports import LOOPBACK


class Then(Enum):
    """What comes after the bytes of a reply."""

    NOTHING = auto()
    CLOSE = auto()
    HANG = auto()
    REPEAT = auto()
    """The same bytes, until the other side has had enough."""


@dataclass
class Reply:
    """A status and JSON; or `raw` bytes, all that is sent."""

    status: int = 200
    json: object = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    then: Then = Then.NOTHING


def schema(text: str = '"long"', **fields: object) -> Reply:
    """A schema as a registry has it."""
    return Reply(json={"schema": text, **fields})


def version(text: str, id: int, version: int = 1, **fields: object) -> Reply:
    """A version of a subject."""
    return schema(text, id=id, version=version, subject="s", **fields)


def error(status: int, code: int | None = None, message: str = "no") -> Reply:
    """A registry's own error."""
    return Reply(status, {"error_code": code or status, "message": message})


@dataclass
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class TestRegistry:
    """Each path has its replies in turn, the last one again and again; others are not found."""

    __test__ = False

    url: str
    wanted: frozenset[str] = frozenset()
    """One of these is to be said as `Authorization`; whatever else is, is denied and repeated."""
    replies: dict[str, list[Reply]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    links: list[socket.socket] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def on(self, path: str, *replies: Reply) -> None:
        self.replies[path] = list(replies)

    def paths(self) -> list[str]:
        return [each.path for each in self.asked]

    def reply(self, path: str, authorization: str = "") -> Reply:
        if self.wanted and authorization not in self.wanted:
            return error(401, 40101, f"{authorization!r} is nobody here")
        known = self.replies.get(path) or self.replies.get("*")
        if known is None:
            return error(404, 40403, "Schema not found")
        return known.pop(0) if len(known) > 1 else known[0]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # An answer goes out as a whole, or the other side waits for its second half.
    wbufsize = -1
    disable_nagle_algorithm = True
    registry: TestRegistry

    def setup(self) -> None:
        super().setup()
        self.registry.links.append(self.connection)

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        asked = Asked(self.command, self.path, dict(self.headers), body)
        self.registry.asked.append(asked)
        reply = self.registry.reply(self.path, self.headers.get("Authorization", ""))
        if reply.raw is None:
            self._send(reply.status, reply.headers, json.dumps(reply.json).encode())
        else:
            self.wfile.write(reply.raw)
        self.wfile.flush()
        self.close_connection = self.close_connection or reply.then is not Then.NOTHING
        if reply.then is Then.HANG:
            self.registry.closing.wait(60)
        while reply.then is Then.REPEAT and not self.registry.closing.is_set():
            self.wfile.write(reply.raw or b"\0")

    def _send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True
    context: ssl.SSLContext | None = None

    def finish_request(self, request: Any, address: Any) -> None:
        if self.context is not None:
            request.settimeout(10)
            with self.context.wrap_socket(request, server_side=True) as secured:
                super().finish_request(secured, address)
            return
        super().finish_request(request, address)

    def handle_error(self, request: object, address: object) -> None:
        """The other side went away, as it may."""


@contextmanager
def registry_server(context: ssl.SSLContext | None = None) -> Iterator[TestRegistry]:
    """One, with TLS where a context is given."""
    handler = type("Handler", (_Handler,), {})
    server = _Server((LOOPBACK, 0), handler)
    server.context = context
    scheme = "https" if context else "http"
    known = TestRegistry(f"{scheme}://{LOOPBACK}:{server.server_port}")
    handler.registry = known  # type: ignore[attr-defined]  # its class is made here
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield known
    finally:
        known.closing.set()
        for link in known.links:
            with contextlib.suppress(OSError):  # It may be closed already.
                socket.socket.shutdown(link, socket.SHUT_RDWR)
        server.shutdown()
        thread.join()
        server.server_close()
