"""Responses, of every API in every version: decoded, or refused by an error that names both."""

from spark_kafka_source.errors import ProtocolError
from spark_kafka_source.protocol import Message, ResponseHeader, decode, encode
from tests.protocol.messages import REQUESTS, all_versions

RESPONSES = [
    (message_type, version)
    for message_type in (*(request.RESPONSE for request in REQUESTS), ResponseHeader)
    for version in all_versions(message_type)
]
"""What the first byte of an input chooses from: there are fewer than 256."""


def responses(data: bytes) -> None:
    """A byte for the class and the version, then a message."""
    message_type, version = RESPONSES[data[0] % len(RESPONSES)] if data else RESPONSES[0]
    try:
        message: Message = decode(message_type, version, data[1:])
    except ProtocolError as error:
        assert str(error).startswith(f"{message_type.__name__} v{version}")
        return
    assert decode(message_type, version, encode(message, version)) == message
