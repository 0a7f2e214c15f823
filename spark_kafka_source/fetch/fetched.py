"""The records of one fetch for one partition, as chunks."""

from collections.abc import Iterator
from dataclasses import dataclass

from spark_kafka_source.records import Chunk


@dataclass(slots=True, eq=False, weakref_slot=True)
class Fetched:
    """The records of one answer for one partition, from `offset` on.

    `leader_epoch` is the leader epoch of the request, and `asked_bytes` its limit for the
    partition. `chunks` is iterated once. Only the iteration checks and decompresses records.
    """

    offset: int
    leader_epoch: int
    chunks: Iterator[Chunk]
    size_bytes: int
    asked_bytes: int
    node_id: int
