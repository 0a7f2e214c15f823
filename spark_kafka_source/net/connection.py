"""One connection to one broker: the socket under an `Exchange`, https://kafka.apache.org/protocol.

    connect    the name's addresses, in quick turns    ConnectAttempts
               TLS, if set                             FramedSocket.start_tls
               ApiVersions                             its versions; is it the expected broker?
               SASL, if set                            a session, with or without an end
    begin      request → frame → the socket            Exchange, Outgoing
    advance    the socket → frame → response           Incoming, Exchange
    renew      SASL again, before the session ends     with nothing in flight
    close      at the first failure, or by the owner   all waiting requests get the same error

Requests may be sent before earlier ones are answered; a broker answers in the order of requests. A
connection is closed after its first failure, timeouts included: its stream may be out of step.

The module is longer than most: set-up, requests and failures share the state of one stream, and a
failure of the set-up may need a second connection, which asks what the listener expects.
"""

import math
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, Generic, TypeVar, cast

from spark_kafka_source.errors import (
    ConnectionFailedError,
    KafkaError,
    ProtocolError,
    RebootstrapError,
    UnsupportedVersionError,
    error_named,
)
from spark_kafka_source.net.address import Address, Identity
from spark_kafka_source.net.broker_history import BrokerHistory
from spark_kafka_source.net.connect_attempts import ConnectAttempts
from spark_kafka_source.net.connection_failures import (
    RequestTimeoutError,
    Stage,
    connection_failure,
    expects_sasl,
    was_hung_up,
)
from spark_kafka_source.net.connection_settings import ConnectionSettings
from spark_kafka_source.net.deadline import Deadline
from spark_kafka_source.net.framed_socket import FramedSocket, Incoming, Outgoing
from spark_kafka_source.net.readable import readable
from spark_kafka_source.net.sasl import AuthenticationError, SaslSettings
from spark_kafka_source.net.security import SecuritySettings, TlsSettings
from spark_kafka_source.net.session import Session
from spark_kafka_source.net.tls.failures import speaks_no_tls
from spark_kafka_source.protocol import Exchange, Request, Response
from spark_kafka_source.protocol.messages.api_versions import ApiVersionsRequest

R = TypeVar("R", bound=Response)
E = TypeVar("E", bound=KafkaError)

_REBOOTSTRAP_REQUIRED = error_named("REBOOTSTRAP_REQUIRED").code
# ApiVersions has the identity from v5 on. Without one, older brokers are not asked twice.
_WITHOUT_IDENTITY = 4
_PROBE_TIMEOUT_MS = 2_000
# How long an address that accepted the connection may stay silent, if its host has other addresses.
_LONGEST_SILENCE_MS = 2_000


class Awaited(Generic[R]):
    """A request on a connection, and its answer once it has come."""

    def __init__(self, end_bytes: int | None) -> None:
        """Create it. `end_bytes` is `Outgoing.sent_bytes` once a request without answer is sent."""
        self.end_bytes = end_bytes
        self.response: R | None = None


class Connection:
    """A connected socket to a broker whose API versions are known; see `connect`."""

    def __init__(
        self,
        address: Address,
        settings: ConnectionSettings,
        connected: socket.socket,
        history: BrokerHistory,
        identity: Identity | None = None,
    ) -> None:
        self.address = address
        self._history = history
        self._identity = identity
        self._settings = settings
        self._socket = FramedSocket(connected)
        self._exchange = Exchange(
            settings.client_id, max_response_bytes=settings.max_response_bytes
        )
        self._incoming = Incoming(self._exchange.frame_size)
        self._outgoing = Outgoing()
        self._awaited: deque[Awaited[Any]] = deque()
        self._failure: KafkaError | None = None
        self.is_renewing = False
        self.is_one_way = False
        """Whether a request went out that has no answer. The broker may be busy with it still."""
        self.dry_at_seconds = -math.inf
        """The monotonic time at which there was last nothing to read."""
        self._stage = Stage.SILENT
        self._session = Session()

    @classmethod
    def connect(
        cls,
        address: Address,
        settings: ConnectionSettings,
        deadline: Deadline,
        opened: Callable[["Connection"], None] = lambda _: None,
        *,
        history: BrokerHistory | None = None,
        identity: Identity | None = None,
    ) -> "Connection":
        """Connect, agree on versions, and authenticate if set, within the set-up timeout.

        All addresses that the host's name resolves to are tried, in quick turns. An address that
        accepts the connection and stays silent has two seconds before the next one's turn.
        `history` decides which addresses are tried last, and gets the results. `opened` is called
        before the first wait for an answer, so that another thread can close the connection from
        then on. A broker that is not the one of `identity` says so, from Kafka 4.4 on (KIP-1242).

        Raises `ConnectionFailedError` or `RequestTimeoutError`, with the fault at each address,
        `TlsError` and `AuthenticationError` if one side refuses the other, `RebootstrapError` from
        a broker with another identity, and the errors of `Exchange.api_versions`.
        """
        deadline = deadline.within_ms(settings.socket_connection_setup_timeout_ms)
        history = history or BrokerHistory()
        buffer_bytes = settings.buffer_bytes()
        with closing(ConnectAttempts(address, buffer_bytes, history, deadline)) as attempts:
            while not deadline.expired:
                connected, target = attempts.next()
                connection = cls(address, settings, connected, history, identity)
                try:
                    connection._set_up(deadline, opened, is_last=not attempts.has_more)
                except (RequestTimeoutError, ConnectionFailedError):
                    history.failed(target)
                    if connection.is_heard or not attempts.has_more:
                        raise
                else:
                    history.answered(target)
                    return connection
        raise RequestTimeoutError(f"{address}: timed out connecting")

    def request(
        self, request: Request[R], deadline: Deadline, *, max_version: int | None = None
    ) -> R:
        """Send one request and return its answer."""
        self.send(request, deadline, max_version=max_version)
        return cast(R, self.receive(deadline))

    def send(
        self, request: Request[R], deadline: Deadline, *, max_version: int | None = None
    ) -> None:
        """Send one request. Each needs a `receive` of its own, in the same order.

        With nothing in flight it may first authenticate again, before the session ends.
        """
        if self.needs_login:
            self.renew(deadline)
        self.begin(request, max_version=max_version)
        self._write_some(deadline)
        if self.has_unsent:
            raise self._lost(TimeoutError(), "sending")

    def begin(self, request: Request[R], *, max_version: int | None = None) -> Awaited[R]:
        """Send as much of a request as goes out without waiting, after earlier requests.

        The rest goes out during calls of `advance` and `receive_by`. The returned object gets the
        answer. A Produce request with `acks` of 0 has no answer. `UnsupportedVersionError` names
        the broker.
        """
        # Encode first: a request that cannot be encoded leaves the connection as it was.
        try:
            frame = self._exchange.request_frame(request, max_version=max_version)
        except UnsupportedVersionError as error:
            raise UnsupportedVersionError(f"{self.address}: {error}") from error
        self._outgoing.queue(frame)
        awaited = Awaited[R](None if request.expects_answer else self._outgoing.queued_bytes)
        if request.expects_answer:
            self._awaited.append(awaited)
        else:
            self.is_one_way = True
        self._write_some(None)
        return awaited

    def _write_some(self, deadline: Deadline | None) -> None:
        """Send what goes out before the deadline. Without a deadline, do not wait."""
        try:
            self._socket.send(self._outgoing, deadline)
        except OSError as error:
            raise self._lost(error, "sending") from error

    def receive(self, deadline: Deadline) -> Response:
        """Wait for the answer to the oldest unanswered request, and return it."""
        response = self.receive_by(deadline)
        if response is None:
            raise self._lost(TimeoutError(), "waiting for an answer")
        return response

    def receive_by(self, deadline: Deadline | None) -> Response | None:
        """Return the next answer, or None if it is incomplete at the deadline. Then call again.

        Without a deadline, do not wait at all.
        """
        try:
            while (frame := self._incoming.frame()) is None:
                self._write_some(None)
                # A broker that is answering may read no more requests until its answer is read.
                if not self._socket.receive(self._incoming, None if self._outgoing else deadline):
                    if not self._outgoing or deadline is None or deadline.expired:
                        self.dry_at_seconds = time.monotonic()
                        return None
                    readable([self], deadline)
            _, response = self._exchange.response(frame)
        except OSError as error:
            raise self._lost(error, "waiting for an answer") from error
        except ProtocolError as error:
            raise self._fail(type(error)(f"{self.address}: {error}")) from error
        self._awaited.popleft().response = response
        self._stage = Stage.PROVEN if self._stage >= Stage.SET_UP else Stage.HEARD
        return response

    def advance(self, awaited: Awaited[R], deadline: Deadline | None) -> bool:
        """Send and receive. Return whether this request is over: answered, or sent if acks=0.

        Wait until the deadline; without one, do not wait. Earlier requests get their answers first.
        Raises the error that ended the connection, even if it came with another request.
        """
        while awaited.response is None:
            if self._failure is not None:
                raise self._failure
            if awaited.end_bytes is not None:
                self._write_some(deadline)
                return self._outgoing.sent_bytes >= awaited.end_bytes
            if self.receive_by(deadline) is None:
                return False
        return True

    @property
    def in_flight(self) -> int:
        """Number of requests that wait for their answers."""
        return len(self._awaited)

    @property
    def has_unsent(self) -> bool:
        """Whether part of a request is still to be sent.

        If so, wait for the socket to take more.
        """
        return bool(self._outgoing)

    @property
    def silent_seconds(self) -> float:
        """Seconds since something was received or sent."""
        return self._socket.silent_seconds

    @property
    def is_heard(self) -> bool:
        """Whether the broker has answered a request."""
        return self._stage > Stage.SILENT

    @property
    def closed(self) -> bool:
        """Whether it is closed, by either side."""
        return self._socket.closed

    @property
    def needs_login(self) -> bool:
        """Whether it is time to authenticate again, before the next request."""
        return not self.in_flight and self._session.is_due()

    def renew(self, deadline: Deadline) -> None:
        """Authenticate again, on the same connection (KIP-368)."""
        if self._settings.security.sasl is None:
            return
        self.is_renewing = True
        try:
            self._log_in(self._settings.security.sasl, deadline)
        finally:
            self.is_renewing = False

    def supports(self, request_type: type[Request[R]], version: int) -> bool:
        """Return whether the broker supports `version` of this API."""
        return self._exchange.supports(request_type, version)

    def version(self, request_type: type[Request[R]]) -> int:
        """Return the version that requests are sent in. Raises `UnsupportedVersionError`."""
        return self._exchange.version(request_type)

    @property
    def usable(self) -> bool:
        """Whether a request may be sent with nothing in flight; see `takes`."""
        return self.takes(1)

    def takes(self, most_in_flight: int) -> bool:
        """Return whether one more request may be sent, with at most `most_in_flight` unanswered.

        The connection must be open, in step, not idle for too long, and not closed by the broker.
        Its session must last: a broker closes a connection with an expired session at the next
        request, and a client can authenticate again only with nothing in flight.
        """
        if self.closed or self.is_renewing or self._session.is_over():
            return False
        if self.in_flight:
            return self.in_flight < most_in_flight and not self._session.is_due()
        most_ms = self._settings.connections_max_idle_ms
        is_idle = 0 <= most_ms <= self.silent_seconds * 1000
        return not is_idle and not self._socket.hung_up()

    @property
    def is_busy(self) -> bool:
        """Whether the connection waits for an answer, or another thread logs in on it."""
        return self.in_flight > 0 or self.is_renewing

    def fileno(self) -> int:
        """Return the socket's descriptor, to wait for several at once; -1 once it is closed."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the socket, and wake a thread that waits on it. Never raises."""
        self._socket.close()

    def _set_up(
        self, deadline: Deadline, opened: Callable[["Connection"], None], *, is_last: bool
    ) -> None:
        first_deadline = deadline if is_last else deadline.within_ms(_LONGEST_SILENCE_MS)
        try:
            opened(self)
            if self._settings.security.tls is not None:
                self._start_tls(self._settings.security.tls, first_deadline)
                first_deadline = deadline
            self._agree_on_versions(first_deadline, deadline)
            if self._settings.security.sasl is not None:
                self._log_in(self._settings.security.sasl, deadline)
        except BaseException:
            self.close()
            raise
        self._stage = Stage.SET_UP if self._settings.security.sasl is None else Stage.PROVEN

    def _start_tls(self, settings: TlsSettings, deadline: Deadline) -> None:
        try:
            self._socket.start_tls(settings, self.address.host, deadline)
        except OSError as error:
            was_ended = not self.closed and isinstance(error, ssl.SSLEOFError | ConnectionError)
            failure = self._lost(error, "starting TLS")
            # A broker that dies and a listener without TLS end the connection in the same way, but
            # a broker may come back.
            if was_ended and _answers_without_tls(self.address, self._settings, deadline):
                failure = speaks_no_tls(self.address)
            raise failure from error

    def _log_in(self, settings: SaslSettings, deadline: Deadline) -> None:
        """Authenticate, for the first time or again (KIP-368)."""
        self._history.log_in(partial(self._authenticate, settings, deadline), deadline)

    def _authenticate(self, settings: SaslSettings, deadline: Deadline) -> None:
        # Only a connection with SASL needs the mechanisms.
        from spark_kafka_source.net.authentication import authenticate  # noqa: PLC0415
        from spark_kafka_source.net.sasl.mechanism import mechanism_for  # noqa: PLC0415

        def ask(request: Request[R]) -> R:
            return self.request(request, deadline)

        self._session = Session()  # Otherwise a request of the login would start another login.
        try:
            self._session = authenticate(ask, mechanism_for(settings, self.address.host))
        except AuthenticationError as error:
            self.close()
            found = f"{self.address}: {error.found}"
            raise type(error)(error.mechanism, found, error.expected) from error
        except BaseException:
            self.close()
            raise

    def _agree_on_versions(self, first_deadline: Deadline, deadline: Deadline) -> None:
        exchange, history = self._exchange, self._history
        highest = _WITHOUT_IDENTITY if self._identity is None else exchange.api_versions_version
        exchange.api_versions_version = history.api_versions_version(self.address, highest)
        request = ApiVersionsRequest()
        if self._identity is not None:
            request.cluster_id, request.node_id = self._identity
        try:
            response = self.request(request, first_deadline)
            if response.error_code == _REBOOTSTRAP_REQUIRED:
                raise RebootstrapError(f"{self.address} is not {self._identity}")
            # A broker that does not know the client's version answers with its own (KIP-511).
            while exchange.api_versions(response):
                response = self.request(request, deadline)
        except ConnectionFailedError:
            history.hung_up(self.address, exchange.api_versions_version)
            raise
        except KafkaError:
            history.disagreed(self.address)
            raise
        if exchange.api_versions_version == highest:
            return
        if self._identity is not None and exchange.supports(ApiVersionsRequest, highest):
            # It hung up before, as at a restart. The next connection has the check again.
            history.disagreed(self.address)
        else:
            history.agreed(self.address, exchange.api_versions_version)

    def give_up(self, reason: str) -> RequestTimeoutError:
        """Close the connection, with this reason for all requests that wait for their answers."""
        error = RequestTimeoutError(f"{self.address}: {reason}")
        self._fail(error)
        return error

    def _fail(self, error: E) -> E:
        """Close the connection.

        All requests that wait for their answers fail with the same error.
        """
        self.close()
        self._failure = self._failure or error
        return error

    def _lost(self, error: OSError, doing: str) -> KafkaError:
        if self._stage >= Stage.SET_UP and not self.closed:
            self._history.lost(self.address, self._settings.reconnects)
        self.close()
        return self._fail(self._failure_of(error, doing))

    def _failure_of(self, error: OSError, doing: str) -> KafkaError:
        tls = self._settings.security.tls
        if self._stage is Stage.SET_UP and was_hung_up(error):
            mechanisms = _mechanisms_of(self.address, self._settings)
            if mechanisms:
                return expects_sasl(self.address, mechanisms, tls=tls is not None)
        return connection_failure(error, doing, self.address, self._stage, tls)


def _mechanisms_of(address: Address, settings: ConnectionSettings) -> list[str]:
    """Return the mechanisms of a listener that expects SASL, else none. No secret is sent."""
    # Only the error of a login that is missing needs it.
    from spark_kafka_source.protocol.messages.sasl import SaslHandshakeRequest  # noqa: PLC0415

    deadline = Deadline.after_ms(_PROBE_TIMEOUT_MS)
    try:
        connection = Connection.connect(address, settings, deadline)
    except KafkaError:
        return []
    connection._stage = Stage.PROVEN  # If this one is closed as well, do not probe again.
    try:
        # The mechanism does not matter: the answer names all that the listener has.
        return connection.request(SaslHandshakeRequest("PLAIN"), deadline).mechanisms
    except KafkaError:
        return []
    finally:
        connection.close()


def _answers_without_tls(
    address: Address, settings: ConnectionSettings, deadline: Deadline
) -> bool:
    """Whether the broker answers a request for its versions without TLS. No secret is sent."""
    deadline = deadline.within_ms(_PROBE_TIMEOUT_MS)
    try:
        Connection.connect(
            address, replace(settings, security=SecuritySettings()), deadline
        ).close()
    except KafkaError:
        return False
    return True
