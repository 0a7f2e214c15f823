"""One connection to one HTTP/1.1 server, kept for later requests."""

import http.client
import socket
import ssl
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import cast

from spark_kafka_source.errors import ConnectionFailedError, KafkaError, ProtocolError
from spark_kafka_source.forks import OwnProcess
from spark_kafka_source.net.address import Address
from spark_kafka_source.net.broker_history import BrokerHistory
from spark_kafka_source.net.connect_attempts import ConnectAttempts
from spark_kafka_source.net.connection_failures import RequestTimeoutError
from spark_kafka_source.net.deadline import Deadline
from spark_kafka_source.net.http_answer import BoundedSocket, set_timeout
from spark_kafka_source.net.readable import readable
from spark_kafka_source.net.security import TlsSettings
from spark_kafka_source.net.tls.context import start_tls
from spark_kafka_source.net.tls.failures import Peer, tls_failure

# For headers, which the standard library limits as well, and for the sizes of chunks.
_BESIDE_BODY_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request, which may be sent twice. `target` is a path and a query. Headers may be secret."""

    method: str
    target: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer.

    Header names are in lower case; of several headers with one name the first counts.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpConnection:
    """A connection that is made with the first request. It follows no redirection and no proxy.

    Only one thread at a time may use it. Without `tls` it is plain HTTP. `peer` is the server's
    name in texts. A body of more than `most_bytes` is refused.
    """

    def __init__(
        self, address: Address, tls: TlsSettings | None, peer: Peer, *, most_bytes: int
    ) -> None:
        self.address = address
        self._tls, self._peer, self._most_bytes = tls, peer, most_bytes
        self._history = BrokerHistory()
        self._target: tuple[object, ...] = ()
        self._socket: socket.socket | None = None
        self._process = OwnProcess("connection")

    @property
    def host(self) -> str:
        """The `Host` header: without the port if it is the usual one."""
        usual = 80 if self._tls is None else 443
        return str(self.address).removesuffix(f":{usual}")

    def ask(self, request: HttpRequest, deadline: Deadline) -> HttpAnswer:
        """Send a request, and return its answer, whatever its status.

        Raises `ConnectionFailedError`, `RequestTimeoutError`, `TlsError`, `ProtocolError` for an
        answer that is too long, and `ConfigurationError` for settings that TLS cannot use.
        """
        self._process.check()
        kept = self._socket
        if kept is not None and not readable([kept], Deadline.after_ms(0)):
            try:
                return self._exchange(kept, request, deadline)
            except ConnectionError:
                # The server had closed it in the meantime, as happens to kept connections.
                self.close()
        self.close()
        try:
            connected = self._connect(deadline)
            return self._exchange(connected, request, deadline)
        except ConnectionError as error:
            raise self._failed(error) from error

    def close(self) -> None:
        """Close the connection. The next request makes a new one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def interrupt(self) -> None:
        """End another thread's wait for an answer, as if the server had closed the connection."""
        connected = self._socket
        if connected is not None and self._process.is_here:
            with suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)

    def _connect(self, deadline: Deadline) -> socket.socket:
        with closing(ConnectAttempts(self.address, {}, self._history, deadline)) as attempts:
            connected, self._target = attempts.next()
        try:
            if self._tls is not None:
                connected = secured = start_tls(connected, self._tls, self.address.host)
                set_timeout(connected, deadline)
                secured.do_handshake()
        except BaseException as error:
            # No request may be sent on this socket without TLS.
            connected.close()
            if isinstance(error, OSError):
                raise self._failed(error) from error
            raise
        self._socket = connected
        return connected

    def _exchange(
        self, connected: socket.socket, request: HttpRequest, deadline: Deadline
    ) -> HttpAnswer:
        """Send and receive.

        Raises `ConnectionError` if the connection was closed before an answer.
        """
        bounded = BoundedSocket(connected, self._most_bytes + _BESIDE_BODY_BYTES, deadline)
        is_over = True
        try:
            connection = http.client.HTTPConnection(str(self.address))
            # The type checker expects a socket. `BoundedSocket` has all methods that are called.
            connection.sock = cast(socket.socket, bounded)
            headers = {"Host": self.host, **request.headers}
            connection.request(request.method, request.target, request.body, headers)
            with connection.getresponse() as response:
                answer = self._read(response)
                is_over = response.will_close
        except (OSError, http.client.HTTPException) as error:
            if bounded.was_too_long:
                raise self._too_long() from error
            if isinstance(error, ConnectionError):
                raise
            raise self._failed(error) from error
        finally:
            if is_over:
                self.close()
        self._history.answered(self._target)
        return answer

    def _read(self, response: http.client.HTTPResponse) -> HttpAnswer:
        if (response.length or 0) > self._most_bytes:
            raise self._too_long()
        body = response.read(self._most_bytes + 1)
        if len(body) > self._most_bytes:
            raise self._too_long()
        if response.length:
            raise http.client.IncompleteRead(b"")
        named: dict[str, str] = {}
        for name, value in response.getheaders():
            named.setdefault(name.lower(), value)
        return HttpAnswer(response.status, named, body)

    def _too_long(self) -> ProtocolError:
        return ProtocolError(f"{self.address}: an answer of more than {self._most_bytes} bytes")

    def _failed(self, error: Exception) -> KafkaError:
        """Close the connection.

        If the host has several addresses, the next try takes another one.
        """
        self.close()
        self._history.failed(self._target)
        if isinstance(error, TimeoutError):
            return RequestTimeoutError(f"{self.address}: timed out waiting for an answer")
        if isinstance(error, ssl.SSLError) and self._tls is not None:
            failure = tls_failure(error, self.address, self._tls, self._peer)
            if failure is not None:
                return failure
        text = getattr(error, "strerror", None) or str(error)
        if not isinstance(error, OSError):
            text = f"no complete HTTP answer ({type(error).__name__})"
        return ConnectionFailedError(f"{self.address}: {text}")
