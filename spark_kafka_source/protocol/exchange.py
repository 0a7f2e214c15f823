"""Conversation on one connection, without IO: versions, correlation ids, frames.

See https://kafka.apache.org/protocol#protocol_network, KIP-511 for the agreement on versions, and
KIP-896 for the oldest supported broker.
"""

import re
from collections import deque
from functools import cache
from typing import Any, NamedTuple

from spark_kafka_source.denials import refusal
from spark_kafka_source.errors import (
    LocalError,
    ProtocolError,
    UnsupportedVersionError,
    error_named,
)
from spark_kafka_source.logs import logger_of
from spark_kafka_source.protocol.codec import decode, decode_prefix, encode_into
from spark_kafka_source.protocol.declaration import (
    Message,
    Need,
    Request,
    Response,
    Versions,
    is_flexible,
    message,
    versions,
    wire,
)
from spark_kafka_source.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from spark_kafka_source.protocol.wire import INT16, INT32, NEVER_COMPACT_STRING, Writer
from spark_kafka_source.version import VERSION


@message
class RequestHeader(Message):
    """Header before each request.

    `client_id` is never compact, so that any broker can read the header of an `ApiVersionsRequest`
    newer than itself (KIP-511).
    """

    VERSIONS, FLEXIBLE = "1-2", "2+"
    request_api_key: int = wire(INT16, "0+")
    request_api_version: int = wire(INT16, "0+")
    correlation_id: int = wire(INT32, "0+")
    client_id: str | None = wire(NEVER_COMPACT_STRING, "1+", nullable="1+")


@message
class ResponseHeader(Message):
    """Header before each response."""

    VERSIONS, FLEXIBLE = "0-1", "1+"
    correlation_id: int = wire(INT32, "0+")


def request_header_version(request_type: type[Request[Any]], version: int) -> int:
    """Return the version of the header before this version of a request."""
    return 2 if is_flexible(request_type, version) else 1


def response_header_version(request_type: type[Request[Any]], version: int) -> int:
    """Return the version of the header before the response to this version of a request.

    For ApiVersions it is always 0: the broker may not know the version of the request (KIP-511).
    """
    return int(is_flexible(request_type, version) and request_type is not ApiVersionsRequest)


logger = logger_of(__name__)

CLIENT_SOFTWARE_NAME = "spark-kafka-source"
MAX_RESPONSE_BYTES = 256 * 1024 * 1024
"""The default for the largest response taken. A broker refuses requests of 100 MiB."""

_INT32_MAX = 0x7FFFFFFF
_UNSUPPORTED_VERSION = error_named("UNSUPPORTED_VERSION").code
_SIZE_BYTES = 4
_CORRELATION_ID_BYTES = 4
# The first bytes of other protocols, which are then read as the size of a frame.
_OTHER_PROTOCOLS = (
    (
        rb"[\x15\x16]\x03[\x00-\x04]",
        "this looks like TLS; set 'kafka.security.protocol' to SSL, or to SASL_SSL with a login",
    ),
    (rb"HTTP", "this looks like an HTTP server; see 'kafka.bootstrap.servers'"),
    (rb"SSH-", "this looks like an SSH server; see 'kafka.bootstrap.servers'"),
)


class _Expected(NamedTuple):
    """Request without a response so far."""

    correlation_id: int
    version: int
    request_type: type[Request[Any]]


class OtherServerError(ProtocolError):
    """Received bytes of another protocol: the port is another server's, or speaks TLS."""


class Exchange:
    """Conversation on one connection: the versions, and the requests without a response.

    Feed it bytes in the order of their arrival. After a `ProtocolError` the stream cannot be
    trusted: close the connection.
    """

    def __init__(self, client_id: str, max_response_bytes: int = MAX_RESPONSE_BYTES) -> None:
        self._client_id = client_id
        self._max_response_bytes = max_response_bytes
        self._next_correlation_id = 0
        self._expected: deque[_Expected] = deque()
        self._broker: dict[int, Versions] | None = None
        self.api_versions_version = versions(ApiVersionsRequest).highest
        """The version in which the versions of the broker are asked for."""

    # -- asking ------------------------------------------------------------------------------------

    def request_frame(
        self, request: Request[Any], *, max_version: int | None = None
    ) -> list[memoryview]:
        """Return the whole frame of a request, in the highest version that both sides support.

        The frame is a list of pieces to send one after the other. No piece is empty. The records of
        a `ProduceRequest` are the caller's own bytes, which must not change until they are sent.
        `max_version` limits the version. The client's software name and version are filled in.

        Raises `UnsupportedVersionError` if there is no common version, or if that version lacks a
        field that is set, or what the request needs. Raises `LocalError` if the broker's versions
        are not known yet, or if a value does not fit its field. An error leaves the conversation
        unchanged.
        """
        request_type = type(request)
        version = self.version(request_type, max_version=max_version)
        need = request.need()
        if need is not None and version < need.version:
            raise UnsupportedVersionError(_too_old(request_type, need, version))
        if isinstance(request, ApiVersionsRequest) and not request.client_software_name:
            names = CLIENT_SOFTWARE_NAME, VERSION
            request = ApiVersionsRequest(*names, request.cluster_id, request.node_id)
        header = RequestHeader(request.KEY, version, self._next_correlation_id, self._client_id)
        frame = Writer(bytes(_SIZE_BYTES))
        encode_into(frame, header, request_header_version(request_type, version))
        encode_into(frame, request, version)
        pieces = frame.pieces()
        size = sum(map(len, pieces)) - _SIZE_BYTES
        if size > _INT32_MAX:
            raise LocalError(f"{request_type.__name__} takes {size} bytes, over 2 GiB")
        frame[:_SIZE_BYTES] = size.to_bytes(_SIZE_BYTES)
        if request.expects_answer:
            self._expected.append(_Expected(self._next_correlation_id, version, request_type))
        self._next_correlation_id = (self._next_correlation_id + 1) & _INT32_MAX
        return pieces

    def version(self, request_type: type[Request[Any]], *, max_version: int | None = None) -> int:
        """Return the version in which a request is sent. Raises as `request_frame` does."""
        common = self._common(request_type)
        if max_version is not None:
            common = common.common(Versions(0, max_version))
        if not common:
            raise UnsupportedVersionError(self._no_common_version(request_type, max_version))
        return common.highest

    def supports(self, request_type: type[Request[Any]], version: int) -> bool:
        """Whether both sides support `version`. Raises `LocalError` before versions are known."""
        return version in self._common(request_type)

    def _common(self, request_type: type[Request[Any]]) -> Versions:
        ours = versions(request_type)
        if self._broker is not None:
            return ours.common(self._broker.get(request_type.KEY, Versions.parse("none")))
        if request_type is ApiVersionsRequest:
            return ours.common(Versions(0, self.api_versions_version))
        raise LocalError(f"{_name(request_type)}: the versions of the broker are not known yet")

    def _no_common_version(self, request_type: type[Request[Any]], limit: int | None) -> str:
        ours = versions(request_type)
        broker = (self._broker or {}).get(request_type.KEY)
        if broker is None:
            return f"{_name(request_type)}: the broker does not have this API"
        text = f"{_name(request_type)}: this client speaks versions {ours}, the broker {broker}"
        if broker.highest < ours.lowest:
            return f"{text}: it is older than Apache Kafka 2.1, the oldest supported (KIP-896)"
        if broker.lowest > ours.highest:
            return f"{text}: it is newer than this package knows"
        return f"{text}; {limit} at most was asked for"

    # -- hearing -----------------------------------------------------------------------------------

    def frame_size(self, prefix: bytes) -> int:
        """Return the size of a response's frame, from its first four bytes.

        Raises `ProtocolError` if the size is negative or too large, or if the bytes are not
        Kafka's.
        """
        for pattern, meaning in _OTHER_PROTOCOLS:
            if re.match(pattern, prefix):
                raise OtherServerError(f"the answer begins with {prefix!r}: {meaning}")
        size = int.from_bytes(prefix, "big", signed=True)
        if not _CORRELATION_ID_BYTES <= size <= self._max_response_bytes:
            expected = f"{_CORRELATION_ID_BYTES} to {self._max_response_bytes}"
            raise ProtocolError(f"an answer of {size} bytes is announced, expected {expected}")
        return size

    def response(self, frame: memoryview) -> tuple[int, Response]:
        """Return the correlation id and the response in a whole frame (without its size).

        Records are views of `frame`. Raises `ProtocolError` also if the response does not belong to
        the oldest request: a broker answers requests in their order.
        """
        if not self._expected:
            raise ProtocolError(f"an answer of {len(frame)} bytes to no request")
        correlation_id, version, request_type = self._expected[0]
        header_version = response_header_version(request_type, version)
        header, body = decode_prefix(ResponseHeader, header_version, frame)
        if header.correlation_id != correlation_id:
            found = f"the answer's correlation id is {header.correlation_id}"
            raise ProtocolError(f"{_name(request_type)}: {found}, expected {correlation_id}")
        if request_type is ApiVersionsRequest:
            response: Response = _api_versions(version, body)
        else:
            response, rest = decode_prefix(request_type.RESPONSE, version, body)
            if rest:
                _warn_of_rest(f"{request_type.RESPONSE.__name__} v{version}")
        self._expected.popleft()
        return correlation_id, response

    def api_versions(self, response: ApiVersionsResponse) -> bool:
        """Learn the versions that the broker supports. Return whether to ask again.

        UNSUPPORTED_VERSION lowers the version of the next `ApiVersionsRequest`, to one that the
        broker says it knows. After an answer never ask again: before a login, Kafka hangs up on a
        second question. Raises `UnsupportedVersionError` if there is no lower version to try, and
        `BrokerError` for any other error code.
        """
        ranges = {
            api.api_key: _range(api.min_version, api.max_version) for api in response.api_keys
        }
        if response.error_code == _UNSUPPORTED_VERSION:
            self._fall_back(ranges.get(ApiVersionsRequest.KEY, Versions(0, 0)))
            return True
        if response.error_code:
            raise refusal(response.error_code, "ApiVersions")
        self._broker = ranges
        return False

    def _fall_back(self, broker: Versions) -> None:
        """Lower the version.

        Each step goes down, so a broker that refuses all is not asked forever.
        """
        lower = (
            versions(ApiVersionsRequest)
            .common(broker)
            .common(Versions(0, self.api_versions_version - 1))
        )
        if not lower:
            tried = f"the broker refused version {self.api_versions_version}"
            raise UnsupportedVersionError(f"ApiVersions: {tried} and speaks {broker}")
        self.api_versions_version = lower.highest


def _range(lowest: int, highest: int) -> Versions:
    if not 0 <= lowest <= highest:
        raise ProtocolError(f"ApiVersions: a range of versions from {lowest} to {highest}")
    return Versions(lowest, highest)


def _too_old(request_type: type[Message], need: Need, version: int) -> str:
    return (
        f"{_name(request_type)}: {need.what} needs version {need.version}, which Apache Kafka "
        f"{need.kafka} and newer have; this broker takes versions up to {version}"
    )


def _name(request_type: type[Message]) -> str:
    return request_type.__name__.removesuffix("Request")


@cache
def _warn_of_rest(what: str) -> None:
    """Warn of bytes after a response, once. Other clients take such responses, too."""
    logger.warning("%s: bytes after the end of an answer are ignored", what)


def _api_versions(version: int, body: memoryview) -> ApiVersionsResponse:
    """Decode the answer to an `ApiVersionsRequest`.

    UNSUPPORTED_VERSION is in v0, whatever the version of the request (KIP-511). librdkafka's mock
    cluster has it in another form. Then take it that the broker may know any lower version.
    """
    if int.from_bytes(body[:2], "big") != _UNSUPPORTED_VERSION:
        return decode(ApiVersionsResponse, version, body)
    try:
        return decode(ApiVersionsResponse, 0, body)
    except ProtocolError:
        lower = ApiVersion(ApiVersionsRequest.KEY, 0, max(version - 1, 0))
        return ApiVersionsResponse(_UNSUPPORTED_VERSION, [lower])
