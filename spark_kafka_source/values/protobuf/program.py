"""Messages as one table of fields for any engine: what to do for a message and a field number.

A node of the table is a message at one place of the columns. Its rows are its fields, in the order
of their numbers. A field without a row is skipped, by its wire type.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from spark_kafka_source.records.varints import Integers
from spark_kafka_source.values.columns import Layout
from spark_kafka_source.values.protobuf.schema import Wire


class Op(IntEnum):
    """Conversion of a value before its slot gets it."""

    SKIP = 0
    """Nothing is kept. It is not in the table, but in steps for fields that a writer may write."""
    VARINT = 1
    """64 bits. A column keeps as many of them as its type has."""
    UINT32 = 2
    """The lower 32 bits."""
    SINT32 = 3
    SINT64 = 4
    FIXED32 = 5
    FIXED64 = 6
    FLOAT = 7
    """The bits of the same number as a double."""
    BYTES = 8
    """Slots `slot` and `slot + 1` get the start and the end."""
    MESSAGE = 9
    """A message, as the node `child`."""


class Row(NamedTuple):
    """Row of the table: a field of a message."""

    node: int
    number: int
    wire: int
    """The wire type of one value."""
    op: int
    slot: int
    level: int
    """The level of the items, or -1 for a field that is not repeated."""
    presence: int
    """The slot in which `bit` is set once the field was read, or -1."""
    bit: int
    case: int
    """The slot of its oneof, which gets the number of the field read last, or -1."""
    child: int
    closed: int
    """The index in `closed` of its enum's numbers, or -1. Other numbers count as not written."""

    @property
    def may_be_packed(self) -> bool:
        """Whether one value of wire type `SIZED` may hold many values."""
        return self.level >= 0 and self.wire in (Wire.VARINT, Wire.FIXED32, Wire.FIXED64)


class Step(NamedTuple):
    """Field that a writer is expected to write next: its table row and its tag."""

    row: Row
    wire: int
    """The wire type. `SIZED` if the writer packs values."""
    tag: int
    """The bytes of the tag as a number, with the first byte as the lowest."""
    mask: int
    size: int
    repeated: bool


class Node(NamedTuple):
    """Message at one place of the columns."""

    first: int
    stop: int
    """Its rows are those from `first` to `stop`."""
    depth: int
    entry_level: int
    """The level of a map's entries, if this is an entry, or -1."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Table that fills a reader's columns, for any writer."""

    layout: Layout
    nodes: tuple[Node, ...]
    rows: tuple[Row, ...]
    paths: tuple[str, ...]
    """The path of each row, and after those the path of each node."""
    closed: tuple[Integers, ...]
    places: tuple[dict[int, int], ...]
    """For each node, the table row for each field number."""

    @property
    def table(self) -> Integers:
        """Return the rows as an array, for a compiled engine."""
        return np.array(self.rows, np.int64).reshape(-1, len(Row._fields))


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Table, and the order in which a writer writes the fields of each node."""

    table: Table
    steps: tuple[tuple[Step, ...], ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the places of an `Outcome`."""
        return self.table.paths

    @property
    def constants(self) -> bytes:
        """Empty: the layout has the defaults."""
        return b""
