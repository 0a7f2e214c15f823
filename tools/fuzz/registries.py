"""A schema registry's answers by HTTP to requests for a schema."""

import socket

from spark_kafka_source.errors import ConnectionFailedError
from spark_kafka_source.net import Deadline
from spark_kafka_source.net.http_connection import HttpConnection
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.registry import RegistryConfig, RegistryError
from spark_kafka_source.registry.refusals import may_heal, refusal, status_and_message
from spark_kafka_source.registry.schemas import JsonAnswer
from spark_kafka_source.registry.server import Question, RegistryServer
from spark_kafka_source.values import SchemaError
from tools.fuzz.judge import replaced

_CONFIG = RegistryConfig.from_settings(
    Settings({"schema.registry.url": "https://me:canary-secret@localhost:1"})
)
_QUESTION = Question("the schema with the id 7", "/schemas/ids/7")
_MOST_BYTES = 64 * 1024


def registry_answers(data: bytes) -> None:
    """The result is a schema, or an error that does not quote the answer."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(data[:_MOST_BYTES])
        theirs.shutdown(socket.SHUT_WR)
        server = RegistryServer(_CONFIG.urls[0], _CONFIG)
        with replaced(HttpConnection, "connect", lambda *_: ours):
            try:
                _read(server)
            except (RegistryError, SchemaError, ConnectionFailedError) as error:
                assert "canary-secret" not in str(error)


def _read(server: RegistryServer) -> None:
    answer = server.ask(_QUESTION, Deadline.after_ms(20_000))
    if may_heal(answer.status):
        assert "canary-secret" not in status_and_message(answer, _CONFIG)
    elif answer.status == 200:
        stored = JsonAnswer(answer.body, _QUESTION.what).schema()
        assert isinstance(stored.text, str)
    else:
        raise refusal(answer, _QUESTION.what, _QUESTION.path, _CONFIG)


def registry_seeds() -> list[bytes]:
    """Return answers of every kind."""
    schema = (
        b'{"schema":"1","schemaType":"AVRO","references":[{"name":"a","subject":"b","version":1}]}'
    )
    denied = b'{"error_code":401,"message":"who is canary-secret?"}'
    return [
        _answer("200 OK", schema),
        _answer("404 Not Found", b'{"error_code":40403,"message":"no"}'),
        _answer("401 Unauthorized", denied),
        _answer("307 Temporary Redirect", b"", "Location: /elsewhere") + _answer("200 OK", schema),
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\n2\r\n1}\r\n0\r\n\r\n',
        b"HTTP/1.1 100 Continue\r\n\r\n" + _answer("503 Busy", denied),
    ]


def _answer(status: str, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body
