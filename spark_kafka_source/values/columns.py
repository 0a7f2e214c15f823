"""What the columns of a reader are: a tree, whose leaves are slots of numbers that a decoder fills.

Rows are the elements of level 0; the items of each list, and the entries of each map, are those of
a level of their own. A slot has an int64 for each element of its level, and is 0 where nothing was
decoded: doubles as their bits, bytes as two slots, where they start and where they end.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, auto

import pyarrow as pa


class Form(IntEnum):
    """How a column is made of its slots."""

    NULL = auto()
    BOOLEAN = auto()
    INT32 = auto()
    INT64 = auto()
    FLOAT = auto()
    DOUBLE = auto()
    BINARY = auto()
    STRING = auto()
    DECIMAL = auto()
    SYMBOL = auto()
    ENUM = auto()
    """A string: the slot has the number of a symbol, or one that no symbol has."""
    UNSIGNED = auto()
    """A decimal: the slot has 64 bits without a sign."""
    MOMENT = auto()
    """Microseconds: two slots have seconds and nanoseconds."""
    STRUCT = auto()
    CHOICE = auto()
    """A struct of which one member is set: the slot has its number, from 1."""
    LIST = auto()
    MAP = auto()


OF_BYTES = (Form.BINARY, Form.STRING, Form.DECIMAL)


@dataclass(frozen=True, slots=True)
class Presence:
    """The column is null but where this slot has this value, in the bits of the mask."""

    slot: int
    value: int
    mask: int = -1


@dataclass(frozen=True, slots=True)
class Column:
    """One node of the tree. `level` is that of its own elements, `slot` its first."""

    path: str
    form: Form
    arrow: pa.DataType
    level: int
    slot: int = -1
    presence: Presence | None = None
    children: tuple["Column", ...] = ()
    """Of a struct, or a choice; the item of a list; key and value of a map."""
    names: tuple[str, ...] = ()
    """Of the children of a struct."""
    symbols: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    """Of the symbols of an `ENUM`."""
    zero_is_null: bool = False
    """Whether it is null where its value is 0, or empty."""
    default: tuple[int, ...] = ()
    """What its slots have where it is not there; bytes as their bounds in the constants."""

    @property
    def item_level(self) -> int:
        """The level of the items of a list, or the entries of a map."""
        return self.children[0].level

    def columns(self) -> Iterator["Column"]:
        """This one, and all within it."""
        yield self
        for child in self.children:
            yield from child.columns()


@dataclass(frozen=True, slots=True)
class Layout:
    """A tree of columns, and of which level each slot is."""

    column: Column
    slot_levels: tuple[int, ...]
    levels_above: tuple[int, ...]
    """For each level the one that its elements' parents are of; rows have none, -1."""
    constants: bytes = b""
    """What the defaults of columns are in."""

    def path_of_slot(self, slot: int) -> str:
        """The path of the column that a slot is of."""
        for column in self.column.columns():
            slots = 2 if column.form in OF_BYTES else 1
            if column.slot >= 0 and column.slot <= slot < column.slot + slots:
                return column.path
        return ""
