"""What an answer says, as plain values by path, so that two brokers' answers can be compared."""

import dataclasses
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from spark_kafka_source.errors import error_code
from spark_kafka_source.records import batches
from spark_kafka_source.topic_partition import TopicPartition
from tests.memory_broker.sides import Side

NOT_COMPARED = {
    "throttle_time_ms": "quotas are a broker's own",
    "error_message": "words, which nobody reads but people",
    "host": "where the broker is",
    "port": "where the broker is",
    "rack": "where the broker is",
    "heartbeat_interval_ms": "a broker's own setting",
    "cluster_id": "the double has none",
    "controller_id": "the double has none",
    "client_id": "the double does not keep it",
    "client_host": "the double does not keep it",
}
"""Fields of any answer, and why they may differ."""

_NODE_IDS = {"node_id", "leader_id", "preferred_read_replica", "replica_nodes", "isr_nodes"}
_NODE = "a node"

Said = dict[str, object]


def said(side: Side, answer: Any) -> Said:
    """Each field by its path, in the words of the conversation; lists are in no order."""
    return dict(_fields(side, answer, type(answer).__name__))


def _fields(side: Side, value: Any, path: str) -> Iterator[tuple[str, object]]:
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            if field.name not in NOT_COMPARED:
                yield from _fields(side, getattr(value, field.name), f"{path}.{field.name}")
    elif isinstance(value, list):
        parts = sorted((dict(_fields(side, each, "")) for each in value), key=str)
        yield f"{path}[]", len(parts)
        for place, part in enumerate(parts):
            yield from ((f"{path}[{place}]{rest}", found) for rest, found in part.items())
    else:
        yield path, _word(side, value, path.rpartition(".")[2].partition("[")[0])


def _word(side: Side, value: Any, name: str) -> object:
    if name in _NODE_IDS:
        return _NODE if value >= 0 else value
    if name == "error_code":
        return error_code(value).name if value else 0
    if name == "session_id":
        return "a session" if value else 0
    if name == "records":
        return _offsets(value)
    if isinstance(value, str | UUID):
        return side.meanings.get(value, value if isinstance(value, str) or not value.int else "id")
    return bytes(value) if isinstance(value, memoryview) else value


def _offsets(records: memoryview | None) -> list[tuple[int, int]]:
    """The first and the last offset of each batch; no records are said by null and by none."""
    found = batches(memoryview(records or b""), TopicPartition("", 0), check_crcs=True)
    return [(each.base_offset, each.base_offset + each.last_offset_delta) for each, _ in found]


def differences(kafka: Said, memory: Said) -> list[str]:
    """A line for each field in which the two differ."""
    return [
        f"{path}: Kafka {kafka.get(path, '-')!r}, in memory {memory.get(path, '-')!r}"
        for path in dict.fromkeys([*kafka, *memory])
        if kafka.get(path, "-") != memory.get(path, "-")
    ]
