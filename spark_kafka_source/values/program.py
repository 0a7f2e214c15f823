"""A writer's schema resolved to a reader's schema, as one table of operations for any engine.

A row of the table is an operation. Its body is the rows after it, up to `end`. Rows are in the
order of the bytes. `slot` is -1 if the value is not kept.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from spark_kafka_source.records.varints import Integers
from spark_kafka_source.values.columns import Layout


class Op(IntEnum):
    """Operations, and the meaning of `argument` and `extra` for each."""

    BOOLEAN = 0
    INT = 1
    """`argument` is a `Convert`, as it is for the next three operations."""
    LONG = 2
    FLOAT = 3
    DOUBLE = 4
    BYTES = 5
    """A length and that many bytes. Slots `slot` and `slot + 1` get their start and end."""
    FIXED = 6
    """`argument` bytes, kept like `BYTES`."""
    ENUM = 7
    """A symbol of the writer, one of `extra`. `mapping` has the reader's from `argument` on."""
    UNION = 8
    """One of `argument` branches. The body has a `BRANCH` for each."""
    BRANCH = 9
    """A branch of a union. The body runs if this branch was written."""
    ARRAY = 10
    """Blocks of items of at least `argument` bytes. The body reads an item into level `slot`."""
    DEFAULT = 11
    """A default. The body reads `extra` bytes of the constants, from `argument` on."""
    SET = 12
    """Set the slot to `argument`, without reading."""
    FAIL = 13
    """The written value cannot be read: the row is bad."""
    RECORD = 14
    """A record that `CALL` may run again."""
    CALL = 15
    """Run the body of the row `argument`, a `RECORD`, perhaps from within itself."""


class Convert(IntEnum):
    """Conversion of a number before it is kept."""

    NOT = 0
    TO_FLOAT = 1
    TO_DOUBLE = 2
    TIMES_1000 = 3


class Row(NamedTuple):
    """Row of the table."""

    op: int
    slot: int
    argument: int
    end: int
    extra: int


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Table, and the data that its rows refer to."""

    layout: Layout
    rows: tuple[Row, ...]
    paths: tuple[str, ...]
    """The path of the writer's field, for each row."""
    mapping: Integers
    """The reader's symbol for each symbol of the writer, or -1 if there is none."""
    constants: bytes
    """The reader's defaults, encoded as Avro."""

    @property
    def table(self) -> Integers:
        """Return the rows as an array, for a compiled engine."""
        return np.array(self.rows, np.int64).reshape(-1, len(Row._fields))
