"""Comparison of a column's type with the type that a schema wants, before a row is written.

A type fits if each of its values is a value of the wanted type, unchanged. So an INT fits a long,
and a DOUBLE does not fit a float. Rules of one format are in its own `fit.py`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source.records import ColumnTypeError, UnencodableRowError
from spark_kafka_source.records.plain_types import is_any
from spark_kafka_source.records.varints import Integers
from spark_kafka_source.values.faults import Mask

_MOST_NAMES = 20
_OPTION = "'value.ignore.fields'"
_NO_FIELD = "the schema has no such field"
_EXACT_BITS = {16: 11, 32: 24, 64: 53}
"""The bits of the integers that a float of this width has exactly."""


class UnfitColumnError(ColumnTypeError):
    """A column, or a field within it, does not fit the schema that it is written with.

    `column` is the path, such as `value.address.city`. `found` is there, `expected` would be right.
    """

    def within(self, part: str) -> "UnfitColumnError":
        """Return the same error with the path from `part` on, which is `key` or `value`."""
        path = below(part, self.column) if self.column[:1] not in "[{" else part + self.column
        return UnfitColumnError(path, self.found, of_part(self.expected, part))

    def _text(self) -> str:
        return f"Column '{self.column}' does not fit the schema: {self.found}. {self.expected}"


def of_part(text: str, part: str) -> str:
    """Return a text about options of `value` as one about those of `part`."""
    return text.replace(_OPTION, _OPTION.replace("value", part))


def below(path: str, name: str) -> str:
    """Return the path of a field."""
    return f"{path}.{name}" if path else name


def unfit(path: str, found: object, wanted: object, advice: str = "") -> NoReturn:
    """Raise `UnfitColumnError` for a type where the schema wants another."""
    shown = found if isinstance(found, str) else f"it is of the type {found}"
    raise UnfitColumnError(path, shown, f"The schema has {wanted}{advice and '. '}{advice}")


# -- fields ----------------------------------------------------------------------------------------


def places(
    given: Sequence[str], wanted: Collection[str], path: str, ignored: Collection[str]
) -> Mapping[str, int]:
    """Return the place in `given` of each wanted field. A field that is not given has no place.

    Names count as they are written, in all ways to write, since a reader compares them so, too.
    `ignored` are the paths of fields that may be given without a place in the schema. Raises
    `UnfitColumnError` for any other such field, and for a name that is given twice.
    """
    place_of: dict[str, int] = {}
    for place, name in enumerate(given):
        if name in wanted:
            if name in place_of:
                unfit(below(path, name), "it is given twice", "it once")
            place_of[name] = place
        elif below(path, name) not in ignored:
            unknown_field(name, wanted, path)
    return place_of


def unknown_field(name: str, wanted: Iterable[str], path: str) -> NoReturn:
    """Raise `UnfitColumnError` for a field that the schema does not have."""
    shown, advice = no_such_field(name, wanted, path)
    raise UnfitColumnError(below(path, name), shown, advice)


def no_such_field(name: str, wanted: Iterable[str], path: str) -> tuple[str, str]:
    """Return what is wrong with a field that the schema does not have, and what to do."""
    names = list(wanted)
    listed = ", ".join(names[:_MOST_NAMES]) + (", ..." if len(names) > _MOST_NAMES else "")
    alike = [each for each in names if each.lower() == name.lower()]
    known = f"The schema has: {listed or 'no field'}"
    if alike:
        return _NO_FIELD, f"Names count with their case: did you mean {alike[0]!r}? {known}"
    option = f"To leave it out, give {_OPTION} {below(path, name)!r}"
    return _NO_FIELD, f"{known}. {option}"


def missing_field(path: str, wanted: object) -> NoReturn:
    """Raise `UnfitColumnError` for a field that the schema needs."""
    unfit(path, "it is missing", f"{wanted} and no null there")


# -- leaves ----------------------------------------------------------------------------------------


def widens(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether each value of the type `given` is a value of the type `wanted`, unchanged.

    Times with finer units than wanted fit, since `converted` refuses the rows that would be cut.
    """
    if given == wanted:
        return True
    if is_any(wanted, "decimal"):
        return _widens_decimal(given, wanted)
    if is_any(wanted, "integer"):
        return is_any(given, "integer") and _holds(wanted, given)
    if is_any(wanted, "floating") and is_any(given, "integer"):
        return _bits(given) <= _EXACT_BITS[wanted.bit_width]
    return any(is_any(given, each) and is_any(wanted, each) for each in _KINDS) and not (
        _is_narrower(wanted, given)
    )


_KINDS = ("floating", "timestamp", "time", "duration", "date")


def _is_narrower(wanted: pa.DataType, given: pa.DataType) -> bool:
    if is_any(wanted, "timestamp"):
        return (given.tz is None) != (wanted.tz is None)
    return is_any(wanted, "floating") and bool(wanted.bit_width < given.bit_width)


def _range(kind: pa.DataType) -> tuple[int, int]:
    """Return the least and the most of a type's whole numbers."""
    bits = kind.bit_width
    if is_any(kind, "signed_integer"):
        return -(1 << bits - 1), (1 << bits - 1) - 1
    return 0, (1 << bits) - 1


def _holds(wanted: pa.DataType, given: pa.DataType) -> bool:
    (least, most), (lowest, highest) = _range(given), _range(wanted)
    return lowest <= least and most <= highest


def _bits(kind: pa.DataType) -> int:
    return int(kind.bit_width) - is_any(kind, "signed_integer")


def _widens_decimal(given: pa.DataType, wanted: pa.DataType) -> bool:
    whole = wanted.precision - wanted.scale
    if is_any(given, "integer"):
        return bool(max(map(abs, _range(given))) < 10**whole)
    if not is_any(given, "decimal"):
        return False
    return bool(given.scale <= wanted.scale and given.precision - given.scale <= whole)


def converted(
    array: pa.Array, wanted: pa.DataType, rows: Integers, path: str, there: Mask | None = None
) -> pa.Array:
    """Return the column in a type that it `widens` to. `rows` has the row of each element.

    Only the elements in the mask `there` are looked at. The others may be anything.

    Raises `UnencodableRowError` for rows with a time that is finer than the wanted unit, or beyond
    its range.
    """
    if array.type == wanted:
        return array
    if is_any(wanted, "timestamp"):
        # The moment is the same in each zone. An older Arrow looks for the zone if it casts.
        array = array.view(pa.timestamp(array.type.unit, wanted.tz))
    with suppress(pa.ArrowInvalid):
        return array.cast(wanted)
    rounded = array.cast(wanted, safe=False)
    unequal = pc.not_equal(rounded.cast(array.type, safe=False), array)
    other: Mask = pc.fill_null(unequal, False).to_numpy(zero_copy_only=False)
    other = other if there is None else other & there
    if not other.any():
        return rounded
    # As text, since Python has neither nanoseconds nor the year 10,000.
    first = array.slice(int(np.flatnonzero(other)[0]), 1).cast(pa.string())[0]
    return refuse_rows(path, rows[other], f"{first} is not a whole {wanted}, or beyond its range")


# -- rows ------------------------------------------------------------------------------------------


def refuse_rows(path: str, rows: Integers, reason: str) -> NoReturn:
    """Raise `UnencodableRowError` for these rows, some perhaps several times."""
    raise UnencodableRowError(np.unique(rows).tolist(), f"{path}: {reason}" if path else reason)
