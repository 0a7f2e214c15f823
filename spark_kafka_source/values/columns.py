"""Columns of a reader: a tree whose leaves are slots, which are arrays of numbers.

Rows are the elements of level 0. The items of each list, and the entries of each map, are the
elements of their own level. A slot has an int64 for each element of its level, or 0 where nothing
was decoded. A double is stored as its bits. Bytes take two slots, for their start and their end.
`Slots` has the parent of each element. Two rows with `id: long, tags: array of string`:

    rows      {id: 7, tags: ["ab", "c"]}   {id: 8, tags: ["d"]}

    level 0   slot 0, id               7   8
    level 1   parents                  0   0   1     the row of each item
              slot 1, start of tags[]  3   6  12
              slot 2, end of tags[]    5   7  13
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum, auto

import pyarrow as pa

from spark_kafka_source.values.errors import SchemaError

MAX_COLUMNS = 10_000


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


class Numbering:
    """Numbers of the slots and levels of a layout, given out one after the other."""

    def __init__(self) -> None:
        self._slot_levels: list[int] = []
        self._levels_above = [-1]
        self._columns = 0

    def slot(self, level: int, count: int = 1) -> int:
        """Return the first of so many new slots."""
        self._slot_levels += [level] * count
        return len(self._slot_levels) - count

    def level(self, above: int) -> int:
        """Return a new level, for the items of elements of the level above."""
        self._levels_above.append(above)
        return len(self._levels_above) - 1

    def count_column(self, path: str) -> None:
        """Raise `SchemaError` for more columns than there may be."""
        self._columns += 1
        if self._columns > MAX_COLUMNS:
            found = f"more than {MAX_COLUMNS} columns"
            raise SchemaError(path, found, "Choose the fields that are wanted")

    def layout(self, column: Column, constants: bytes = b"") -> Layout:
        """Return the layout of the whole column."""
        levels = tuple(self._slot_levels), tuple(self._levels_above)
        return Layout(column, *levels, constants)


def of_children(column: Column, children_or_none: Mapping[str, Column | None]) -> Column:
    """Return the column of a struct with its children. A child without a column is left out."""
    children = {name: child for name, child in children_or_none.items() if child is not None}
    arrow = pa.struct([(name, child.arrow) for name, child in children.items()])
    return replace(column, arrow=arrow, children=tuple(children.values()), names=tuple(children))


def list_of(item: Column, path: str, level: int, presence: Presence | None = None) -> Column:
    """Return the column of a list. Spark's name for an item is `element`."""
    arrow = pa.list_(pa.field("element", item.arrow))
    return Column(path, Form.LIST, arrow, level, -1, presence, (item,))


def map_of(
    key: Column, value: Column, path: str, level: int, presence: Presence | None = None
) -> Column:
    """Return the column of a map."""
    arrow = pa.map_(key.arrow, value.arrow)
    return Column(path, Form.MAP, arrow, level, -1, presence, (key, value))
