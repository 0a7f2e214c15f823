"""The partition of each record by its key, and the records of each partition.

MURMUR2 is the default of Kafka's own producer (`BuiltInPartitioner.partitionForKey`). The others
are librdkafka's: https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md.
"""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from spark_kafka_source.producer.config import ProducerConfig
from spark_kafka_source.producer.hashes import Hash, HashOfOne, crc32, murmur2, murmur2_of
from spark_kafka_source.records import ByteColumn, Integers

NO_PARTITION = -1
"""The partition of a record whose key does not determine one."""

POSITIVE = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class KeyPartitioner:
    """A function from a key to its partition, always the same one. A null key has none."""

    name: str
    hashed: Hash
    hashed_one: HashOfOne
    positive_bits: int
    """The bits of a hash that count. Java's `Utils.toPositive` leaves out the sign."""
    empty_has_partition: bool
    """Whether an empty key has a partition."""

    def partition(self, key: bytes | None, partition_count: int) -> int:
        """Return the partition of one key, or `NO_PARTITION`."""
        if key is None or (not key and not self.empty_has_partition):
            return NO_PARTITION
        return (self.hashed_one(key) & self.positive_bits) % partition_count

    def partitions(self, keys: pa.Array, partition_count: int) -> Integers:
        """Return the partition of each key of a column of strings or bytes, or `NO_PARTITION`.

        Raises `ColumnTypeError` for another column, and `ValueError` for less than one partition.
        """
        if partition_count < 1:
            raise ValueError(f"{partition_count} partitions: there must be one or more")
        column = ByteColumn.of("key", keys)
        hashes = self.hashed(column) & np.uint32(self.positive_bits)
        partitions = (hashes % np.uint32(partition_count)).astype(np.int64)
        least = 0 if self.empty_has_partition else 1
        partitions[column.lengths < least] = NO_PARTITION
        return partitions


MURMUR2 = KeyPartitioner("murmur2", murmur2, murmur2_of, POSITIVE, True)
MURMUR2_RANDOM = KeyPartitioner("murmur2_random", murmur2, murmur2_of, POSITIVE, True)
CONSISTENT_RANDOM = KeyPartitioner("consistent_random", crc32, zlib.crc32, (1 << 32) - 1, False)

PARTITIONERS: Mapping[str, KeyPartitioner] = MappingProxyType(
    {each.name: each for each in (MURMUR2, MURMUR2_RANDOM, CONSISTENT_RANDOM)}
)
"""The partitioners by name. The first two differ in records without a partition: with murmur2 the
caller keeps them on one partition for a while, as Java does. With the two others the caller sends
each to any partition."""


def key_partitioner(config: ProducerConfig) -> KeyPartitioner | None:
    """Return the configured partitioner, or None if keys are ignored."""
    return None if config.partitioner_ignore_keys else PARTITIONERS.get(config.partitioner)


@dataclass(frozen=True, slots=True)
class PartitionRows:
    """The rows of each partition, in their original order."""

    partitions: Integers
    """The partitions with rows, in ascending order."""
    rows: Integers
    """The rows of the first partition, then the rows of the next one."""
    bounds: Integers
    """The bounds of each partition in `rows`, as `encode_columns` takes them."""

    def __iter__(self) -> Iterator[tuple[int, Integers]]:
        ends = self.bounds.tolist()
        for number, partition in enumerate(self.partitions.tolist()):
            yield partition, self.rows[ends[number] : ends[number + 1]]


def group_by_partition(partitions: Integers) -> PartitionRows:
    """Group the rows by partition. Raises `ValueError` for a negative partition."""
    if partitions.min(initial=0) < 0:
        raise ValueError(f"row {int((partitions < 0).argmax())} has no partition yet")
    # numpy sorts 16 bits by radix sort. Wider numbers are compared, which takes ten times as long.
    narrow = partitions.max(initial=0) <= np.iinfo(np.uint16).max
    rows = np.argsort(partitions.astype(np.uint16) if narrow else partitions, kind="stable")
    in_order = partitions[rows]
    changes = np.flatnonzero(np.diff(in_order)) + 1
    bounds = np.concatenate(([0], changes, [len(rows)])) if len(rows) else np.zeros(1, np.int64)
    return PartitionRows(in_order[bounds[:-1]], rows, bounds)
