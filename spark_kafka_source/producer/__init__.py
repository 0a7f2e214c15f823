"""Kafka's producer: which partition a record goes to; the layer beside `consumer`.

It holds what has no IO so far: partitioners and the policy of records without a key.
"""

from spark_kafka_source.producer.partitioners import (
    CONSISTENT_RANDOM,
    MURMUR2,
    MURMUR2_RANDOM,
    NO_PARTITION,
    PARTITIONERS,
    PartitionRows,
    group_by_partition,
)
from spark_kafka_source.producer.sticky import StickyPartitioner

__all__ = [
    "CONSISTENT_RANDOM",
    "MURMUR2",
    "MURMUR2_RANDOM",
    "NO_PARTITION",
    "PARTITIONERS",
    "PartitionRows",
    "StickyPartitioner",
    "group_by_partition",
]
