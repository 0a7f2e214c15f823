"""Kafka's wire protocol, without IO: messages, each declared once, one codec, one conversation.

A module of `messages` declares the messages of one subject, and is imported by those that send
them: each process of a query imports what it needs. `codec` turns messages into bytes and back.
`exchange` is the conversation on one connection.
"""

from spark_kafka_source.protocol.codec import (
    decode,
    decode_prefix,
    encode,
)
from spark_kafka_source.protocol.declaration import (
    Message,
    Request,
    Response,
    Versions,
    array,
    is_flexible,
    versions,
    wire,
    wire_fields,
)
from spark_kafka_source.protocol.exchange import (
    MAX_RESPONSE_BYTES,
    Exchange,
    OtherServerError,
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from spark_kafka_source.protocol.wire import (
    ZERO_UUID,
    Records,
    RecordsInPieces,
)

__all__ = [
    "MAX_RESPONSE_BYTES",
    "ZERO_UUID",
    "Exchange",
    "Message",
    "OtherServerError",
    "Records",
    "RecordsInPieces",
    "Request",
    "RequestHeader",
    "Response",
    "ResponseHeader",
    "Versions",
    "array",
    "decode",
    "decode_prefix",
    "encode",
    "is_flexible",
    "request_header_version",
    "response_header_version",
    "versions",
    "wire",
    "wire_fields",
]
