"""Answers as plain values by path, so that two brokers' answers can be compared."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from spark_kafka_source.errors import error_code
from spark_kafka_source.protocol.wire import ZERO_UUID
from spark_kafka_source.records import batches
from spark_kafka_source.topic_partition import TopicPartition
from tests.testing.memory.sides import FIRST_TIMESTAMP_MS, Side

NOT_COMPARED = {
    "throttle_time_ms": "quotas are a broker's own",
    "error_message": "words, which nobody reads but people",
    "host": "where the broker is",
    "port": "where the broker is",
    "rack": "where the broker is",
    "node_id": "the double's first is 0, Kafka's 1",
    "replica_nodes": "the double's first is 0, Kafka's 1",
    "isr_nodes": "the double's first is 0, Kafka's 1",
    "heartbeat_interval_ms": "a broker's own setting",
    "cluster_id": "the double has none",
    "controller_id": "the double has none",
    "current_leader": "the double leaves out this hint at the new leader (KIP-951)",
    "node_endpoints": "the double leaves out this hint at the new leader (KIP-951)",
    "transaction_start_time_ms": "a broker's own clock",
    "last_timestamp": "the double has no clock",
    "coordinator_epoch": "the double has none",
    "assignment_epoch": "the double assigns at once",
    "client_id": "the double does not keep it",
    "client_host": "the double does not keep it",
}
"""Fields that are not compared, and why they may differ."""

_NAMES = (
    "topic",
    "name",
    "topic_id",
    "group_id",
    "key",
    "member_id",
    "transactional_id",
    "producer_id",
)
_NUMBERS = ("partition_index", "partition", "index")
"""Fields that identify the elements of a list. The order of a list is not compared."""
_NODE_IDS = {"leader_id", "preferred_read_replica"}
"""Fields whose default, 0, is a node's id."""

_LAST_TIMESTAMP_MS = FIRST_TIMESTAMP_MS + 1_000_000
"""No record of `Append` has a later time."""

Said = dict[str, object]


def said(side: Side, answer: Any) -> Said:
    """Return each field without its default value, by its path, with the conversation's names."""
    return dict(_fields(side, answer, type(answer).__name__))


def _fields(side: Side, value: Any, path: str) -> Iterator[tuple[str, object]]:
    for field in dataclasses.fields(value) if dataclasses.is_dataclass(value) else ():
        found, its_path = getattr(value, field.name), f"{path}.{field.name}"
        if field.name in NOT_COMPARED:
            continue
        if dataclasses.is_dataclass(found):
            yield from _fields(side, found, its_path)
        elif isinstance(found, list):
            for each in found:
                yield from _element(side, each, its_path)
        elif found != field.default or field.name in _NODE_IDS:
            yield its_path, _word(side, found, field.name)


def _element(side: Side, value: Any, path: str) -> Iterator[tuple[str, object]]:
    """Yield the fields of a list's element, by its identity. Equal identities count as one."""
    if not dataclasses.is_dataclass(value):
        yield f"{path}[{_word(side, value, path)}]", "there"
        return
    names = [(getattr(value, each, None), each) for each in _NAMES]
    numbers = [getattr(value, each) for each in _NUMBERS if hasattr(value, each)]
    known = [_word(side, each, name) for each, name in names if each and each != ZERO_UUID]
    path = f"{path}[{'-'.join(map(str, [*known, *numbers]))}]"
    yield path, "there"
    yield from _fields(side, value, path)


_WORDS: dict[str, Callable[[Side, Any], object]] = {
    # KIP-848 epochs count from the first epoch, which is not 1 in all versions of Kafka.
    "member_epoch": lambda side, value: value - side.first_epoch + 1 if value > 0 else value,
    "group_epoch": lambda side, value: value - side.first_epoch + 1,
    "leader_id": lambda _, value: _node(value),
    "preferred_read_replica": lambda _, value: _node(value),
    "error_code": lambda _, value: error_code(value).name,
    "producer_id": lambda side, value: side.meanings.get(("producer id", value), value),
    # Producers' records have the present time, and a marker has its broker's.
    "timestamp": lambda _, value: value if value <= _LAST_TIMESTAMP_MS else "about now",
    "session_id": lambda _, value: "a session" if value else 0,
    "records": lambda _, value: _offsets(value),
}


def _word(side: Side, value: Any, name: str) -> object:
    if name in _WORDS:
        return _WORDS[name](side, value)
    if isinstance(value, str | UUID):
        return side.meanings.get(value, value)
    return bytes(value) if isinstance(value, memoryview) else value


def _node(node_id: int) -> str:
    return "a node" if node_id >= 0 else "none"


def _offsets(records: memoryview | None) -> list[tuple[int, int]]:
    """Return the first and the last offset of each batch."""
    found = batches(memoryview(records or b""), TopicPartition("", 0), check_crcs=True)
    return [(each.base_offset, each.base_offset + each.last_offset_delta) for each, _ in found]


def differences(kafka: Said, memory: Said) -> list[str]:
    """Return a line for each field that differs."""
    return [
        f"{path}: Kafka {kafka.get(path)!r}, in memory {memory.get(path)!r}"
        for path in dict.fromkeys([*kafka, *memory])
        if kafka.get(path) != memory.get(path)
    ]
