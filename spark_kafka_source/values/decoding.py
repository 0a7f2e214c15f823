"""Decoding of values to Arrow: from programs, bytes, and the bounds of each value."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from spark_kafka_source.records.types import Bytes
from spark_kafka_source.records.varints import Integers, Octets
from spark_kafka_source.values import compiled
from spark_kafka_source.values.arrow import ArrowBuilder
from spark_kafka_source.values.by_row import Rows, decode_by_row
from spark_kafka_source.values.columns import Layout
from spark_kafka_source.values.compiled import Kernels
from spark_kafka_source.values.faults import Fault
from spark_kafka_source.values.octets import OctetReader
from spark_kafka_source.values.outcome import COLUMNS, WHOLE, Mask, Outcome
from spark_kafka_source.values.program import Program
from spark_kafka_source.values.slots import Slots
from spark_kafka_source.values.waves import Waves


class Code(Protocol):
    """Program that reads the values of one writer, for any format."""

    @property
    def constants(self) -> bytes:
        """The bytes that the program reads besides the values."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the fields, by the places in an `Outcome`."""


class Engine(Protocol):
    """Engine that runs a program on one buffer."""

    def run(self, rows: Integers, elements: Integers | None, at: Integers, end: Integers) -> None:
        """Decode these rows. `elements` are the elements to fill, or None for all in order."""


class Compiled(Protocol):
    """Module with the kernels of a format."""

    def kernels(self, row_count: int = 0) -> Kernels | None:
        """Return the kernels, or None. `row_count` rows are about to be decoded."""


P = TypeVar("P", bound=Code)


@dataclass(frozen=True)
class Engines(Generic[P]):
    """Engines of one format."""

    waves: Callable[[P, OctetReader, int, Slots, Outcome], Engine]
    by_row: Callable[[Kernels, Sequence[P], Rows, Slots, Outcome], None]
    """The engine for all programs at once, used if the kernels are compiled."""
    compiled: Compiled
    """The kernels of the format."""

    def in_waves(
        self,
        programs: Sequence[P],
        constants: Sequence[int],
        rows: Rows,
        slots: Slots,
        outcome: Outcome,
    ) -> None:
        """Run each program on its own rows."""
        count = len(rows.starts)
        for number, some in _groups(programs, rows.null, rows.program_of):
            if number < 0:
                outcome.add(some, Fault.NO_PROGRAM, WHOLE)
                continue
            waves = self.waves(programs[number], rows.source, constants[number], slots, outcome)
            if len(some) == count:
                waves.run(some, None, rows.starts, rows.ends)
            elif len(some):
                waves.run(some, some, rows.starts[some], rows.ends[some])


AVRO: "Engines[Program]" = Engines(Waves, decode_by_row, compiled)


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


def decode(
    layout: Layout,
    programs: Sequence[Any],
    data: Bytes | Octets,
    starts: Integers,
    ends: Integers,
    *,
    null: Mask | None = None,
    program_of: Integers | None = None,
    engines: Engines[Any] = AVRO,
) -> Decoded:
    """Decode the values `data[starts[row]:ends[row]]` into the columns of `layout`.

    `program_of` is the index in `programs` for each row, or -1 for a row without a program, which
    is bad. Without `program_of` the first program reads all rows. Never raises because of the
    bytes. No row influences another row.
    """
    count = len(starts)
    starts, ends = starts.astype(np.int64, copy=False), ends.astype(np.int64, copy=False)
    null = np.zeros(count, np.bool_) if null is None else null
    outcome, slots = Outcome(count), Slots(layout, count)
    octets, constants = _with_constants(data, [layout, *programs])
    rows = Rows(OctetReader(octets), starts, ends, null, program_of)
    kernels = engines.compiled.kernels(count)
    if kernels:
        engines.by_row(kernels, programs, rows, slots, outcome)
    else:
        engines.in_waves(programs, constants[1:], rows, slots, outcome)
    slots.settle()
    builder = ArrowBuilder(rows.source, slots, outcome, constants[0], kernels)
    array = builder.rows(layout.column, null)
    return Decoded(array, outcome.status, _paths(layout, programs, outcome, program_of))


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
) -> dict[int, str]:
    """Return the path for each bad row. Paths are cached by program and place: there are few."""
    rows = np.flatnonzero(outcome.status)
    numbers = np.zeros(len(rows), np.int64) if program_of is None else program_of[rows]
    places = zip(numbers.tolist(), outcome.place[rows].tolist(), strict=True)
    known: dict[tuple[int, int], str] = {}
    paths = {}
    for row, (number, place) in zip(rows.tolist(), places, strict=True):
        path = known.get((number, place))
        if path is None:
            path = known[number, place] = _path(layout, programs, number, place)
        if path:
            paths[row] = path
    return paths


def _path(layout: Layout, programs: Sequence[Code], number: int, place: int) -> str:
    if place == WHOLE:
        return ""
    if place < 0:
        return layout.path_of_slot(COLUMNS - place)
    paths = programs[number].paths
    return paths[place] if paths else ""
