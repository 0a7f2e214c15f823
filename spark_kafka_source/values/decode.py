"""Values to Arrow: a program, the bytes that they lie in, and where each starts and ends."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_kafka_source.records.types import Bytes
from spark_kafka_source.records.varints import Integers, Octets
from spark_kafka_source.values.arrow import ArrowBuilder
from spark_kafka_source.values.columns import Layout
from spark_kafka_source.values.faults import Fault
from spark_kafka_source.values.octets import OctetReader
from spark_kafka_source.values.outcome import Outcome
from spark_kafka_source.values.slots import Slots
from spark_kafka_source.values.waves import Waves

Mask = npt.NDArray[np.bool_]


class Code(Protocol):
    """What one writer's values are read by, whatever the format."""

    @property
    def constants(self) -> bytes:
        """What it reads beside the values."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Of the fields, by the places that an `Outcome` has."""


class Engine(Protocol):
    """What runs such a program on one buffer."""

    def run(self, rows: Integers, elements: Integers | None, at: Integers, end: Integers) -> None:
        """Decode these rows; `elements` are the same, None for all of them in their order."""


P = TypeVar("P", bound=Code)


@dataclass(frozen=True, slots=True)
class Decoded:
    """A row for each value: null where the value is null or bad.

    `status` has a `Fault` for each row, of which null ones are `OK`.
    """

    array: pa.Array
    status: Octets
    paths: dict[int, str]
    """Of the field, for each bad row."""

    def reason(self, row: int) -> str:
        """What is wrong with a bad row, and where."""
        fault, path = Fault(self.status[row]), self.paths.get(row)
        return f"{path}: {fault.reason}" if path else fault.reason


def decode(
    layout: Layout,
    programs: Sequence[P],
    data: Bytes | Octets,
    starts: Integers,
    ends: Integers,
    *,
    null: Mask | None = None,
    program_of: Integers | None = None,
    engine: Callable[[P, OctetReader, int, Slots, Outcome], Engine] = Waves,  # type: ignore[assignment]
) -> Decoded:
    """Decode the values `data[starts[row]:ends[row]]` into the columns of `layout`.

    `program_of` says by which of `programs` each row is read, -1 where there is none for it: such
    a row is bad. Without it, all are read by the first. Never raises because of what the bytes are,
    and no row has an influence on another.
    """
    count = len(starts)
    starts, ends = starts.astype(np.int64, copy=False), ends.astype(np.int64, copy=False)
    null = np.zeros(count, np.bool_) if null is None else null
    outcome, slots = Outcome(count), Slots(layout, count)
    octets, constants = _with_constants(data, [layout, *programs])
    source = OctetReader(octets)
    for number, rows in _groups(programs, null, program_of):
        if number < 0:
            outcome.add(rows, Fault.NO_PROGRAM, 0)
            continue
        running = engine(programs[number], source, constants[number + 1], slots, outcome)
        if len(rows) == count:
            running.run(rows, None, starts, ends)
        elif len(rows):
            running.run(rows, rows, starts[rows], ends[rows])
    slots.settle()
    array = ArrowBuilder(octets, slots, outcome, constants[0]).rows(layout.column, null)
    return Decoded(array, outcome.status, _paths(layout, programs, outcome, program_of))


def _groups(
    programs: Sequence[Code], null: Mask, program_of: Integers | None
) -> list[tuple[int, Integers]]:
    """The rows of each program."""
    if program_of is None:
        return [(0, np.flatnonzero(~null))]
    return [(n, np.flatnonzero((program_of == n) & ~null)) for n in range(-1, len(programs))]


def _with_constants(
    data: Bytes | Octets, programs: Sequence[Code | Layout]
) -> tuple[Octets, list[int]]:
    """The bytes, behind them the constants of each, and where these begin."""
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
    paths = {}
    for row in np.flatnonzero(outcome.status).tolist():
        place = int(outcome.place[row])
        number = 0 if program_of is None else int(program_of[row])
        if outcome.status[row] in (Fault.NO_PROGRAM, Fault.TRAILING):
            continue
        if place < 0:
            paths[row] = layout.path_of_slot(-1 - place)
        elif programs[number].paths:
            paths[row] = programs[number].paths[place]
    return paths
