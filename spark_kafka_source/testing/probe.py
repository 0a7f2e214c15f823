"""A minimal request that asks a broker which brokers of its cluster are in service.

It shares no code with this package's client, since it helps to test the client. Metadata v1:
https://kafka.apache.org/protocol#The_Messages_Metadata
"""

import socket
import struct

from spark_kafka_source.testing.properties import LOOPBACK

_METADATA, _VERSION, _NO_TOPICS = 3, 1, 0
_REQUEST = struct.pack(">hhihi", _METADATA, _VERSION, 0, -1, _NO_TOPICS)
_MAX_ANSWER_BYTES = 1 << 20


def brokers_in_service(port: int, timeout_ms: int) -> set[int]:
    """Return the ids of the brokers that the broker at this port knows and that are not fenced.

    Returns no ids if the broker does not answer, or if its answer is not valid metadata.
    """
    try:
        with socket.create_connection((LOOPBACK, port), timeout_ms / 1000) as connection:
            connection.sendall(struct.pack(">i", len(_REQUEST)) + _REQUEST)
            return _broker_ids(_answer(connection))
    except (OSError, EOFError, struct.error):
        return set()


def _answer(connection: socket.socket) -> bytes:
    with connection.makefile("rb") as stream:
        (size,) = struct.unpack(">i", stream.read(4))
        if not 0 <= size <= _MAX_ANSWER_BYTES:
            raise EOFError
        return stream.read(size)


def _broker_ids(answer: bytes) -> set[int]:
    _, count = struct.unpack_from(">ii", answer)
    ids, at = set(), 8
    for _ in range(min(count, len(answer))):
        node_id, host_bytes = struct.unpack_from(">ih", answer, at)
        (rack_bytes,) = struct.unpack_from(">h", answer, at + 10 + host_bytes)
        at += 12 + host_bytes + max(rack_bytes, 0)
        ids.add(node_id)
    return ids
