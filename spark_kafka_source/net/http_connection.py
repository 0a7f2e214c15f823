"""One connection to one HTTP/1.1 server, kept for later requests, through the environment's proxy.

`urllib.request` opens a connection for each request, and its timeouts begin anew with each byte: so
only its choice of a proxy is used.
"""

import base64
import http.client
import ipaddress
import os
import re
import socket
import ssl
import urllib.request
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import unquote_to_bytes

from spark_kafka_source.errors import (
    ConfigurationError,
    ConnectionFailedError,
    KafkaError,
    ProtocolError,
)
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
_PROXY = (
    r"(?:(?i:http)://)?(?:(?P<user>[^/?#:]*)(?::(?P<password>[^/?#]*))?@)?"
    r"(?P<host>\[[^\]@/]+\]|[^:/?#@\[\]\s]+)(?::(?P<port>[0-9]{1,5}))?/?"
)
_OTHER_PROXY = r"\s*(https|socks(?:4a?|5h?)?)://"
_MAY_HEAL = (408, 429)
_PROXY_LOGIN = 407


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


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy, and the variable of the environment that names it. The headers have its login."""

    option: str
    address: Address
    headers: Mapping[str, str] = field(repr=False)

    def refusal(self, server: Address, status: int) -> KafkaError:
        """Return the error for a proxy that does not connect to a server."""
        said = f"{self.address} answers with status {status} when asked for {server}"
        if status >= 500 or status in _MAY_HEAL:
            return ConnectionFailedError(f"the proxy {said} ('{self.option}')")
        return ConfigurationError(self.option, f"the proxy {said}", _proxy_expected())


def proxy_for(server: Address, *, tls: bool) -> Proxy | None:
    """Return the proxy for a server by `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, as urllib does.

    There is none for this machine. Raises `ConfigurationError`, which shows nothing of the value.
    """
    scheme = "https" if tls else "http"
    url = urllib.request.getproxies().get(scheme)
    if not url or is_loopback(server.host) or urllib.request.proxy_bypass(str(server)):
        return None
    option, match = _variable(f"{scheme}_proxy"), re.fullmatch(_PROXY, url.strip())
    port = int(match["port"] or 80) if match else 0
    if match is None or not 0 < port < 65536:
        other = re.match(_OTHER_PROXY, url, re.IGNORECASE)
        found = "is not the address of a proxy"
        if other:
            found = f"names a proxy of the kind '{other[1].lower()}', which is not used"
        raise ConfigurationError(option, found, _proxy_expected())
    headers = {}
    if match["user"]:
        login = unquote_to_bytes(f"{match['user']}:{match['password'] or ''}")
        headers["Proxy-Authorization"] = f"Basic {base64.b64encode(login).decode()}"
    return Proxy(option, Address(match["host"].strip("[]"), port), headers)


def _proxy_expected() -> str:
    url = "'http://host:port', with a login 'http://user:password@host:port'"
    return f"Give {url}, or name the server in '{_variable('no_proxy')}'"


def _variable(name: str) -> str:
    """Return the name of a variable as it is set. The one in lower case takes precedence."""
    return name if name in os.environ else name.upper()


def is_loopback(host: str) -> bool:
    """Whether the name or address is this machine's, so that nothing leaves it."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class HttpConnection:
    """A connection that is made with the first request. It follows no redirection.

    Only one thread at a time may use it. Without `tls` it is plain HTTP. `peer` is the server's
    name in texts. A body of more than `most_bytes` is refused.
    """

    def __init__(
        self, address: Address, tls: TlsSettings | None, peer: Peer, *, most_bytes: int
    ) -> None:
        self.address = address
        self._tls, self._peer, self._most_bytes = tls, peer, most_bytes
        self._sent_address = address
        with suppress(UnicodeError):  # An error of the connection tells it.
            self._sent_address = Address(address.host.encode("idna").decode(), address.port)
        self._history = BrokerHistory()
        self._proxy: Proxy | None = None
        self._target: tuple[object, ...] = ()
        self._socket: socket.socket | None = None
        self._process = OwnProcess("connection")

    @property
    def host(self) -> str:
        """The `Host` header: without the port if it is the usual one."""
        usual = 80 if self._tls is None else 443
        return str(self._sent_address).removesuffix(f":{usual}")

    @property
    def where(self) -> str:
        """The server's address, and the proxy's if one was used."""
        if self._proxy is None:
            return str(self.address)
        return f"{self.address} through the proxy {self._proxy.address} ('{self._proxy.option}')"

    def ask(self, request: HttpRequest, deadline: Deadline) -> HttpAnswer:
        """Send a request, and return its answer, whatever its status.

        Raises `ConnectionFailedError`, `RequestTimeoutError`, `TlsError`, `ProtocolError` for an
        answer that is too long, and `ConfigurationError` for settings that TLS cannot use and for a
        proxy that is not one or refuses.
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
            connected = self.connect(deadline)
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

    def connect(self, deadline: Deadline) -> socket.socket:
        """Connect before the first request, with a deadline of its own. Raises as `ask` does."""
        proxy = self._proxy = proxy_for(self.address, tls=self._tls is not None)
        where = proxy.address if proxy else self.address
        try:
            with closing(ConnectAttempts(where, {}, self._history, deadline)) as attempts:
                connected, self._target = attempts.next()
        except ConnectionFailedError as error:
            if proxy is None:
                raise
            raise ConnectionFailedError(f"{self.where}: {error}") from error
        try:
            if self._tls is not None:
                if proxy is not None:
                    self._tunnel(connected, proxy, deadline)
                connected = secured = start_tls(connected, self._tls, self.address.host)
                set_timeout(connected, deadline)
                secured.do_handshake()
        except BaseException as error:
            # No request may be sent on this socket without TLS.
            connected.close()
            if isinstance(error, OSError | http.client.HTTPException | UnicodeError):
                raise self._failed(error) from error
            raise
        self._socket = connected
        return connected

    def _tunnel(self, connected: socket.socket, proxy: Proxy, deadline: Deadline) -> None:
        """Ask the proxy for a connection to the server."""
        bounded = BoundedSocket(connected, _BESIDE_BODY_BYTES, deadline)
        connection = http.client.HTTPConnection(str(proxy.address))
        connection.sock = cast(socket.socket, bounded)
        headers = {"Host": str(self._sent_address), **proxy.headers}
        connection.request("CONNECT", str(self._sent_address), headers=headers)
        with connection.getresponse() as response:
            if not 200 <= response.status < 300:
                raise proxy.refusal(self.address, response.status)

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
            target, headers = request.target, {"Host": self.host, **request.headers}
            if self._proxy is not None and self._tls is None:
                target, headers = f"http://{self.host}{target}", {**headers, **self._proxy.headers}
            connection.request(request.method, target, request.body, headers)
            with connection.getresponse() as response:
                answer = self._read(response)
                is_over = response.will_close
        # The standard library raises ValueError for a chunk of a negative size.
        except (OSError, http.client.HTTPException, ValueError) as error:
            if bounded.was_too_long:
                raise self._too_long() from error
            if isinstance(error, ConnectionError):
                raise
            raise self._failed(error) from error
        finally:
            if is_over:
                self.close()
        self._history.answered(self._target)
        if self._proxy is not None and answer.status == _PROXY_LOGIN:
            raise self._proxy.refusal(self.address, answer.status)
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
        return ProtocolError(f"{self.where}: an answer of more than {self._most_bytes} bytes")

    def _failed(self, error: Exception) -> KafkaError:
        """Close the connection.

        If the host has several addresses, the next try takes another one.
        """
        self.close()
        self._history.failed(self._target)
        if isinstance(error, TimeoutError):
            return RequestTimeoutError(f"{self.where}: timed out waiting for an answer")
        if isinstance(error, ssl.SSLError) and self._tls is not None:
            failure = tls_failure(error, self.address, self._tls, self._peer)
            if failure is not None:
                return failure
        text = getattr(error, "strerror", None) or str(error)
        if not isinstance(error, OSError | UnicodeError):
            text = f"no complete HTTP answer ({type(error).__name__})"
        return ConnectionFailedError(f"{self.where}: {text}")
