"""Headers before each request and each response, https://kafka.apache.org/protocol."""

from typing import Any

from spark_kafka_source.protocol.declaration import Message, Request, is_flexible, message, wire
from spark_kafka_source.protocol.messages.api_versions import ApiVersionsRequest
from spark_kafka_source.protocol.wire import INT16, INT32, NEVER_COMPACT_STRING


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
