"""A local server that answers as AWS Glue does, and the environment in which it is asked."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any
from uuid import UUID

import pytest

from tools.ports import LOOPBACK

ID = UUID("01234567-89ab-cdef-0123-456789abcdef")
GONE = UUID(int=7)
LONG = '"long"'


def version(id: UUID = ID, text: str = LONG, **fields: object) -> dict[str, Any]:
    found = {"SchemaVersionId": str(id), "SchemaDefinition": text, "DataFormat": "AVRO"}
    return {**found, "VersionNumber": 3, "Status": "AVAILABLE", **fields}


class Glue:
    """Versions by what is asked for: a UUID, or a name and a number. Or one `error` for all.

    The errors of `first` come before.
    """

    def __init__(self) -> None:
        self.versions: dict[str, dict[str, Any]] = {}
        self.asked: list[dict[str, Any]] = []
        self.error: tuple[int, str] | None = None
        self.first: list[tuple[int, str]] = []
        self.speaks = Event()
        """It answers nothing until then."""
        self.speaks.set()

    def answer(self, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.asked.append(asked)
        self.speaks.wait(300)
        named = asked.get("SchemaVersionId") or "/".join(asked["SchemaId"].values())
        if self.error is None and not self.first and named in self.versions:
            return 200, self.versions[named]
        first = self.first.pop(0) if self.first else None
        status, code = first or self.error or (400, "EntityNotFoundException")
        return status, {"__type": code, "Message": "no"}


@pytest.fixture
def glue(monkeypatch: pytest.MonkeyPatch) -> Iterator[Glue]:
    known = Glue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert self.headers["X-Amz-Target"] == "AWSGlue.GetSchemaVersion"
            assert "/eu-test-1/glue/aws4_request" in self.headers["Authorization"]
            status, answer = known.answer(asked)
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, address: object) -> None:
            """Ignore it: the client may close at any time."""

    server = Server((LOOPBACK, 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    for name, value in {
        "AWS_ENDPOINT_URL_GLUE": f"http://{LOOPBACK}:{server.server_port}",
        "AWS_ACCESS_KEY_ID": "me",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "eu-test-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/nowhere",
        "AWS_SHARED_CREDENTIALS_FILE": "/nowhere",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    yield known
    known.speaks.set()
    server.shutdown()
    thread.join()
    server.server_close()
