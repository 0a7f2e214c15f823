"""Columns of a reader: a tree whose leaves are slots, which are arrays of numbers.

Rows are the elements of level 0. The items of each list, and the entries of each map, are the
elements of their own level. A slot has an int64 for each element of its level, or 0 where nothing
was decoded. A double is stored as its bits. Bytes take two slots, for their start and their end.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum, auto

import pyarrow as pa


class Form(IntEnum):
    """How a column is built from its slots."""

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
    """A string. The slot has the number of a symbol, or a number without a symbol."""
    UNSIGNED = auto()
    """A decimal. The slot has an unsigned integer of 64 bits."""
    MOMENT = auto()
    """A time in microseconds. Two slots have seconds and nanoseconds."""
    SHOWN = auto()
    """A string that `show` makes of the children's values. The slot is that of the first child."""
    STRUCT = auto()
    CHOICE = auto()
    """A struct with one member set. The slot has the member's number, from 1 on."""
    LIST = auto()
    MAP = auto()


OF_BYTES = (Form.BINARY, Form.STRING, Form.DECIMAL)


@dataclass(frozen=True, slots=True)
class Presence:
    """Condition for a column: it is null unless the masked bits of this slot have this value."""

    slot: int
    value: int
    mask: int = -1


@dataclass(frozen=True, slots=True)
class Column:
    """Node of the tree. `level` is the level of its elements, `slot` is its first slot."""

    path: str
    form: Form
    arrow: pa.DataType
    level: int
    slot: int = -1
    presence: Presence | None = None
    children: tuple["Column", ...] = ()
    """The columns of a struct or choice, the item of a list, or the key and value of a map."""
    names: tuple[str, ...] = ()
    """The names of a struct's children."""
    symbols: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    """The numbers of the symbols of an `ENUM`."""
    zero_is_null: bool = False
    """Whether a value of 0, or an empty value, is null."""
    default: tuple[int, ...] = ()
    """The values of its slots where it is absent. For bytes: their bounds in the constants."""
    show: Callable[..., str] | None = None
    """The function of a `SHOWN`. It raises `ValueError` for values that cannot be shown."""

    @property
    def item_level(self) -> int:
        """The level of a list's items, or of a map's entries."""
        return self.children[0].level

    def columns(self) -> Iterator["Column"]:
        """Yield this column and all columns in it."""
        yield self
        for child in self.children:
            yield from child.columns()


@dataclass(frozen=True, slots=True)
class Layout:
    """Tree of columns, and the level of each slot."""

    column: Column
    slot_levels: tuple[int, ...]
    levels_above: tuple[int, ...]
    """For each level the level of its elements' parents. Rows have none: -1."""
    constants: bytes = b""
    """The bytes that hold the columns' defaults."""

    def path_of_slot(self, slot: int) -> str:
        """Return the path of the column that owns a slot."""
        for column in self.column.columns():
            slots = 2 if column.form in OF_BYTES else 1
            if column.slot >= 0 and column.slot <= slot < column.slot + slots:
                return column.path
        return ""
