"""Messages as one table of fields that any engine can run: by message and number, what to do.

A node of the table is a message at one place of the columns; its rows are its fields, in the order
of their numbers. What has no row is passed over, by its wire type.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from spark_kafka_source.records.varints import Integers
from spark_kafka_source.values.columns import Layout
from spark_kafka_source.values.protobuf.schema import Wire


class Op(IntEnum):
    """What becomes of a value before its slot has it."""

    SKIP = 0
    """Nothing is kept. Not in the table: it is for what a writer is known to write."""
    VARINT = 1
    """64 bits; columns have as many of them as their type."""
    UINT32 = 2
    """The lower 32 bits."""
    SINT32 = 3
    SINT64 = 4
    FIXED32 = 5
    FIXED64 = 6
    FLOAT = 7
    """As the bits of a double."""
    BYTES = 8
    """Slots `slot` and `slot + 1` have where they start and end."""
    MESSAGE = 9
    """That of the node `child`."""


class Row(NamedTuple):
    """A row of the table: a field of a message."""

    node: int
    number: int
    wire: int
    """That of one value."""
    op: int
    slot: int
    level: int
    """That of the items; -1 of a field that is not repeated."""
    presence: int
    """The slot that has `bit` set once it was read, or -1."""
    bit: int
    case: int
    """The slot of its oneof, which has the number of the field that was read last, or -1."""
    child: int
    closed: int
    """Which of `closed` has all numbers of its enum, if others count as not written; or -1."""

    @property
    def may_be_packed(self) -> bool:
        """Whether many values may be in one, of wire type `SIZED`."""
        return self.level >= 0 and self.wire in (Wire.VARINT, Wire.FIXED32, Wire.FIXED64)


class Step(NamedTuple):
    """What a writer writes next, if it is there: the row, and the tag that it has."""

    row: Row
    wire: int
    """`SIZED` where a writer packs."""
    tag: int
    """Its bytes as a number, the first the lowest."""
    mask: int
    size: int
    repeated: bool


class Node(NamedTuple):
    """A message at one place."""

    first: int
    stop: int
    """Its rows are those from `first` to `stop`."""
    depth: int
    entry_level: int
    """Of what is the entry of a map, the level of these; or -1."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """What a reader's columns are filled from, whoever wrote it."""

    layout: Layout
    nodes: tuple[Node, ...]
    rows: tuple[Row, ...]
    paths: tuple[str, ...]
    """Of each row, and behind them of each node."""
    closed: tuple[Integers, ...]
    places: tuple[dict[int, int], ...]
    """For each node, which row a field of a number has."""

    @property
    def table(self) -> Integers:
        """The rows, for a compiled engine."""
        return np.array(self.rows, np.int64).reshape(-1, len(Row._fields))


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A table, and in which order a writer writes the fields of each node."""

    table: Table
    steps: tuple[tuple[Step, ...], ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """Of the places of an `Outcome`."""
        return self.table.paths

    @property
    def constants(self) -> bytes:
        """None: defaults are the layout's."""
        return b""
