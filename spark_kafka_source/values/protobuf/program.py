"""Messages as one table of fields for any engine: what to do for a message and a field number.

A node of the table is a message at one place of the columns. Its rows are its fields, in the order
of their numbers. A field without a row is skipped, by its wire type.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from spark_kafka_source.records.varints import Integers
from spark_kafka_source.values.columns import Layout
from spark_kafka_source.values.errors import UnresolvableError
from spark_kafka_source.values.protobuf.schema import (
    MESSAGES,
    Field,
    Kind,
    Message,
    Schema,
    Wire,
    tag_of,
    wire_of,
)
from spark_kafka_source.values.protobuf.well_known import WRAPPERS

MAX_TAG_BYTES = 4
_GOOGLE = "google."
LAST_NUMBER = (1 << 29) - 1
MAX_NESTING = 100
"""The deepest nesting of messages and groups, as in other implementations."""
MAX_SIZE_BYTES = 5
"""The most bytes of a tag or a length, which have 32 bits."""


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
    level: int
    last: int
    """The nodes from this one to `last`, exclusive, are in this message."""
    is_entry: int
    """1 for the entry of a map, else 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Table that fills a reader's columns, for any writer."""

    layout: Layout
    nodes: tuple[Node, ...]
    rows: tuple[Row, ...]
    paths: tuple[str, ...]
    """The path of each row, and after those the path of each node."""
    closed: tuple[Integers, ...]
    """The numbers of each closed enum, sorted."""

    @property
    def table(self) -> Integers:
        """Return the rows as an array, for a compiled engine."""
        return np.array(self.rows, np.int64).reshape(-1, len(Row._fields))


SLOTS_OF_A_BYTE = 64
SLOTS_OF_A_ROW = 1 << 14
"""The numbers that a row may take beyond those for its bytes: a few items of very many columns."""
_LEAST_BYTES = 2


def wide_levels(layout: Layout) -> Integers:
    """Return the number of slots of each level that is wide, and 0 for the others.

    An empty message in a list takes two bytes, and becomes a number in each slot of the list. With
    many slots, a few bytes make many numbers. So the items of wide levels are counted.
    """
    widths = np.bincount(layout.slot_levels, minlength=len(layout.levels_above))
    widths[0] = 0
    return np.where(widths > SLOTS_OF_A_BYTE * _LEAST_BYTES, widths, 0)


@dataclass(frozen=True, slots=True, eq=False)
class MessageProgram:
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

    @property
    def failures(self) -> Mapping[int, str]:
        """Empty: each `Fault` says all."""
        return {}


def tables_of(programs: Sequence[MessageProgram], _: int) -> tuple[Any, ...]:
    """Return the arguments of the kernel, from `table` to `widths`.

    All programs share the table of one reader, so the writer of a row makes no difference.
    """
    return _arrays(programs[0].table)


@lru_cache(maxsize=64)
def _arrays(table: Table) -> tuple[Integers, ...]:
    none = np.zeros(0, np.int64)
    return (
        table.table,
        np.array(table.nodes, np.int64),
        np.concatenate([none, *table.closed]),
        np.array([*accumulate(map(len, table.closed), initial=0)], np.int64),
        wide_levels(table.layout),
    )


@lru_cache(maxsize=64)
def kept_numbers(table: Table) -> tuple[Integers, ...]:
    """Return the field numbers of each node, in their order, and a number above all of them."""
    return tuple(
        np.array([*(row.number for row in table.rows[node.first : node.stop]), LAST_NUMBER + 1])
        for node in table.nodes
    )


_ALIKE = (
    {Kind.INT32, Kind.INT64, Kind.UINT32, Kind.UINT64, Kind.BOOL, Kind.ENUM},
    {Kind.SINT32, Kind.SINT64},
    {Kind.FIXED32, Kind.SFIXED32},
    {Kind.FIXED64, Kind.SFIXED64},
    {Kind.STRING, Kind.BYTES},
    {Kind.BYTES, Kind.MESSAGE},
)
"""The kinds that are read as each other: https://protobuf.dev/programming-guides/proto3/#updating."""


def _is_alike(written: Field, wanted: Field) -> bool:
    """Whether a value means the same in both fields. Google's own messages mean what they are.

    Of many values the last one is read as the only one, but packed values are passed over.
    """
    if written.packed and not wanted.repeated:
        return False
    one, other = written.type_name, wanted.type_name
    if written.kind is wanted.kind:
        are_of_google = one.startswith(_GOOGLE) and other.startswith(_GOOGLE)
        return one == other or not are_of_google or (one in WRAPPERS and other in WRAPPERS)
    return any({written.kind, wanted.kind} <= kinds for kinds in _ALIKE)


def _named(field: Field) -> str:
    name = field.type_name if field.kind in MESSAGES else str(field.kind)
    return f"repeated {name}" if field.repeated else name


def program_of(
    table: Table, reader: Schema, wanted_message: Message, writer: Schema, message: Message
) -> MessageProgram:
    """Return the program that fills the table from what the writer wrote as `message`.

    `wanted_message` is the reader's. Raises `UnresolvableError` for a field that means something
    else there: the bytes alone would not tell, or the field would be passed over.

    Its steps are the fields that the writer's messages are known to hold, in the order in which
    they are written. Other fields, and fields in another order, are read too, but in more passes,
    or one row at a time.
    """
    written: list[Message | None] = [None] * len(table.nodes)
    wanted = {0: wanted_message}
    written[0] = message
    steps = []
    for number, node in enumerate(table.nodes):
        places = {table.rows[at].number: at for at in range(node.first, node.stop)}
        written_message, known = written[number], []
        own = {field.number: field for field in wanted[number].fields} if written_message else {}
        for field in sorted(written_message.fields, key=_number) if written_message else ():
            place = places.get(field.number)
            row = None if place is None else table.rows[place]
            if place is not None and not _is_alike(field, own[field.number]):
                found, expected = _named(field), _named(own[field.number])
                raise UnresolvableError(
                    table.paths[place], f"{found} was written", f"It cannot be read as {expected}"
                )
            if row and row.child >= 0 and field.kind in MESSAGES:
                written[row.child] = writer.messages[field.type_name]
                wanted[row.child] = reader.messages[own[field.number].type_name]
            if step := _step(field, row):
                known.append(step)
        steps.append(tuple(known))
    return MessageProgram(table, tuple(steps))


def _skipped(number: int, wire: Wire) -> Row:
    return Row(-1, number, wire, Op.SKIP, -1, -1, -1, 0, -1, -1, -1)


SKIPPING = tuple(
    Step(_skipped(0, wire), wire, 0, 0, 0, False)
    for wire in (Wire.VARINT, Wire.SIZED, Wire.FIXED32, Wire.FIXED64)
)
"""Steps over the value of any field, by wire type, once its tag has been read."""


def _number(field: Field) -> int:
    return field.number


def _step(field: Field, row: Row | None) -> Step | None:
    """Return the step of a field. None for groups, and for tags that are too long."""
    wire = Wire.SIZED if field.packed else wire_of(field.kind)
    tag = tag_of(field.number, wire)
    if wire is Wire.GROUP or len(tag) > MAX_TAG_BYTES:
        return None
    if row is None or not (row.wire == wire or (row.may_be_packed and wire is Wire.SIZED)):
        row = _skipped(field.number, wire)
    mask = (1 << 8 * len(tag)) - 1
    repeated = row.level >= 0 or (row.op == Op.SKIP and field.repeated)
    return Step(row, wire, int.from_bytes(tag, "little"), mask, len(tag), repeated)
