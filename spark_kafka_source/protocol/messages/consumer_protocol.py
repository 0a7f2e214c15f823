"""Messages between consumers of one group. The coordinator passes them on without reading them.

They are the metadata in JoinGroup and the assignment in SyncGroup. Each begins with its version. No
version is flexible. A version newer than ours is read as ours: new versions only add fields at the
end.
https://github.com/apache/kafka/blob/trunk/clients/src/main/resources/common/message/ConsumerProtocolSubscription.json
"""

from typing import TypeVar

from spark_kafka_source.errors import ProtocolError
from spark_kafka_source.protocol.codec import decode_prefix, encode
from spark_kafka_source.protocol.declaration import Message, array, message, versions, wire
from spark_kafka_source.protocol.wire import BYTES, INT32, STRING

PROTOCOL_TYPE = "consumer"
"""The protocol type in JoinGroup for groups whose members exchange these messages."""

_VERSION_BYTES = 2

M = TypeVar("M", bound=Message)


@message
class ConsumerProtocolSubscription(Message):
    """Topics that a member subscribes to, and partitions that it owns."""

    @message
    class TopicPartition:
        """Partitions of one topic that the member owns."""

        topic: str = wire(STRING, "1+")
        partitions: list[int] = wire(array(INT32), "1+")

    VERSIONS, FLEXIBLE = "0-3", "none"
    topics: list[str] = wire(array(STRING), "0+")
    user_data: bytes | None = wire(BYTES, "0+", nullable="0+", default=None)
    owned_partitions: list[TopicPartition] = wire(array(TopicPartition), "1+", ignorable=True)
    generation_id: int = wire(INT32, "2+", default=-1, ignorable=True)
    rack_id: str | None = wire(STRING, "3+", nullable="3+", default=None, ignorable=True)


@message
class ConsumerProtocolAssignment(Message):
    """Partitions assigned to a member."""

    @message
    class TopicPartition:
        """Partitions of one topic that the member is to read."""

        topic: str = wire(STRING, "0+")
        partitions: list[int] = wire(array(INT32), "0+")

    VERSIONS, FLEXIBLE = "0-3", "none"
    assigned_partitions: list[TopicPartition] = wire(array(TopicPartition), "0+")
    user_data: bytes | None = wire(BYTES, "0+", nullable="0+", default=None)


def encode_versioned(message: Message) -> bytes:
    """Encode a message in its newest version, with the version before it."""
    newest = versions(type(message)).highest
    return newest.to_bytes(_VERSION_BYTES) + encode(message, newest)


def decode_versioned(message_type: type[M], data: bytes | memoryview) -> M:
    """Decode a message in the version that `data` names, or in the newest known version.

    Bytes after the message belong to later versions, and are ignored. Raises `ProtocolError`.
    """
    name, known = message_type.__name__, versions(message_type)
    if len(data) < _VERSION_BYTES:
        raise ProtocolError(f"{name}: {len(data)} bytes, where its version takes {_VERSION_BYTES}")
    version = int.from_bytes(data[:_VERSION_BYTES], signed=True)
    if version < known.lowest:
        raise ProtocolError(f"{name}: version {version}, where {known.lowest} is the least")
    message, _ = decode_prefix(
        message_type, min(version, known.highest), memoryview(data)[_VERSION_BYTES:]
    )
    return message
