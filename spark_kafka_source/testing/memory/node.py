"""One node: a listening socket and its connections, in the event loop of the broker's thread."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from spark_kafka_source.errors import ProtocolError
from spark_kafka_source.logs import logger_of
from spark_kafka_source.protocol import (
    Request,
    RequestHeader,
    Response,
    ResponseHeader,
    decode_prefix,
    encode,
    request_header_version,
    response_header_version,
    versions,
)
from spark_kafka_source.protocol.messages.api_versions import ApiVersionsRequest
from spark_kafka_source.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from spark_kafka_source.testing.memory.answers import Action, Raw, code
from spark_kafka_source.testing.memory.cluster import (
    HOST,
    REQUESTS,
    MemoryCluster,
    RefusedError,
    Verify,
)
from spark_kafka_source.testing.memory.link import Link, PlainLink, TlsLink

# `socket.request.max.bytes`
_MOST_BYTES = 100 * 1024 * 1024

Respond = Callable[[int, Request[Any], int], Awaitable[Response | Raw | Action]]

_log = logger_of(__name__)


class _Received(NamedTuple):
    """A request as it came in. Its answer needs the version and the correlation id."""

    request: Request[Any]
    version: int
    correlation_id: int


class Guard:
    """The authentication of one connection."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self._verify: Verify | None = None
        self._said: list[bytes] = []
        self._is_in = not cluster.mechanisms

    def lets_in(self, request: Request[Any]) -> bool:
        """Return whether a request is allowed: a stranger may ask for versions or authenticate."""
        for_all = (ApiVersionsRequest, SaslHandshakeRequest, SaslAuthenticateRequest)
        return self._is_in or isinstance(request, for_all)

    def answer(self, request: Request[Any]) -> Response:
        """Answer SaslHandshake or SaslAuthenticate."""
        if isinstance(request, SaslHandshakeRequest):
            return self._handshake(request)
        assert isinstance(request, SaslAuthenticateRequest)
        if self._verify is None:
            return SaslAuthenticateResponse(code("ILLEGAL_SASL_STATE"), None)
        self._said.append(request.auth_bytes)
        try:
            challenge = self._verify(self._said)
        except RefusedError as refused:
            return SaslAuthenticateResponse(code("SASL_AUTHENTICATION_FAILED"), str(refused))
        self._is_in = challenge is None
        lifetime_ms = self._cluster.session_lifetime_ms if self._is_in else 0
        return SaslAuthenticateResponse(0, None, challenge or b"", lifetime_ms)

    def _handshake(self, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
        names = list(self._cluster.mechanisms)
        if not names:
            return SaslHandshakeResponse(code("ILLEGAL_SASL_STATE"))
        self._verify, self._said = self._cluster.mechanisms.get(request.mechanism), []
        known = 0 if self._verify else code("UNSUPPORTED_SASL_MECHANISM")
        return SaslHandshakeResponse(known, names)


class Node:
    """A node: it reads and writes frames, and `respond` answers. Only for the event loop."""

    def __init__(
        self,
        node_id: int,
        cluster: MemoryCluster,
        respond: Respond,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.node_id = node_id
        self.port = 0
        self.accepted = 0
        self.error: BaseException | None = None
        self._cluster, self._respond, self._tls = cluster, respond, tls
        self._listening: socket.socket | None = None
        self._reserved: socket.socket | None = None
        self._conversations: dict[asyncio.Task[None], socket.socket] = {}
        self._running = asyncio.Event()
        self._running.set()

    async def start(self) -> int:
        """Listen: on a free port at first, on the same port after `stop`."""
        self._listening, self._reserved = self._reserved or _reserve(self.port), None
        _reuse(self._listening, is_on=True)
        self._listening.listen()
        self._listening.setblocking(False)
        self.port = int(self._listening.getsockname()[1])
        asyncio.get_running_loop().add_reader(self._listening, self._accept)
        return self.port

    async def stop(self) -> None:
        """Stop listening, and close all connections. Keep the port, which refuses connections."""
        if self._listening is not None:
            asyncio.get_running_loop().remove_reader(self._listening)
            self._listening.close()
            self._listening, self._reserved = None, _reserve(self.port)
        await self.hang_up()

    async def pause(self) -> None:
        """Answer nothing until `resume`."""
        self._running.clear()

    async def resume(self) -> None:
        """Go on answering."""
        self._running.set()

    async def close(self) -> None:
        """Stop, and give the port back."""
        await self.stop()
        if self._reserved is not None:
            self._reserved.close()

    async def hang_up(self) -> None:
        """Close all connections, but go on listening."""
        ended = dict(self._conversations)
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)
        for link in ended.values():  # A task that never began has not closed its link.
            link.close()

    def _accept(self) -> None:
        assert self._listening is not None
        with contextlib.suppress(BlockingIOError):
            link, _ = self._listening.accept()
            link.setblocking(False)
            self.accepted += 1
            task = asyncio.get_running_loop().create_task(self._converse(link))
            self._conversations[task] = link
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._conversations[task]
        # Ask each task: asyncio reports an exception that nothing retrieves.
        error = None if task.cancelled() else task.exception()
        self.error = self.error or error

    async def _converse(self, link: socket.socket) -> None:
        with link, contextlib.suppress(ConnectionError):
            through = await self._link(link)
            guard = Guard(self._cluster)
            while await self._answer_next(through, guard):
                pass

    async def _link(self, link: socket.socket) -> Link:
        if self._tls is None:
            return PlainLink(link)
        through = TlsLink(link, self._tls)
        await through.handshake()
        return through

    async def _answer_next(self, link: Link, guard: Guard) -> bool:
        """Answer one request. Return whether the connection stays open."""
        size = int.from_bytes(await _read(link, 4))
        if size > _MOST_BYTES:
            return False
        received = self._received(await _read(link, size))
        if received is None:
            return False
        request, version, correlation_id = received
        if not guard.lets_in(request):
            return False
        await self._running.wait()
        answer = await self._respond(self.node_id, request, version)
        if answer is Action.AUTHENTICATE:
            answer = guard.answer(request)
        if answer is Action.SILENCE:
            await asyncio.Event().wait()
        if isinstance(answer, Action):
            return answer is Action.NO_ANSWER
        data = (
            answer.data
            if isinstance(answer, Raw)
            else _frame(type(request), version, correlation_id, answer)
        )
        await self._running.wait()
        await link.sendall(data)
        return not (isinstance(answer, Raw) and answer.close)

    def _received(self, frame: bytes) -> _Received | None:
        """Decode a request. None means that the node hangs up, as a real broker does.

        Bytes after a request are no fault, as on real brokers: librdkafka 2.16 sends some.
        """
        request_type = REQUESTS.get(int.from_bytes(frame[:2]))
        version = int.from_bytes(frame[2:4])
        if request_type is None or not self._speaks(request_type, version):
            return None
        header_version = request_header_version(request_type, version)
        try:
            header, body = decode_prefix(RequestHeader, header_version, frame)
            if version in versions(request_type):
                request, _ = decode_prefix(request_type, version, body)
            else:  # The answer to an unknown version of ApiVersions is an error (KIP-511).
                request = request_type()
        except ProtocolError as error:
            _log.warning("Broker %d hangs up on a client's bad request: %s", self.node_id, error)
            return None
        return _Received(request, version, header.correlation_id)

    def _speaks(self, request_type: type[Request[Any]], version: int) -> bool:
        """Return whether the node offers a version. Else it hangs up, as a real broker does."""
        spoken = self._cluster.versions[request_type.KEY].common(versions(request_type))
        return request_type is ApiVersionsRequest or version in spoken


async def _read(link: Link, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = await link.recv(size - len(data))
        if not part:
            raise ConnectionResetError
        data += part
    return bytes(data)


def _frame(
    request_type: type[Request[Any]], version: int, correlation_id: int, response: Response
) -> bytes:
    header_version = response_header_version(request_type, version)
    refused = getattr(response, "error_code", 0) == code("UNSUPPORTED_VERSION")
    if request_type is ApiVersionsRequest and refused:
        version = 0  # Any client can read version 0 (KIP-511).
    content = encode(ResponseHeader(correlation_id), header_version) + encode(response, version)
    return len(content).to_bytes(4) + content


def _reserve(port: int) -> socket.socket:
    """Return a socket that holds the port, or a free one for 0, and does not listen.

    Without it another test's broker, or the near end of any connection, could take the port of a
    stopped node before the node starts again.
    """
    reserved = socket.socket()
    # The kernel keeps connections that the node closed on the port for a while.
    _reuse(reserved, is_on=True)
    reserved.bind((HOST, port))
    _reuse(reserved, is_on=False)
    return reserved


def _reuse(bound: socket.socket, *, is_on: bool) -> None:
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, is_on)
