"""Java's orders of texts: that of its hash maps, and that of its sorting.

Kafka's assignors go through members and topics in the order of a `HashMap`, and which member gets
the odd partition depends on it. That order is by the slots in the map's table, and within a slot by
insertion: https://docs.oracle.com/en/java/javase/17/docs/api/java.base/java/util/HashMap.html.
(Slots of more than eight keys are not modelled: Java makes a tree of them, or a larger table.)
"""

from collections.abc import Iterable
from struct import unpack

from spark_kafka_source.topic_partition import TopicPartition

_LEAST_SLOTS = 16


def in_hash_order(texts: Iterable[str]) -> list[str]:
    """Return the texts, each once, in the order of a `HashMap` into which each was `put`.

    Java makes a tree of a slot with nine texts or more, in another order. This order does not show
    it: it is rare even for thousands of texts.
    """
    unique = list(dict.fromkeys(texts))
    return _by_slot(unique, _slots(_LEAST_SLOTS, len(unique)))


def in_hash_order_computed(texts: Iterable[str]) -> list[str]:
    """Return the texts, each once, in the order of a `HashMap` filled by `computeIfAbsent`.

    That method puts a text before all others of its slot, and makes the table larger a text later.
    """
    unique = list(dict.fromkeys(texts))
    return _by_slot(unique[::-1], _slots(_LEAST_SLOTS, len(unique) - 1))


def _by_slot(texts: list[str], slots: int) -> list[str]:
    return sorted(texts, key=lambda text: _spread(_hash_code(text)) & slots - 1)


def sort_key(text: str) -> bytes:
    """Return the key for Java's order of texts: UTF-16, whose order differs beyond U+FFFF."""
    return text.encode("utf-16-be", "surrogatepass")


class PartitionSet:
    """Partitions of one topic, of which the first is the same as that of Java's `HashSet`."""

    __slots__ = ("_base", "_hashes", "_slots")

    def __init__(self, topic: str) -> None:
        # As in Java's TopicPartition.hashCode().
        self._base = 31 * 31 + _hash_code(topic)
        self._hashes: dict[TopicPartition, int] = {}
        self._slots = _LEAST_SLOTS

    def __len__(self) -> int:
        return len(self._hashes)

    def add(self, partition: TopicPartition) -> None:
        """Add a partition."""
        self._hashes[partition] = _spread((self._base + 31 * partition.partition) & 0xFFFFFFFF)
        # The table of a set that shrinks keeps its size.
        self._slots = _slots(self._slots, len(self._hashes))

    def remove(self, partition: TopicPartition) -> None:
        """Remove a partition that is in the set."""
        del self._hashes[partition]

    def first(self) -> TopicPartition:
        """Return the partition that Java's iterator gives first."""
        last_slot = self._slots - 1
        return min(self._hashes, key=lambda partition: self._hashes[partition] & last_slot)


def _slots(slots: int, count: int) -> int:
    """Return the size of a table of `slots` slots after it took `count` keys."""
    while count > slots * 3 // 4:
        slots *= 2
    return slots


def _hash_code(text: str) -> int:
    """Return `String.hashCode()`, unsigned."""
    data, code = sort_key(text), 0
    for unit in unpack(f">{len(data) // 2}H", data):
        code = (31 * code + unit) & 0xFFFFFFFF
    return code


def _spread(code: int) -> int:
    return code ^ code >> 16
