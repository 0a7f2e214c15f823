"""A local schema registry with given answers: good, bad, or none."""

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tools.ports import LOOPBACK


class Then(Enum):
    """Actions after the bytes of a reply."""

    NOTHING = auto()
    CLOSE = auto()
    HANG = auto()
    REPEAT = auto()
    """Repeat the bytes until the client closes."""


@dataclass
class Reply:
    """A status and JSON, or `raw` bytes for the whole reply."""

    status: int = 200
    json: object = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    then: Then = Then.NOTHING


def schema(text: str = '"long"', **fields: object) -> Reply:
    """Return a registry's answer with a schema."""
    return Reply(json={"schema": text, **fields})


def version(text: str, id: int, version: int = 1, **fields: object) -> Reply:
    """Return a registry's answer with a version of a subject."""
    return schema(text, id=id, version=version, subject="s", **fields)


def error(status: int, code: int | None = None, message: str = "no") -> Reply:
    """Return a registry's error answer."""
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
    """A registry with replies by path, in turn. The last one repeats. Other paths are not found."""

    __test__ = False

    url: str
    wanted: frozenset[str] = frozenset()
    """Allowed values of `Authorization`. The reply to another value denies and repeats it."""
    answer: "Callable[[Asked], Reply] | None" = None
    """What answers in place of the replies."""
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
    # An answer goes out as a whole. Otherwise the client waits for its second half.
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
        """Log nothing."""

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        asked = Asked(self.command, self.path, dict(self.headers), body)
        self.registry.asked.append(asked)
        if self.registry.answer is not None:
            reply = self.registry.answer(asked)
        else:
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
        """Ignore it: the client may close at any time."""


@contextmanager
def registry_server(context: ssl.SSLContext | None = None) -> Iterator[TestRegistry]:
    """Run a registry, with TLS if there is a context."""
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
            with contextlib.suppress(OSError):  # The socket may be closed already.
                socket.socket.shutdown(link, socket.SHUT_RDWR)
        server.shutdown()
        thread.join()
        server.server_close()
