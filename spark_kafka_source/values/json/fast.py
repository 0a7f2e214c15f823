"""Reader of many JSON texts at once with `pyarrow.json`: it finds sound rows and doubtful rows.

Each row given to `pyarrow.json` begins with `{`, ends with `}`, and has its own line. No row can
take bytes of the next: a line break in a string is an error, and so is `}` before `{` in an object
or array. So each row has at least one object, and if there are as many objects as rows, each row
has one. Rows that `pyarrow.json` accepts and `meaning` does not are found before.
A text that begins with `null` would end the process. No row does.
"""

import re
from collections.abc import Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from spark_kafka_source.records.varints import Integers, Octets
from spark_kafka_source.values.json.meaning import MAX_DEPTH, is_deep
from spark_kafka_source.values.json.plan import Plan, flippable, has_map, plan

FEW = 24
"""Up to this many rows are faster one by one."""

_BLANKS = 4
"""The most spaces and line breaks that are skipped on each side of a row."""
_MESSAGE = re.compile(r"(?:.*Column\((.*)\) changed from .*)?.*in row (\d+)", re.DOTALL)
_IS_BLANK: npt.NDArray[np.bool_] = np.zeros(256, np.bool_)
_IS_BLANK[list(b" \t\r\n")] = True
_OPEN, _CLOSE = ord("{"), ord("}")


@dataclass(frozen=True, slots=True)
class Found:
    """Array of the `rows`, in any order. It may contain `doubtful` rows or not."""

    array: pa.Array
    rows: Integers
    doubtful: Integers


class FastReader:
    """Reader of structs without maps."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._flippable = frozenset(flippable(kind))
        self._plans: dict[frozenset[str], Plan] = {}
        self._flipped: frozenset[str] = frozenset()
        """The columns whose type was flipped for earlier values, and so is flipped for the next."""

    @property
    def can_read(self) -> bool:
        """Whether it can read this type."""
        fields = pa.types.is_struct(self._kind) and self._kind.num_fields > 0
        return fields and not has_map(self._kind)

    def _plan(self) -> Plan:
        if self._flipped not in self._plans:
            self._plans = {self._flipped: plan(self._kind, self._flipped)}
        return self._plans[self._flipped]

    def read(self, texts: pa.BinaryArray) -> Found:
        """Read texts that are not null, and that `is_doubtful` and `not_text` have not found."""
        flippable = self._flippable
        while True:
            try:
                return _Parsing(self._plan(), texts, flippable).found(self._kind)
            except _FlipError as error:
                # Flip each column only once: a column of both types is then read row by row.
                flippable -= {error.path}
                self._flipped ^= {error.path}


class _FlipError(Exception):
    """A column should be read as its other possible type."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class _Parsing:
    """One attempt at all rows. It splits them into ever smaller ranges around failures."""

    def __init__(self, how: Plan, texts: pa.BinaryArray, flippable: Set[str]) -> None:
        self._plan, self._flippable = how, flippable
        self._schema = pa.schema(list(how.read))
        self._count = len(texts)
        lines = pc.binary_join_element_wise(texts, pa.scalar(b""), pa.scalar(b"\n"))
        _, bounds, self._data = lines.buffers()
        self._bounds = np.frombuffer(bounds, np.int32)[: self._count + 1]
        self._parts: list[tuple[int, int, pa.Array]] = []
        self._doubtful: list[tuple[int, int]] = []

    def found(self, kind: pa.DataType) -> Found:
        """Return all rows that can be read. Raises `_FlipError`."""
        self._parse()
        rows = _ranges([(start, end) for start, end, _ in self._parts])
        doubtful = _ranges(self._doubtful)
        if not self._parts:
            return Found(pa.array([], kind), rows, doubtful)
        array = _joined([part for _, _, part in self._parts])
        if self._plan.finish:
            array, more = self._plan.finish(array)
            doubtful = np.concatenate((doubtful, rows[more]))
        return Found(array, rows, doubtful)

    def _parse(self) -> None:
        """Parse ranges. The number of failures is bounded by the cost of reading row by row."""
        ranges, budget = [(0, self._count)], 8 + self._count // FEW
        while ranges:
            start, end = ranges.pop()
            if not budget or end - start < FEW:
                self._doubtful.append((start, end))
                continue
            budget -= 1
            try:
                self._parts.append((start, end, self._range(start, end)))
            except pa.lib.ArrowException as error:
                ranges += self._around(start, end, str(error))

    def _around(self, start: int, end: int, message: str) -> list[tuple[int, int]]:
        """Return the ranges without the row that the message names. Else return two halves."""
        named = _MESSAGE.match(message)
        if named and named[1] in self._flippable:
            raise _FlipError(named[1])
        row = start + int(named[2]) if named else end
        if row >= end:
            middle = (start + end) // 2
            return [(start, middle), (middle, end)]
        self._doubtful.append((row, row + 1))
        return [each for each in ((row + 1, end), (start, row)) if each[0] < each[1]]

    def _range(self, start: int, end: int) -> pa.Array:
        """Return the rows of a range. Raises `ArrowException` if a row is not sound."""
        first, size = int(self._bounds[start]), int(self._bounds[end] - self._bounds[start])
        table = pyarrow.json.read_json(
            pa.BufferReader(self._data.slice(first, size)),
            pyarrow.json.ReadOptions(use_threads=False, block_size=size + 1),
            pyarrow.json.ParseOptions(
                explicit_schema=self._schema, unexpected_field_behavior="ignore"
            ),
        )
        if table.num_rows != end - start or table.schema != self._schema:
            raise pa.ArrowInvalid("there are not as many objects as rows")
        columns = [_joined(table.column(place).chunks) for place in range(table.num_columns)]
        return pa.StructArray.from_arrays(columns, fields=list(self._plan.read))


def _joined(arrays: list[pa.Array]) -> pa.Array:
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def _ranges(bounds: list[tuple[int, int]]) -> Integers:
    ranges = [np.arange(start, end) for start, end in bounds]
    return np.concatenate([np.zeros(0, np.int64), *ranges])


def trimmed(octets: Octets, starts: Integers, ends: Integers) -> tuple[Integers, Integers]:
    """Return the bounds without a few spaces and line breaks on each side."""
    if not len(octets):
        return starts, ends
    for _ in range(_BLANKS):
        before = _IS_BLANK[octets.take(starts, mode="clip")] & (starts < ends)
        if not before.any():
            break
        starts = starts + before
    for _ in range(_BLANKS):
        behind = _IS_BLANK[octets.take(ends - 1, mode="clip")] & (starts < ends)
        if not behind.any():
            break
        ends = ends - behind
    return starts, ends


def is_doubtful(octets: Octets, starts: Integers, ends: Integers) -> npt.NDArray[np.bool_]:
    """Return which rows do not begin and end like objects, or may be nested too deeply."""
    if not len(octets):
        return np.ones(len(starts), np.bool_)
    doubtful: npt.NDArray[np.bool_] = (ends - starts < 2) | (
        octets.take(starts, mode="clip") != _OPEN
    )
    doubtful |= octets.take(ends - 1, mode="clip") != _CLOSE
    for row in np.flatnonzero(ends - starts > 2 * MAX_DEPTH).tolist():
        if not doubtful[row]:
            doubtful[row] = is_deep(octets[starts[row] : ends[row]].tobytes())
    return doubtful


def not_text(texts: pa.BinaryArray) -> npt.NDArray[np.bool_]:
    """Return which rows are not UTF-8."""
    try:
        texts.cast(pa.string())
    except pa.ArrowInvalid:
        return np.array([not _is_text(each) for each in texts.to_pylist()])
    return np.zeros(len(texts), np.bool_)


def _is_text(data: bytes) -> bool:
    try:
        return data.decode() is not None
    except UnicodeDecodeError:
        return False
