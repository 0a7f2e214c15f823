"""Message indexes: they say which message of a schema a value is, in Confluent's framing.

A count and that many indexes, all zigzag varints. `[1, 0]` is the first message within the second
message of the file. `[0]`, the first message of the file, is the single byte 0.
https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html
"""

from spark_kafka_source.records.varints import encode_varint
from spark_kafka_source.values.protobuf.schema import Schema
from spark_kafka_source.values.protobuf.wire import MAX_VARINT_BYTES, WireError, varint

MAX_INDEXES = 64
_MAX_INDEX = (1 << 31) - 1


def message_indexes(schema: Schema, message: str) -> bytes:
    """Return the bytes before each value of this message.

    Raises `SchemaError` if it is imported.
    """
    indexes = schema.indexes(message)
    if indexes == (0,):
        return b"\0"
    return b"".join(map(encode_varint, (len(indexes), *indexes)))


def read_message_indexes(
    data: bytes, at: int = 0, *, deprecated: bool = False
) -> tuple[tuple[int, ...], int]:
    """Return the indexes at a position, and the position after them. A count of 0 gives (0,).

    `deprecated` reads indexes without zigzag, as `use.deprecated.format` writes them. Raises
    `ValueError` for bad indexes, and for more than `MAX_INDEXES`.
    """
    count, after = _number(data, at, deprecated)
    if count > MAX_INDEXES:
        raise WireError(f"{count} message indexes")
    read = []
    for _ in range(count):
        index, after = _number(data, after, deprecated)
        read.append(index)
    return tuple(read) or (0,), after


def _number(data: bytes, at: int, deprecated: bool) -> tuple[int, int]:
    varint_read, after = varint(data[: at + MAX_VARINT_BYTES], at)
    value = varint_read if deprecated else (varint_read >> 1) ^ -(varint_read & 1)
    if not 0 <= value <= _MAX_INDEX:
        raise WireError(f"the message index {value}")
    return value, after
