"""A writer's schema resolved to a reader's schema, as one table of operations for any engine.

A row of the table is an operation. Its body is the rows after it, up to `end`. Rows are in the
order of the bytes. `slot` is -1 if the value is not kept. The record `id: long, tags: [null,
array of string]`, read as it was written, is this table. Slot 1 tells whether there are tags. Their
texts are in level 1, and have their bounds in the slots 2 and 3:

    place  op         slot  argument  end
    0      LONG          0         0    1    id
    1      UNION        -1         2    7    tags: 2 branches
    2        BRANCH     -1         0    3      null: an empty body
    3        BRANCH     -1         0    7      the array
    4          SET       1         1    5        slot 1 becomes 1
    5          ARRAY     1         1    7        level 1, at least 1 byte an item
    6            BYTES   2         0    7          the bounds of a text
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from spark_kafka_source.records.varints import Integers
from spark_kafka_source.values.columns import Layout

MAX_NESTING = 100
"""The deepest nesting of bodies. Types are never that deep, but a skipped value of a recursive type
can be."""
MAX_EMPTY_ITEMS = 64
"""The most items in an array whose items take no bytes, such as null."""


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
    TIMES = 3
    """Times `extra`. A product beyond 64 bits is a `Fault.TIMESTAMP`."""
    OVER = 4
    """Over `extra`, rounded down."""


class Row(NamedTuple):
    """Row of the table."""

    op: int
    slot: int
    argument: int
    end: int
    extra: int


_ARGUMENT, _END = map(Row._fields.index, ("argument", "end"))


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
    failures: Mapping[int, str] = field(default_factory=dict)
    """What was written and what was wanted, for the place of each `FAIL`."""

    @property
    def table(self) -> Integers:
        """Return the rows as an array, for a compiled engine."""
        return np.array(self.rows, np.int64).reshape(-1, len(Row._fields))


def tables_of(programs: Sequence[Program], data_bytes: int) -> tuple[Any, ...]:
    """Return the arguments of the kernel for several programs, from `table` to `constants`."""
    *tables, constants = _linked(tuple(programs))
    return *tables, data_bytes - constants


@lru_cache(maxsize=64)
def _linked(programs: tuple[Program, ...]) -> tuple[Integers, Integers, Integers, int]:
    """Join the tables. Each program keeps its own places in the table.

    The results are the table, the start of each program in it and the end of the last, the mapping,
    and the size of all programs' constants in bytes.
    """
    tables, mappings, firsts = [], [], [0]
    mapped = constants = 0
    for program in programs:
        table = program.table
        argument, op = table[:, _ARGUMENT], table[:, 0]
        table[:, _END] += firsts[-1]
        argument[op == Op.CALL] += firsts[-1]
        argument[op == Op.ENUM] += mapped
        argument[op == Op.DEFAULT] += constants
        tables.append(table)
        mappings.append(program.mapping)
        firsts.append(firsts[-1] + len(table))
        mapped += len(program.mapping)
        constants += len(program.constants)
    none = np.zeros((0, len(Row._fields)), np.int64)
    table = np.concatenate([none, *tables])
    return table, np.array(firsts), np.concatenate([none[0:0, 0], *mappings]), constants
