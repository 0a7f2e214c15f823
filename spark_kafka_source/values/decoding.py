"""Decoding of values to Arrow: from programs, bytes, and the bounds of each value."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from spark_kafka_source.records.types import Bytes
from spark_kafka_source.records.varints import Integers, Octets
from spark_kafka_source.values import rows as few
from spark_kafka_source.values.arrow import ArrowBuilder
from spark_kafka_source.values.columns import Layout
from spark_kafka_source.values.compiled import Kernels, Run
from spark_kafka_source.values.faults import COLUMNS, WHOLE, Fault, Mask, Outcome
from spark_kafka_source.values.octets import OctetReader
from spark_kafka_source.values.rows import NULL_ROW, Encoded, Rows
from spark_kafka_source.values.slots import Memory, Slots


@dataclass(frozen=True, slots=True)
class Decoded:
    """Decoded values, one row each. A row is null if its value is null or bad.

    `status` has a `Fault` for each row. It is `OK` for null values.
    """

    array: pa.Array
    status: Octets
    paths: dict[int, str]
    """The path of the bad field, for each bad row where it is known."""
    details: Mapping[int, str] = field(default_factory=dict)
    """The reason in words, for each bad row whose `Fault` does not say all."""

    def reason(self, row: int) -> str:
        """Return the path and the reason for a bad row."""
        fault, path = Fault(self.status[row]), self.paths.get(row)
        found = self.details.get(row, fault.reason)
        return f"{path}: {found}" if path else found


class Code(Protocol):
    """Program that reads the values of one writer, for any format."""

    @property
    def constants(self) -> bytes:
        """The bytes that the program reads besides the values."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the fields, by the places in an `Outcome`."""

    @property
    def failures(self) -> Mapping[int, str]:
        """The reasons in words, by the places of which the `Fault` does not say all."""


class Engine(Protocol):
    """Engine that runs a program on one buffer."""

    def run(
        self, rows: Integers, elements: Integers | None, at: Integers, end: Integers
    ) -> Integers:
        """Decode these rows, and return the rows that are left to the engine of the kernel.

        `elements` are the elements to fill, or None for all in order.
        """


class Compiled(Protocol):
    """Module with the compiled kernels of a format."""

    @property
    def kernels(self) -> Callable[[int], Kernels | None]:
        """Return the kernels, or None. So many rows are about to be decoded."""


P = TypeVar("P", bound=Code)


@dataclass(frozen=True)
class Engines(Generic[P]):
    """Engines of one format."""

    waves: Callable[[P, OctetReader, int, Slots, Outcome], Engine]
    tables_of: Callable[[Sequence[P], int], tuple[Any, ...]]
    """The kernel's arguments for some programs, and data of so many bytes."""
    stack: tuple[int, int]
    """The size of the kernel's stack."""
    compiled: Compiled
    run: Run
    """The kernel as Python runs it: for a few rows, and where it is not compiled."""

    def decode(self, layout: Layout, programs: Sequence[P], encoded: Encoded) -> Decoded:
        """Decode the values into the columns of `layout`.

        Never raises because of the bytes. No row influences another row.
        """
        count, null = len(encoded.starts), encoded.nulls
        outcome, slots = Outcome(count), Slots(layout, count)
        octets, constants = _with_constants(encoded.data, [layout, *programs])
        rows = Rows(OctetReader(octets), *encoded.bounds, null, encoded.program_of)
        kernels = self.compiled.kernels(count)
        if kernels or count <= few.FEW:
            self._by_row(kernels.run if kernels else self.run, programs, rows, slots, outcome)
        else:
            left = self._in_waves(programs, constants[1:], rows, slots, outcome)
            if len(left):
                self._again(left, programs, rows, slots, outcome)
        builder = ArrowBuilder(rows.source, slots, outcome, constants[0], kernels)
        array = builder.rows(layout.column, null)
        found = _paths(layout, programs, outcome, rows.program_of)
        return Decoded(array, outcome.status, *found)

    def _by_row(
        self, run: Run, programs: Sequence[P], rows: Rows, slots: Slots, outcome: Outcome
    ) -> None:
        """Run the kernel: one row after the other, each with its own program."""
        if not programs:
            outcome.add(np.flatnonzero(~rows.null), Fault.NO_PROGRAM, WHOLE)
            return
        source, starts, ends = rows.source, *map(np.ascontiguousarray, (rows.starts, rows.ends))
        numbers = np.where(rows.null, NULL_ROW, 0 if rows.program_of is None else rows.program_of)
        tables = self.tables_of(programs, len(source.data))
        memory = Memory(slots.layout, len(starts), len(source.data))
        scratch, stack = np.zeros(2, np.int64), np.empty(self.stack, np.int64)
        views = scratch, scratch.view(np.float32), scratch.view(np.float64)
        first = 0
        while True:
            first = run(
                source.data, source.longs, starts, ends, numbers, first, *tables,
                *memory.arguments(), stack, *views, outcome.status, outcome.place,
            )  # fmt: skip
            if first == len(starts):
                break
            memory.grow(*scratch.tolist())
        slots.lay(memory.elements(), memory.sizes.tolist())

    def _in_waves(
        self,
        programs: Sequence[P],
        constants: Sequence[int],
        rows: Rows,
        slots: Slots,
        outcome: Outcome,
    ) -> Integers:
        """Run each program on its own rows, and return the rows that are left."""
        count = len(rows.starts)
        left = [np.zeros(0, np.int64)]
        for number, some in _groups(programs, rows.null, rows.program_of):
            if number < 0:
                outcome.add(some, Fault.NO_PROGRAM, WHOLE)
            elif len(some) <= few.FEW:
                left.append(some)
            else:
                waves = self.waves(programs[number], rows.source, constants[number], slots, outcome)
                elements = None if len(some) == count else some
                left.append(waves.run(some, elements, rows.starts[some], rows.ends[some]))
        return np.unique(np.concatenate(left))

    def _again(
        self, left: Integers, programs: Sequence[P], rows: Rows, slots: Slots, outcome: Outcome
    ) -> None:
        """Decode rows that the waves have left, from their beginning."""
        left = left[outcome.status[left] == 0]
        own_slots, own_outcome = Slots(slots.layout, len(left)), Outcome(len(left))
        self._by_row(self.run, programs, rows.of(left), own_slots, own_outcome)
        slots.replace(left, own_slots)
        outcome.status[left], outcome.place[left] = own_outcome.status, own_outcome.place


def _groups(
    programs: Sequence[Code], null: Mask, program_of: Integers | None
) -> list[tuple[int, Integers]]:
    """Return the rows of each program."""
    if program_of is None:
        return [(0, np.flatnonzero(~null))]
    return [(n, np.flatnonzero((program_of == n) & ~null)) for n in range(-1, len(programs))]


def _with_constants(
    data: Bytes | Octets, programs: Sequence[Code | Layout]
) -> tuple[Octets, list[int]]:
    """Return the bytes followed by the constants of each program, and where these begin."""
    octets: Octets = np.frombuffer(data, np.uint8)
    parts, places, size = [octets], [], len(octets)
    for program in programs:
        places.append(size)
        size += len(program.constants)
        parts.append(np.frombuffer(program.constants, np.uint8))
    return (octets if size == len(octets) else np.concatenate(parts)), places


def _paths(
    layout: Layout, programs: Sequence[Code], outcome: Outcome, program_of: Integers | None
) -> tuple[dict[int, str], dict[int, str]]:
    """Return the path for each bad row, and the reason where its `Fault` does not say all.

    Paths are cached by program and place: there are few.
    """
    rows = np.flatnonzero(outcome.status)
    numbers = np.zeros(len(rows), np.int64) if program_of is None else program_of[rows]
    places = zip(numbers.tolist(), outcome.place[rows].tolist(), strict=True)
    known: dict[tuple[int, int], str] = {}
    paths, details = {}, {}
    for row, (number, place) in zip(rows.tolist(), places, strict=True):
        path = known.get((number, place))
        if path is None:
            path = known[number, place] = _path(layout, programs, number, place)
        if path:
            paths[row] = path
        if place >= 0 and place in programs[number].failures:
            details[row] = programs[number].failures[place]
    return paths, details


def _path(layout: Layout, programs: Sequence[Code], number: int, place: int) -> str:
    if place == WHOLE:
        return ""
    if place < 0:
        return layout.path_of_slot(COLUMNS - place)
    paths = programs[number].paths
    return paths[place] if paths else ""
