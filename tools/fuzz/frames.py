"""Input of a socket: sizes, correlation ids, SASL frames, answers of other servers, TLS."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from spark_kafka_source.errors import BrokerError, KafkaError, RemoteError, UnsupportedVersionError
from spark_kafka_source.net import (
    Address,
    Connection,
    ConnectionSettings,
    Deadline,
    SecuritySettings,
    connection,
)
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from tools.fuzz.judge import replaced

ADDRESS = Address("broker", 9092)
SEPARATOR = b"\xfe\xff\xfe"
"""Separator between the contents of frames in an input. The frames around them are right."""

_PASSWORD_LOGIN = 'org.apache.kafka.common.security.{} required username="u" password="p";'
_MECHANISMS = {
    "PLAIN": _PASSWORD_LOGIN.format("plain.PlainLoginModule"),
    "SCRAM-SHA-256": _PASSWORD_LOGIN.format("scram.ScramLoginModule"),
}
_MOST_BYTES = 64 * 1024


def _settings(protocol: str, **options: str) -> ConnectionSettings:
    values = {f"kafka.{name.replace('_', '.')}": value for name, value in options.items()}
    security = SecuritySettings.from_settings(
        Settings({"kafka.security.protocol": protocol, **values})
    )
    return ConnectionSettings(security=security, max_response_bytes=1 << 20)


SETTINGS = (
    _settings("PLAINTEXT"),
    *(
        _settings("SASL_PLAINTEXT", sasl_mechanism=name, sasl_jaas_config=text)
        for name, text in _MECHANISMS.items()
    ),
)
WITH_TLS = _settings("SSL")


def frames(data: bytes) -> None:
    """A byte selects the settings, and a raw stream or frame contents. The answers follow."""
    how, answers = (data[0], data[1:]) if data else (0, b"")
    stream = answers if how & 0x80 else b"".join(map(_frame, *_numbered(answers)))
    _converse(stream, SETTINGS[how % len(SETTINGS)])


def handshakes(data: bytes) -> None:
    """A server's answer to the first message of TLS."""
    _converse(data, WITH_TLS)


def _numbered(answers: bytes) -> tuple[range, list[bytes]]:
    parts = answers.split(SEPARATOR)
    return range(len(parts)), parts


def _frame(correlation_id: int, content: bytes) -> bytes:
    return (len(content) + 4).to_bytes(4) + correlation_id.to_bytes(4) + content


def _converse(stream: bytes, settings: ConnectionSettings) -> None:
    deadline = Deadline.after_ms(5_000)
    with _answering(stream):
        try:
            link = Connection.connect(ADDRESS, settings, deadline)
            try:
                link.request(MetadataRequest(), deadline)
            finally:
                link.close()
        except KafkaError as error:
            # An error in a broker's answer names the API. Any other error names the broker.
            assert isinstance(error, RemoteError | UnsupportedVersionError)
            if not isinstance(error, BrokerError | UnsupportedVersionError):
                assert str(ADDRESS) in str(error) or "ApiVersions" in str(error)


class _Attempts:
    """Replacement of `ConnectAttempts`: one connection that reads the stream and then its end."""

    has_more = False

    def __init__(self, stream: bytes, ends: list[socket.socket]) -> None:
        self._stream, self._ends = stream, ends

    def next(self) -> tuple[socket.socket, tuple[str, int]]:
        ours, theirs = socket.socketpair()
        self._ends.append(theirs)
        theirs.sendall(self._stream[:_MOST_BYTES])
        theirs.shutdown(socket.SHUT_WR)
        return ours, (ADDRESS.host, ADDRESS.port)

    def close(self) -> None:
        pass


@contextmanager
def _answering(stream: bytes) -> Iterator[None]:
    """Let every connection read `stream` and then its end."""
    ends: list[socket.socket] = []
    try:
        with replaced(connection, "ConnectAttempts", lambda *_: _Attempts(stream, ends)):
            yield
    finally:
        for end in ends:
            end.close()
