"""The orders in which Java goes through texts: that of its hash maps, and that of its sorting.

Kafka's assignors serve members and topics in the order of a `HashMap`, so who gets the odd
partition depends on it. The order is that of the slots in the map's table, and within one that of
insertion: https://docs.oracle.com/en/java/javase/17/docs/api/java.base/java/util/HashMap.html.
(Slots of more than eight keys are not modelled: Java makes a tree of them, or a larger table.)
"""

from collections.abc import Iterable
from struct import unpack

from spark_kafka_source.topic_partition import TopicPartition

_LEAST_SLOTS = 16


def in_hash_order(texts: Iterable[str]) -> list[str]:
    """The texts, each once, as a `HashMap` gives them after each was `put` into it."""
    unique = list(dict.fromkeys(texts))
    return _by_slot(unique, _slots(_LEAST_SLOTS, len(unique)))


def in_hash_order_computed(texts: Iterable[str]) -> list[str]:
    """The same where each was put by `computeIfAbsent`: that goes before all others of its slot,
    and makes the table larger a text later."""
    unique = list(dict.fromkeys(texts))
    return _by_slot(unique[::-1], _slots(_LEAST_SLOTS, len(unique) - 1))


def _by_slot(texts: list[str], slots: int) -> list[str]:
    return sorted(texts, key=lambda text: _spread(_hash_code(text)) & slots - 1)


def sort_key(text: str) -> bytes:
    """What Java compares texts by: UTF-16, which beyond U+FFFF is not the order of characters."""
    return text.encode("utf-16-be", "surrogatepass")


class PartitionSet:
    """Partitions of one topic, of which the first is that of Java's `HashSet`."""

    __slots__ = ("_base", "_hashes", "_slots")

    def __init__(self, topic: str) -> None:
        # As TopicPartition.hashCode() has it.
        self._base = 31 * 31 + _hash_code(topic)
        self._hashes: dict[TopicPartition, int] = {}
        self._slots = _LEAST_SLOTS

    def __len__(self) -> int:
        return len(self._hashes)

    def add(self, partition: TopicPartition) -> None:
        """Puts one in."""
        self._hashes[partition] = _spread((self._base + 31 * partition.partition) & 0xFFFFFFFF)
        # The table of a set that shrinks stays as large as it was.
        self._slots = _slots(self._slots, len(self._hashes))

    def remove(self, partition: TopicPartition) -> None:
        """Takes one out that is in."""
        del self._hashes[partition]

    def first(self) -> TopicPartition:
        """The one that Java's iterator gives first."""
        last_slot = self._slots - 1
        return min(self._hashes, key=lambda partition: self._hashes[partition] & last_slot)


def _slots(slots: int, count: int) -> int:
    """How large a table is that was of so many slots before it took so many keys."""
    while count > slots * 3 // 4:
        slots *= 2
    return slots


def _hash_code(text: str) -> int:
    """`String.hashCode()`, unsigned."""
    data, code = sort_key(text), 0
    for unit in unpack(f">{len(data) // 2}H", data):
        code = (31 * code + unit) & 0xFFFFFFFF
    return code


def _spread(code: int) -> int:
    return code ^ code >> 16
