"""All commits of a group, in the order of the brokers' own log.

The records are those of `OffsetCommitKey.json` and `OffsetCommitValue.json` in Kafka's sources.
"""

import struct

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from tests.reliability.timeline import Commit, Where

_TOPIC = "__consumer_offsets"
_KEY_VERSIONS = (0, 1)
_FIRST_COMPACT_VERSION = 4
_METADATA_AT = {0: 10, 1: 10, 2: 10}
_METADATA_AT_SINCE_3 = 14
_PATIENCE_SECONDS = 20.0


def commits_of(servers: str, group_id: str) -> dict[Where, list[Commit]]:
    """Return a group's commits by partition. Ignore tombstones, which the end of a group leaves."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "nobody", "log_level": 0})
    found: dict[Where, list[Commit]] = {}
    try:
        partitions = consumer.list_topics(_TOPIC, _PATIENCE_SECONDS).topics[_TOPIC].partitions
        for partition in partitions:
            where = TopicPartition(_TOPIC, partition, OFFSET_BEGINNING)
            _, end = consumer.get_watermark_offsets(where, _PATIENCE_SECONDS)
            consumer.assign([where])
            while end and _position(consumer, where) < end:
                for message in consumer.consume(1_000, 1.0):
                    _take(message, group_id, found)
    finally:
        consumer.close()
    return found


def _position(consumer: Consumer, where: TopicPartition) -> int:
    position: int = consumer.position([where])[0].offset
    return position


def _take(message: object, group_id: str, found: dict[Where, list[Commit]]) -> None:
    key, value = message.key(), message.value()  # type: ignore[attr-defined]  # it has no types
    (version,) = struct.unpack_from(">h", key)
    if version not in _KEY_VERSIONS or not value:
        return
    group, at = _text(key, 2)
    topic, at = _text(key, at)
    (partition,) = struct.unpack_from(">i", key, at)
    if group == group_id:
        _, at_ms = message.timestamp()  # type: ignore[attr-defined]
        offset, metadata = _offset_and_metadata(value)
        commit = Commit(at_ms, offset, metadata.rstrip("\0"))  # librdkafka adds the zero.
        found.setdefault((topic, partition), []).append(commit)


def _offset_and_metadata(value: bytes) -> tuple[int, str]:
    version, offset = struct.unpack_from(">hq", value)
    at = _METADATA_AT.get(version, _METADATA_AT_SINCE_3)
    if version < _FIRST_COMPACT_VERSION:
        return offset, _text(value, at)[0]
    size = value[at] - 1  # An unsigned varint; one byte for the sizes in these tests.
    return offset, value[at + 1 : at + 1 + size].decode()


def _text(data: bytes, at: int) -> tuple[str, int]:
    (size,) = struct.unpack_from(">h", data, at)
    return data[at + 2 : at + 2 + size].decode(), at + 2 + size
