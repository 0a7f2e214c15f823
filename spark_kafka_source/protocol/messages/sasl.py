"""Authentication: SaslHandshake and SaslAuthenticate (KIP-43, KIP-152, KIP-368)."""

from spark_kafka_source.protocol.declaration import Request, Response, array, message, wire
from spark_kafka_source.protocol.wire import BYTES, INT16, INT64, STRING


@message
class SaslHandshakeResponse(Response):
    """Answer that says whether the mechanism is enabled, and lists the enabled mechanisms."""

    error_code: int = wire(INT16, "0+")
    mechanisms: list[str] = wire(array(STRING), "0+")


@message
class SaslHandshakeRequest(Request[SaslHandshakeResponse]):
    """Choice of the mechanism. After v0 bare tokens follow, after v1 SaslAuthenticate."""

    KEY, VERSIONS, FLEXIBLE = 17, "0-1", "none"
    mechanism: str = wire(STRING, "0+")


@message
class SaslAuthenticateResponse(Response):
    """Next message of the broker. The last one has the lifetime of the session (0: unlimited)."""

    error_code: int = wire(INT16, "0+")
    error_message: str | None = wire(STRING, "0+", nullable="0+")
    auth_bytes: bytes = wire(BYTES, "0+", secret=True)
    session_lifetime_ms: int = wire(INT64, "1+", ignorable=True)


@message
class SaslAuthenticateRequest(Request[SaslAuthenticateResponse]):
    """Next message of the client, in the format of the mechanism."""

    KEY, VERSIONS, FLEXIBLE = 36, "0-2", "2+"
    auth_bytes: bytes = wire(BYTES, "0+", secret=True)
