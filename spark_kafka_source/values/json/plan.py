"""Plan for a type: the type that `pyarrow.json` reads, and the conversion of its columns.

Where `pyarrow.json` would differ from `meaning`, the plan reads texts or doubles, and converts them
here. Its decimals lose digits and precision, its times and bytes are not ours, and it rounds to a
float once instead of twice. A time may also be a number, and a decimal may also be a text:
`flipped` says which of the two a column is read as.
"""

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source.records.varints import Integers
from spark_kafka_source.values.ddl import TIMESTAMP, TIMESTAMP_NTZ, array_of
from spark_kafka_source.values.json.meaning import from_base64
from spark_kafka_source.values.json.times import MICROS, dates, local_timestamps, timestamps

Finished = tuple[pa.Array, Integers]
"""A column, and its doubtful elements: they are null, and must be read in another way."""
Finish = Callable[[pa.Array], Finished]

_NONE = np.zeros(0, np.int64)
_MOST_PIECES = 64
_MOST_SECONDS = (1 << 63) // MICROS - 1


@dataclass(frozen=True, slots=True)
class Plan:
    """Type to read a column as, and the conversion after it. None if the type is right already."""

    read: pa.DataType
    finish: Finish | None = None


def plan(kind: pa.DataType, flipped: Set[str] = frozenset(), path: str = "") -> Plan:
    """Return the plan of a type."""
    if pa.types.is_map(kind):
        return _map(kind, plan(kind.item_type, flipped, f"{path}/{{}}"))
    if pa.types.is_list(kind):
        return _list(kind, plan(kind.value_type, flipped, f"{path}/[]"))
    if pa.types.is_struct(kind):
        return _struct(kind, [plan(each.type, flipped, f"{path}/{each.name}") for each in kind])
    return _leaf(kind, path in flipped)


def has_map(kind: pa.DataType) -> bool:
    """Whether a type has a map, which `pyarrow.json` does not read."""
    return pa.types.is_map(kind) or any(
        has_map(kind.field(place).type) for place in range(kind.num_fields)
    )


def flippable(kind: pa.DataType, path: str = "") -> Iterator[str]:
    """Yield the paths that can be read in two ways, as errors of `pyarrow.json` name them."""
    if pa.types.is_list(kind):
        yield from flippable(kind.value_type, f"{path}/[]")
    elif pa.types.is_struct(kind):
        for each in kind:
            yield from flippable(each.type, f"{path}/{each.name}")
    elif kind == TIMESTAMP or pa.types.is_decimal(kind):
        yield path


def _leaf(kind: pa.DataType, flipped: bool) -> Plan:
    if pa.types.is_decimal(kind):
        finish = _decimals(kind)
        if flipped:
            return Plan(pa.string(), _in_pieces(pa.float64(), _doubles, finish))
        return Plan(pa.float64(), finish)
    if kind == TIMESTAMP and flipped:
        return Plan(pa.int64(), _seconds)
    if kind in _OF_TEXTS:
        return Plan(pa.string(), _in_pieces(kind, _OF_TEXTS[kind]))
    return Plan(pa.float64(), _floats) if kind == pa.float32() else Plan(kind)


def _list(kind: pa.DataType, item: Plan) -> Plan:
    finish = item.finish
    if finish is None:
        return Plan(kind)

    def finish_list(array: pa.Array) -> Finished:
        items, doubtful = finish(array.values)
        laid = pa.Array.from_buffers(kind, len(array), array.buffers()[:2], children=[items])
        return laid, _owners(array, doubtful)

    return Plan(array_of(item.read), finish_list)


def _map(kind: pa.DataType, item: Plan) -> Plan:
    finish = item.finish
    if finish is None:
        return Plan(kind)

    def finish_map(array: pa.Array) -> Finished:
        items, doubtful = finish(array.items)
        fields = [kind.key_field, kind.item_field]
        pairs = pa.StructArray.from_arrays([array.keys, items], fields=fields)
        laid = pa.Array.from_buffers(kind, len(array), array.buffers()[:2], children=[pairs])
        return laid, _owners(array, doubtful)

    return Plan(pa.map_(pa.string(), item.read), finish_map)


def _owners(array: pa.Array, items: Integers) -> Integers:
    """Return the lists or maps that contain these items."""
    return np.unique(np.searchsorted(array.offsets.to_numpy(), items, side="right") - 1)


def _struct(kind: pa.DataType, children: list[Plan]) -> Plan:
    fields = list(kind)
    if all(each.finish is None for each in children):
        return Plan(kind)

    def finish_struct(array: pa.Array) -> Finished:
        columns, doubtful = [], [_NONE]
        for place, child in enumerate(children):
            column = array.field(place)
            if child.finish:
                column, some = child.finish(column)
                doubtful.append(some)
            columns.append(column)
        laid = pa.Array.from_buffers(kind, len(array), array.buffers()[:1], children=columns)
        return laid, np.unique(np.concatenate(doubtful))

    read = [(each.name, child.read) for each, child in zip(fields, children, strict=True)]
    return Plan(pa.struct(read), finish_struct)


def _in_pieces(
    kind: pa.DataType, convert: Callable[[pa.Array], pa.Array], then: Finish | None = None
) -> Finish:
    """Convert all texts of a column at once. Around a failure, retry in ever smaller parts."""

    def finish(texts: pa.Array) -> Finished:
        pieces: list[tuple[int, pa.Array]] = []
        doubtful: list[Integers] = [_NONE]
        ranges, failures = [(0, len(texts))], 0
        while ranges:
            start, end = ranges.pop()
            try:
                pieces.append((start, convert(texts.slice(start, end - start))))
            except (pa.ArrowInvalid, ValueError):
                failures += 1
                if end - start == 1 or failures > _MOST_PIECES:
                    doubtful.append(np.arange(start, end))
                    pieces.append((start, pa.nulls(end - start, kind)))
                else:
                    middle = (start + end) // 2
                    ranges += [(start, middle), (middle, end)]
        pieces.sort(key=lambda piece: piece[0])
        whole = pieces[0][1] if len(pieces) == 1 else pa.concat_arrays([each for _, each in pieces])
        if then is None:
            return whole, np.concatenate(doubtful)
        column, more = then(whole)
        return column, np.concatenate([*doubtful, more])

    return finish


def _doubles(texts: pa.Array) -> pa.Array:
    return texts.cast(pa.float64())


def _floats(doubles: pa.Array) -> Finished:
    with np.errstate(over="ignore", under="ignore"):
        return doubles.cast(pa.float32(), safe=False), _NONE


def _seconds(numbers: pa.Array) -> Finished:
    values = _values(numbers, 0)
    doubtful = np.flatnonzero(np.abs(values + (values < 0)) > _MOST_SECONDS)
    with np.errstate(over="ignore"):
        values = values * MICROS
    return _laid(TIMESTAMP, numbers, values), doubtful


def _decimals(kind: pa.DataType) -> Finish:
    """Return the conversion from doubles to decimals. The nearest short decimal gives the digits.

    The double nearest to `v` is within a 2^53rd of it, and so is each of two more roundings. If
    there are too many digits to decide, or the value to round is close to a half, the text decides.
    """
    most = float(10**kind.precision)

    def finish(doubles: pa.Array) -> Finished:
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = _values(doubles, 0.0) * 10.0**kind.scale
            whole = np.rint(scaled)
            near = np.abs(scaled - whole) + np.abs(whole) * 2.0**-51 < 0.5
        known = near & (np.abs(whole) < most)
        values = np.zeros((len(whole), 2), np.int64)
        values[:, 0] = np.where(known, whole, 0).astype(np.int64)
        values[:, 1] = values[:, 0] >> 63
        return _laid(kind, doubles, values), np.flatnonzero(~known)

    return finish


def _base64(texts: pa.Array) -> pa.Array:
    values = [None if each is None else from_base64(each) for each in texts.to_pylist()]
    return pa.array(values, pa.binary())


_OF_TEXTS: dict[pa.DataType, Callable[[pa.Array], pa.Array]] = {
    TIMESTAMP: timestamps,
    TIMESTAMP_NTZ: local_timestamps,
    pa.date32(): dates,
    pa.binary(): _base64,
}


def _values(array: pa.Array, null: float) -> Any:
    return pc.fill_null(array, null).to_numpy()


def _laid(kind: pa.DataType, of: pa.Array, values: "npt.NDArray[np.generic]") -> pa.Array:
    """Return the values as an array, null where `of` is null."""
    valid = pa.array(np.asarray(of.is_valid()))
    validity = valid.buffers()[1] if of.null_count else None
    return pa.Array.from_buffers(kind, len(of), [validity, pa.py_buffer(values)])
