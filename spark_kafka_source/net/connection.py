"""One connection to one broker: the socket under an `Exchange`, https://kafka.apache.org/protocol.

Requests may be sent ahead of their answers; a broker answers in the order it was asked. A
connection that failed once, timeouts included, is closed: its stream can no longer be trusted to
be in step.
"""

import contextlib
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar, cast

from spark_kafka_source.errors import (
    ConnectionFailedError,
    KafkaError,
    KafkaTimeoutError,
    ProtocolError,
    Remedy,
)
from spark_kafka_source.net.address import Address
from spark_kafka_source.net.authentication import Session, authenticate, expects_sasl
from spark_kafka_source.net.contacts import Contacts
from spark_kafka_source.net.deadline import Deadline
from spark_kafka_source.net.incoming import Incoming
from spark_kafka_source.net.opening import Opening
from spark_kafka_source.net.outgoing import Outgoing
from spark_kafka_source.net.readable import readable
from spark_kafka_source.net.sasl import AuthenticationError, SaslSettings, mechanism_for
from spark_kafka_source.net.security import PROTOCOL_OPTION, SecuritySettings, TlsSettings
from spark_kafka_source.net.tls import start_tls
from spark_kafka_source.net.tls_failures import speaks_no_tls, tls_failure
from spark_kafka_source.protocol import (
    ApiVersionsRequest,
    Exchange,
    Request,
    Response,
    SaslHandshakeRequest,
)
from spark_kafka_source.settings import setting

R = TypeVar("R", bound=Response)
E = TypeVar("E", bound=KafkaError)

_PROBE_TIMEOUT_MS = 2_000
_BUFFER = "-1: as large as the system makes it"
# What a socket raises that has to be waited for.
_NOT_YET = (
    TimeoutError,
    BlockingIOError,
    InterruptedError,
    ssl.SSLWantReadError,
    ssl.SSLWantWriteError,
)
# How long an address that took the connection may say nothing, where its host has others.
_LONGEST_SILENCE_MS = 2_000


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """How to connect; the names and defaults of Kafka's consumer configuration."""

    client_id: str = setting("spark-kafka-source")
    socket_connection_setup_timeout_ms: int = setting(10_000, minimum=1)
    request_timeout_ms: int = setting(
        30_000,
        minimum=1,
        meaning="how long one request may take, and how long a first contact is tried",
    )
    connections_max_idle_ms: int = setting(540_000, minimum=-1)
    receive_buffer_bytes: int = setting(-1, minimum=-1, meaning=_BUFFER)
    send_buffer_bytes: int = setting(-1, minimum=-1, meaning=_BUFFER)
    max_response_bytes: int = 256 * 1024 * 1024
    security: SecuritySettings = field(default_factory=SecuritySettings)


class RequestTimeoutError(KafkaTimeoutError):
    """A broker did not answer in time; it may be gone, so its role is looked up afresh."""

    remedy = Remedy.REFRESH_METADATA


class Awaited(Generic[R]):
    """A request on a connection, and its answer once that is here."""

    def __init__(self, end_bytes: int | None) -> None:
        """Without an answer, `end_bytes` is `Outgoing.sent_bytes` once the request is sent."""
        self.end_bytes = end_bytes
        self.response: R | None = None


class Connection:
    """A connected socket whose broker has said which versions it speaks; see `connect`."""

    def __init__(
        self,
        address: Address,
        settings: ConnectionSettings,
        link: socket.socket,
        contacts: Contacts,
    ) -> None:
        self.address = address
        self._contacts = contacts
        self._settings = settings
        self._socket = link
        self._exchange = Exchange(
            settings.client_id, max_response_bytes=settings.max_response_bytes
        )
        self._incoming = Incoming(self._exchange.frame_size)
        self._outgoing = Outgoing()
        self._awaited: deque[Awaited[Any]] = deque()
        self._failure: KafkaError | None = None
        self._last_used_seconds = time.monotonic()
        self.is_renewing = False
        self.is_heard = False
        self._is_proven = False
        self._is_set_up = False
        self._session = Session()
        self.closed = False

    @classmethod
    def connect(
        cls,
        address: Address,
        settings: ConnectionSettings,
        deadline: Deadline,
        opened: Callable[["Connection"], None] = lambda _: None,
        *,
        contacts: Contacts | None = None,
    ) -> "Connection":
        """Connect, agree on versions and authenticate, as set, within the set-up timeout.

        All addresses that the host's name resolves to are tried, in quick turns; one that takes
        the connection and says nothing has two seconds before it is the next one's turn.
        `contacts` tells which to try last, and learns of them. `opened` is called before the first
        wait for an answer, so that another thread can close the connection by then.
        Raises `ConnectionFailedError` or `RequestTimeoutError`, with what went wrong at each
        address, `TlsError` and `AuthenticationError` where one of the two will not have the other,
        and what `Exchange.api_versions` raises.
        """
        deadline = deadline.within_ms(settings.socket_connection_setup_timeout_ms)
        contacts = contacts or Contacts()
        with closing(Opening(address, _buffer_bytes(settings), contacts, deadline)) as opening:
            while not deadline.expired:
                link, target = opening.next()
                connection = cls(address, settings, link, contacts)
                try:
                    connection._set_up(deadline, opened, is_last=not opening.has_more)
                except (RequestTimeoutError, ConnectionFailedError):
                    contacts.failed(target)
                    if connection.is_heard or not opening.has_more:
                        raise
                else:
                    contacts.answered(target)
                    return connection
        raise RequestTimeoutError(f"{address}: timed out connecting")

    def request(
        self, request: Request[R], deadline: Deadline, *, max_version: int | None = None
    ) -> R:
        """Sends one request and returns its answer."""
        self.send(request, deadline, max_version=max_version)
        return cast(R, self.receive(deadline))

    def send(
        self, request: Request[R], deadline: Deadline, *, max_version: int | None = None
    ) -> None:
        """Sends one request; its answer is taken by a `receive` of its own, in order.

        With nothing in flight it may first authenticate anew, before the session ends.
        """
        if self.needs_login:
            self.renew(deadline)
        self.begin(request, max_version=max_version)
        self._write_some(deadline)
        if self.has_unsent:
            raise self._failed(TimeoutError(), "sending")

    def begin(self, request: Request[R], *, max_version: int | None = None) -> Awaited[R]:
        """Send as much of one request as goes out without waiting, behind those before it.

        The rest goes out as `advance` and `receive_by` are called. The answer is put into what is
        returned; a Produce request with `acks` of 0 has none.
        """
        # Encoding first: a request that cannot be said leaves the connection as it was.
        self._outgoing.queue(self._exchange.request_frame(request, max_version=max_version))
        expects_answer = self._exchange.expects_answer(request)
        awaited = Awaited[R](None if expects_answer else self._outgoing.queued_bytes)
        if expects_answer:
            self._awaited.append(awaited)
        self._write_some(None)
        return awaited

    def _write_some(self, deadline: Deadline | None) -> None:
        """Send what goes out by then; without a deadline do not wait."""
        try:
            self._set_timeout(deadline)
            while self._outgoing:
                self._outgoing.sent(self._send_pieces(self._outgoing.next_pieces()))
                self._last_used_seconds = time.monotonic()
        except _NOT_YET:
            return
        except OSError as error:
            raise self._failed(error, "sending") from error

    def _send_pieces(self, pieces: list[memoryview]) -> int:
        if isinstance(self._socket, ssl.SSLSocket):
            return self._socket.send(pieces[0])
        return self._socket.sendmsg(pieces)

    def receive(self, deadline: Deadline) -> Response:
        """Wait for the answer to the oldest request still unanswered, and return it."""
        response = self.receive_by(deadline)
        if response is None:
            raise self._failed(TimeoutError(), "waiting for an answer")
        return response

    def receive_by(self, deadline: Deadline | None) -> Response | None:
        """Return the same, or None where it is not here whole by then; it can be waited for again.

        Without a deadline do not wait at all.
        """
        try:
            while (frame := self._incoming.frame()) is None:
                self._write_some(None)
                # A broker that answers may read no more before its answer is read.
                if not self._read_some(None if self._outgoing else deadline):
                    if not self._outgoing or deadline is None or deadline.expired:
                        return None
                    readable([self], deadline)
            _, response = self._exchange.response(frame)
        except OSError as error:
            raise self._failed(error, "waiting for an answer") from error
        except ProtocolError as error:
            raise self._fail(ProtocolError(f"{self.address}: {error}")) from error
        self._awaited.popleft().response = response
        self.is_heard = self._is_proven = True
        return response

    def advance(self, awaited: Awaited[R], deadline: Deadline | None) -> bool:
        """Send and receive, and return whether this request is over: answered, or sent if acks=0.

        Wait until the deadline; without one do not wait. Answers to requests before it are put
        into theirs. Raises why the connection ended, also where that was seen for another request.
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
        """How many requests await their answers."""
        return len(self._awaited)

    @property
    def has_unsent(self) -> bool:
        """Whether a part of a request is still to be sent: wait for the socket to take more."""
        return bool(self._outgoing)

    def _read_some(self, deadline: Deadline | None) -> bool:
        """Wait for more of the answer. Without a deadline do not; return whether some came."""
        try:
            with self._incoming.room() as room:
                self._set_timeout(deadline)
                count = self._socket.recv_into(room)
        except _NOT_YET:
            return False
        if not count:
            raise ConnectionResetError("the broker closed the connection")
        self._incoming.received(count)
        self._last_used_seconds = time.monotonic()
        return True

    @property
    def silent_seconds(self) -> float:
        """For how long nothing has come in, or the connection was not used."""
        return time.monotonic() - self._last_used_seconds

    @property
    def needs_login(self) -> bool:
        """Whether it is time to authenticate anew, before the next request."""
        return not self.in_flight and self._session.is_due()

    def renew(self, deadline: Deadline) -> None:
        """Authenticate anew, on the same connection (KIP-368)."""
        if self._settings.security.sasl is None:
            return
        self.is_renewing = True
        try:
            self._log_in(self._settings.security.sasl, deadline)
        finally:
            self.is_renewing = False

    def supports(self, request_type: type[Request[R]], version: int) -> bool:
        """Whether the broker speaks `version` of this API."""
        return self._exchange.supports(request_type, version)

    @property
    def usable(self) -> bool:
        """Whether it may be sent on, with nothing in flight; see `takes`."""
        return self.takes(1)

    def takes(self, most_in_flight: int) -> bool:
        """Whether one more request may be sent, so that no more than these await their answers.

        It is open, in step, not idle too long, not closed over there. Its session goes on: a broker
        closes the connection at the next request otherwise, and only with nothing in flight can one
        authenticate anew.
        """
        if self.closed or self.is_renewing or self._session.is_over():
            return False
        if self.in_flight:
            return self.in_flight < most_in_flight and not self._session.is_due()
        most_ms = self._settings.connections_max_idle_ms
        is_idle = 0 <= most_ms <= self.silent_seconds * 1000
        return not is_idle and not self._hung_up()

    @property
    def is_busy(self) -> bool:
        """Whether an answer is awaited, or a login that another thread makes."""
        return self.in_flight > 0 or self.is_renewing

    def fileno(self) -> int:
        """Of the socket, to wait for several at once; -1 once it is closed."""
        return self._socket.fileno()

    def close(self) -> None:
        """Closes the socket, waking a thread that waits on it. Never raises."""
        self.closed = True
        with contextlib.suppress(OSError):  # It may not be connected any more.
            # Not that of TLS's sockets: a thread that sends would go on, without TLS.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        self._socket.close()

    def _set_up(
        self, deadline: Deadline, opened: Callable[["Connection"], None], *, is_last: bool
    ) -> None:
        first_by = deadline if is_last else deadline.within_ms(_LONGEST_SILENCE_MS)
        try:
            opened(self)
            if self._settings.security.tls is not None:
                self._start_tls(self._settings.security.tls, first_by)
                first_by = deadline
            self._agree_on_versions(first_by, deadline)
            if self._settings.security.sasl is not None:
                self._log_in(self._settings.security.sasl, deadline)
        except BaseException:
            self.close()
            raise
        # Any listener says its versions. Whether it expects SASL shows in what it does next.
        self._is_proven = self._settings.security.sasl is not None
        self._is_set_up = True

    def _start_tls(self, settings: TlsSettings, deadline: Deadline) -> None:
        try:
            self._socket = link = start_tls(self._socket, settings, self.address.host)
            self._set_timeout(deadline)
            link.do_handshake()
        except OSError as error:
            was_ended = not self.closed and isinstance(error, ssl.SSLEOFError | ConnectionError)
            failure = self._failed(error, "starting TLS")
            # A broker that dies and a listener without TLS end it alike, but one may come back.
            if was_ended and _answers_without_tls(self.address, self._settings, deadline):
                failure = speaks_no_tls(self.address)
            raise failure from error

    def _log_in(self, settings: SaslSettings, deadline: Deadline) -> None:
        """Authenticate, at first or anew (KIP-368)."""
        self._contacts.log_in(partial(self._authenticate, settings, deadline), deadline)

    def _authenticate(self, settings: SaslSettings, deadline: Deadline) -> None:
        def ask(request: Request[R]) -> R:
            return self.request(request, deadline)

        self._session = Session()  # The requests to come are not to begin it once more.
        try:
            self._session = authenticate(ask, mechanism_for(settings, self.address.host))
        except AuthenticationError as error:
            self.close()
            found = f"{self.address}: {error.found}"
            raise type(error)(error.mechanism, found, error.expected) from error
        except BaseException:
            self.close()
            raise

    def _agree_on_versions(self, first_by: Deadline, deadline: Deadline) -> None:
        response = self.request(ApiVersionsRequest(), first_by)
        self._exchange.api_versions(response)
        # A broker that does not know our version answers with the ones it does (KIP-511).
        while response.error_code:
            response = self.request(ApiVersionsRequest(), deadline)
            self._exchange.api_versions(response)

    def _set_timeout(self, deadline: Deadline | None) -> None:
        if self.closed:
            raise ConnectionAbortedError("the connection is closed")
        if deadline is None:
            self._socket.settimeout(0)
            return
        remaining_seconds = deadline.remaining_seconds()
        if remaining_seconds <= 0:
            raise TimeoutError
        self._socket.settimeout(remaining_seconds)

    def give_up(self, reason: str) -> RequestTimeoutError:
        """Close it, with this as the reason for all that await their answers on it."""
        error = RequestTimeoutError(f"{self.address}: {reason}")
        self._fail(error)
        return error

    def _fail(self, error: E) -> E:
        """Close it; those that await their answers on it fail alike."""
        self.close()
        self._failure = self._failure or error
        return error

    def _failed(self, error: OSError, doing: str) -> KafkaError:
        self.close()
        return self._fail(self._failure_of(error, doing))

    def _failure_of(self, error: OSError, doing: str) -> KafkaError:
        if isinstance(error, TimeoutError):
            return RequestTimeoutError(f"{self.address}: timed out {doing}{self._silence()}")
        tls = self._settings.security.tls
        if tls is not None and isinstance(error, ssl.SSLError):
            found = tls_failure(error, self.address, tls)
            if found is not None:
                return found
        hung_up = isinstance(error, ssl.SSLEOFError | ConnectionResetError)
        if hung_up and self._is_set_up and not self._is_proven:
            mechanisms = _mechanisms_of(self.address, self._settings)
            if mechanisms:
                return expects_sasl(self.address, mechanisms, tls=tls is not None)
        text = f"{self.address}: {error.strerror or error} while {doing}"
        return ConnectionFailedError(text + (self._suspicion() if hung_up else ""))

    def _silence(self) -> str:
        """What may be the matter where the port took the connection, and then said nothing."""
        if self.is_heard:
            return ""
        return (
            " (it took the connection and said nothing: is it a broker's listener, and one for "
            f"this '{PROTOCOL_OPTION}'?)"
        )

    def _suspicion(self) -> str:
        """What a listener may miss that hangs up on a client before it answered a question."""
        tls = self._settings.security.tls
        if self._is_proven or self._is_set_up:
            return ""
        if tls is None:
            expected = f"TLS ('{PROTOCOL_OPTION}')"
        elif not tls.has_key:
            expected = "a certificate of the client's ('kafka.ssl.keystore.location')"
        else:
            return ""
        return f" (does this listener expect {expected}?)"

    def _hung_up(self) -> bool:
        """With nothing in flight, a readable socket can only be telling of its end."""
        # TLS cannot peek; but what is read in its place is of no use, and the connection ends.
        flags = 0 if isinstance(self._socket, ssl.SSLSocket) else socket.MSG_PEEK
        try:
            self._socket.settimeout(0)
            self._socket.recv(1, flags)
        except (BlockingIOError, InterruptedError, ssl.SSLWantReadError):
            return False
        except OSError:
            pass
        self.close()
        return True


def _mechanisms_of(address: Address, settings: ConnectionSettings) -> list[str]:
    """Those of a listener that expects SASL; none of any other. No secret goes out."""
    deadline = Deadline.after_ms(_PROBE_TIMEOUT_MS)
    try:
        connection = Connection.connect(address, settings, deadline)
    except KafkaError:
        return []
    connection._is_proven = True  # One that hangs up on this, too, is not asked once more.
    try:
        # Which one does not matter: the answer names all that there are.
        return connection.request(SaslHandshakeRequest("PLAIN"), deadline).mechanisms
    except KafkaError:
        return []
    finally:
        connection.close()


def _answers_without_tls(
    address: Address, settings: ConnectionSettings, deadline: Deadline
) -> bool:
    """Asks for the versions and nothing else: no secret goes out."""
    deadline = deadline.within_ms(_PROBE_TIMEOUT_MS)
    try:
        Connection.connect(
            address, replace(settings, security=SecuritySettings()), deadline
        ).close()
    except KafkaError:
        return False
    return True


def _buffer_bytes(settings: ConnectionSettings) -> dict[int, int]:
    return {
        socket.SO_RCVBUF: settings.receive_buffer_bytes,
        socket.SO_SNDBUF: settings.send_buffer_bytes,
    }
