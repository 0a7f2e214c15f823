"""Encoder from one Python value to a JSON text, by a JSON Schema.

A value is compared with the schema as a column of its type would be (`fit`). A dict is a struct:
its nulls are left out unless the schema requires the field. Where the schema has an object without
`properties`, a dict is a map: its nulls are written, or refused.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from operator import index
from typing import Any, NoReturn, TypeVar

import numpy as np
import pyarrow as pa

from spark_kafka_source.records import UnencodableRowError
from spark_kafka_source.values.errors import quoted
from spark_kafka_source.values.fitting import below
from spark_kafka_source.values.json.encode import has_format, text_of_leaf
from spark_kafka_source.values.json.fit import (
    BASE64,
    described,
    formats_of,
    is_nullable,
    nodes_for,
    properties_of,
    required_of,
)
from spark_kafka_source.values.json.one import (
    Text,
    base64,
    boolean,
    day,
    entries,
    local_time,
    moment,
    string,
    unknown,
)
from spark_kafka_source.values.json.schema import NULL, Options, Place, SchemaGraph
from spark_kafka_source.values.one_value import items_of, refuse

_BYTES = (bytes, bytearray, memoryview)
_FLOATS = (float, np.floating)
_DIGITS = 38
"""The most digits of a decimal."""
_WHOLE = range(-(1 << 63), 1 << 64)
"""The integers that a column of integers can have."""


@dataclass
class ShapedText:
    """Writer of texts for values that a JSON Schema describes. It makes its parts when needed."""

    shape: SchemaGraph
    ignored: frozenset[str]
    nulls: bool = False
    """Whether null fields are written wherever the schema allows a null."""
    made: "dict[Options, _Spot]" = field(default_factory=dict)

    def text(self, value: Any) -> str:
        """Return the text of the whole value. Raises `UnencodableRowError`."""
        return self.at(((0,),)).text(value, "")

    def at(self, options: Options) -> "_Spot":
        """Return the writer for one place."""
        if options not in self.made:
            self.made[options] = _Spot(self, options)
        return self.made[options]


class _Spot:
    """Writer for the values in one place."""

    def __init__(self, whole: ShapedText, options: Options) -> None:
        self._shape, self._options = whole.shape, options
        self._places = places = whole.shape.places(options, "")
        self.is_nullable = is_nullable(places)
        self.has_values = bool(places)
        self._is_open = any(place.is_open for place in places)
        self._types = frozenset(name for place in places for name in place.likely)
        self._formats = [
            frozenset(formats_of(place)) for place in places if "string" in place.likely
        ]
        self._objects = [_Object(whole, place) for place in places if "object" in place.likely]
        self._arrays = [_Array(whole, place) for place in places if "array" in place.likely]

    def text(self, value: Any, path: str) -> str:
        """Return the text of a value or null. Raises `UnencodableRowError`."""
        if value is None:
            if not self.is_nullable:
                refuse(path, f"null, where the schema has {described(self._places)}")
            return "null"
        name = _type_of(value)
        if name == "object" or (name == "array" and not self._arrays):
            return self._object(value, path)
        if name == "array":
            return self._list(value, path)
        if name not in self._types:
            self._refuse(value, path)
        if name == "string":
            return self._string(value, path)
        return boolean(value, path) if name == "boolean" else self._number(value, path)

    def _string(self, value: Any, path: str) -> str:
        if isinstance(value, str):
            if not any(not formats or has_format(value, formats) for formats in self._formats):
                self._refuse(value, path)
            return string(value, path)
        format, text = _way(value, is_local=self._is_open)
        if not (self._is_open or any(format in formats for formats in self._formats)):
            self._refuse(value, path)
        return text(value, path)

    def _number(self, value: Any, path: str) -> str:
        if isinstance(value, _FLOATS):
            if not (self._is_open or math.isfinite(value)):
                self._refuse(value, path)
            is_single = isinstance(value, np.floating) and value.itemsize < 8
            return text_of_leaf(value, pa.float32() if is_single else pa.float64())
        if isinstance(value, Decimal):
            if value.is_finite() and not _decimal_text(value):
                refuse(path, f"{quoted(value)} has more than {_DIGITS} digits")
            return _decimal_text(value) or self._refuse(value, path)
        number = index(value)
        if number not in _WHOLE:
            refuse(path, f"{quoted(number)} is beyond 64 bits")
        return str(number)

    def suits(self, value: Any) -> bool:
        """Whether a value, and those within it, are among the values of `const` and `enum`."""
        allows = self._shape.allows
        if not any(all(allows(number, value) for number in numbers) for numbers in self._options):
            return False
        name = _type_of(value)
        is_array = name == "array" and bool(self._arrays)
        ways = self._arrays if is_array else self._objects if name in ("object", "array") else []
        return not ways or any(each.suits(value) for each in ways)

    def _list(self, value: Any, path: str) -> str:
        """Return the text by a choice that the value fits: the longest has the most nulls."""
        texts = _fitting(self._arrays, value, path)
        return max((text for _, text in texts), key=len)

    def _object(self, value: Any, path: str) -> str:
        """Return the text by the choices that the value fits, which name the fields it must have.

        A null is added only for a field that all of them require. A null that one of them requires
        is written.
        """
        if not self._objects:
            self._refuse(value, path)
        fitting = _fitting(self._objects, value, path)
        if len(fitting) == 1:
            return fitting[0][1]
        given = dict(entries(value, path))
        lacking = [(each.lacking(given), each, text) for each, text in fitting]
        every = frozenset.intersection(*(names for names, _, _ in lacking))
        complete = [(each, text) for names, each, text in lacking if names == every]
        if not complete:
            names = sorted({min(names - every) for names, _, _ in lacking})
            refuse(path, f"one of the fields {', '.join(names)} is missing. Give one, or a null")
        best, text = max(complete, key=lambda each: len(each[1]))
        nulls = {name for each, _ in complete for name in each.required if name in given}
        return best.text(value, path, nulls) if nulls - best.required else text

    def _refuse(self, value: Any, path: str) -> NoReturn:
        wanted = described(self._places)
        is_other = any(place.types - NULL for place in self._places)
        shown = quoted(value)
        refuse(
            path,
            f"{shown} is no {wanted}" if is_other else f"{shown}, where the schema has {wanted}",
        )


class _Object:
    """Writer of dicts for one choice."""

    def __init__(self, whole: ShapedText, place: Place) -> None:
        self._whole, self._place = whole, place
        self._known = dict.fromkeys(properties_of(place))
        self._lower = {each.lower() for each in self._known}
        self.required = frozenset(required_of(place))
        self._is_map = not self._known and not place.is_open
        self._made: dict[str, tuple[str, _Spot]] = {}

    def text(self, value: Any, path: str, nulls: Collection[str] = ()) -> str:
        """Return the text of a dict, or of a map's pairs. Raises `UnencodableRowError`.

        `nulls` are fields that are written if they are null and may be.
        """
        if not isinstance(value, Mapping) and not self._is_map:
            refuse(path, f"{quoted(value)} is no dict")
        given = dict(entries(value, path))
        more = (name for name in given if name not in self._known)
        named = [each for each in self._known if each in given]
        named += [each for each in more if below(path, each) not in self._whole.ignored]
        fields = [self._field(name, given[name], path, nulls) for name in named]
        lacking = (each for each in required_of(self._place) if each not in given)
        fields += [self._field(each, None, path, nulls) for each in lacking]
        return f"{{{','.join(filter(None, fields))}}}"

    def lacking(self, given: Collection[str]) -> frozenset[str]:
        """Return the fields that the text has and the value has not."""
        return self.required.difference(given)

    def suits(self, value: Any) -> bool:
        """Whether the fields are among the values of `const` and `enum`."""
        fields = ((nodes_for(self._place, name), each) for name, each in entries(value, ""))
        return all(self._whole.at((nodes,)).suits(each) for nodes, each in fields)

    def _field(self, name: str, value: Any, path: str, nulls: Collection[str]) -> str:
        """Return the text of a field with its name, or an empty text if it is left out."""
        label, spot = self._at(name, path)
        may_be = spot.is_nullable and (self._whole.nulls or name in nulls)
        # A map has an entry, also if it is null.
        if value is not None or name in self.required or self._is_map or may_be:
            return label + spot.text(value, below(path, name))
        return ""

    def _at(self, name: str, path: str) -> "tuple[str, _Spot]":
        """Return the name as it is written, and the writer. Raises `UnencodableRowError`."""
        if name in self._made:
            return self._made[name]
        is_alike = name not in self._known and name.lower() in self._lower
        spot = self._whole.at((nodes_for(self._place, name),))
        if is_alike or not spot.has_values:
            unknown(name, self._known, path)
        made = f"{string(name, below(path, name))}:", spot
        # Names that the schema does not have come without a bound.
        if name in self._known or name in self.required:
            self._made[name] = made
        return made


class _Array:
    """Writer of lists for one choice."""

    def __init__(self, whole: ShapedText, place: Place) -> None:
        self._whole, self._nodes = whole, place.arrays

    def text(self, value: Any, path: str) -> str:
        """Return the text of a list. Raises `UnencodableRowError`."""
        items = items_of(value, path)
        texts = [self._at(number).text(each, f"{path}[]") for number, each in enumerate(items)]
        return f"[{','.join(texts)}]"

    def suits(self, value: Any) -> bool:
        """Whether the items are among the values of `const` and `enum`."""
        return all(self._at(number).suits(each) for number, each in enumerate(items_of(value, "")))

    def _at(self, number: int) -> "_Spot":
        """Return the writer for an item. Those behind the prefix of a tuple have the same."""
        numbers: dict[int, None] = {}
        for node in self._nodes:
            if number < len(node.prefix):
                numbers[node.prefix[number]] = None
            elif node.items is not None:
                numbers[node.items] = None
        return self._whole.at((tuple(numbers),))


def _fitting(ways: "Sequence[_Way]", value: Any, path: str) -> "list[tuple[_Way, str]]":
    """Return the choices that a value fits, and its texts. Raises `UnencodableRowError` for none.

    Where `const` and `enum` have the value in some of them, it is these.
    """
    fitting: list[tuple[_Way, str]] = []
    error = UnencodableRowError([0], "")
    for each in ways:
        try:
            fitting.append((each, each.text(value, path)))
        except UnencodableRowError as failed:
            error = failed
    if not fitting:
        raise error
    if len(fitting) == 1:
        return fitting
    return [(each, text) for each, text in fitting if each.suits(value)] or fitting


_Way = TypeVar("_Way", _Object, _Array)

_TYPES: Mapping[type, str] = {
    **{bool: "boolean", int: "integer", float: "number", str: "string", bytes: "string"},
    **{dict: "object", list: "array", tuple: "array"},
}


_OTHERS: tuple[tuple[Any, str], ...] = (
    (_FLOATS, "number"),
    ((int, np.integer), "integer"),
    ((str, date, *_BYTES), "string"),
    (Mapping, "object"),
    (Iterable, "array"),
)


def _type_of(value: Any) -> str:
    """Return the type in JSON of a Python value. Empty if there is none."""
    if type(value) in _TYPES:
        return _TYPES[type(value)]
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        return "integer" if isinstance(exponent, int) and exponent >= 0 else "number"
    return next((name for types, name in _OTHERS if isinstance(value, types)), "")


def _way(value: Any, *, is_local: bool) -> tuple[str, Text]:
    """Return the format of strings that a value stands for, and its writer."""
    if isinstance(value, datetime):
        is_naive = value.utcoffset() is None
        return "date-time", local_time if is_naive and is_local else moment
    return ("date", day) if isinstance(value, date) else (BASE64, base64)


def _decimal_text(value: Decimal) -> str:
    """Return the text of a decimal that a column can have, or an empty one."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or max(len(digits), -exponent) + max(exponent, 0) > _DIGITS:
        return ""
    number = value.copy_abs() if value.is_zero() else value
    return format(number, "f") if exponent > 0 else str(number)
