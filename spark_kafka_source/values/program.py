"""A writer's schema resolved to a reader's, as one table of operations that any engine can run.

A row of the table is an operation, and its body are the rows up to `end`. They stand in the order
of the bytes. `slot` is -1 where what is read is not kept.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from spark_kafka_source.records.varints import Integers
from spark_kafka_source.values.columns import Layout


class Op(IntEnum):
    """What to do, and what `argument` and `extra` mean to it."""

    BOOLEAN = 0
    INT = 1
    """`argument` is a `Convert`; so it is of the next three."""
    LONG = 2
    FLOAT = 3
    DOUBLE = 4
    BYTES = 5
    """A length, and so many bytes; slots `slot` and `slot + 1` have where they start and end."""
    FIXED = 6
    """`argument` bytes, kept as those of `BYTES`."""
    ENUM = 7
    """The writer's symbol; the reader's is in `mapping`, from `argument` on, of `extra` symbols."""
    UNION = 8
    """One of `argument` branches; the body has a `BRANCH` for each."""
    BRANCH = 9
    """The body is what to do where this branch was written."""
    ARRAY = 10
    """Blocks of items of at least `argument` bytes. The body reads one, into the level `slot`."""
    DEFAULT = 11
    """The body reads `extra` bytes of the constants, from `argument` on."""
    SET = 12
    """The slot becomes `argument`; nothing is read."""
    FAIL = 13
    """What was written cannot be read."""
    RECORD = 14
    """The body is what `CALL` runs."""
    CALL = 15
    """Does the body of the row `argument`, a `RECORD` that perhaps is not over yet."""


class Convert(IntEnum):
    """What a number becomes before it is kept."""

    NOT = 0
    TO_FLOAT = 1
    TO_DOUBLE = 2
    TIMES_1000 = 3


class Row(NamedTuple):
    """A row of the table."""

    op: int
    slot: int
    argument: int
    end: int
    extra: int


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """The table, and what its rows refer to."""

    layout: Layout
    rows: tuple[Row, ...]
    paths: tuple[str, ...]
    """Of the writer's fields, for each row."""
    mapping: Integers
    """For symbols of the writer those of the reader, or -1 where there is none."""
    constants: bytes
    """The reader's defaults, as Avro."""

    @property
    def table(self) -> Integers:
        """The rows, for a compiled engine."""
        return np.array(self.rows, np.int64).reshape(-1, len(Row._fields))
