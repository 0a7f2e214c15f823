"""A local token endpoint with given answers."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Answer:
    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


def token_answer(**fields: object) -> Answer:
    return Answer(json.dumps({"access_token": "token", "expires_in": 600} | fields).encode())


@dataclass
class TokenServer:
    """Answer each request with the next of `answers`, and repeat the last one."""

    url: str
    answers: list[Answer] = field(default_factory=lambda: [token_answer()])
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)


@contextmanager
def token_server() -> Iterator[TokenServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            known.requests.append((self.path, dict(self.headers), body))
            answer = known.answers.pop(0) if len(known.answers) > 1 else known.answers[0]
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if "Content-Length" not in answer.headers:
                self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    known = TokenServer(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield known
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
