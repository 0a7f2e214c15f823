"""Encoder from one Python value to a JSON text, by a JSON Schema.

A value is compared with the schema as a column of its type would be (`fit`). A dict is a struct:
its nulls are left out unless the schema requires the field. Where the schema has an object without
`properties`, a dict is a map.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from operator import index
from typing import Any, NoReturn

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
from spark_kafka_source.values.json.leaves import (
    Text,
    base64,
    boolean,
    day,
    local_time,
    moment,
    string,
)
from spark_kafka_source.values.json.one import entries, unknown
from spark_kafka_source.values.json.shape import Options, Place, Shape
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

    shape: Shape
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
            self.made[options] = _Spot(self, self.shape.places(options, ""))
        return self.made[options]


class _Spot:
    """Writer for the values in one place."""

    def __init__(self, whole: ShapedText, places: list[Place]) -> None:
        self._places = places
        self.is_nullable = is_nullable(places)
        self.has_values = bool(places)
        self._is_open = any(each.is_open for each in places)
        self._types = frozenset(name for each in places for name in each.likely)
        self._formats = [frozenset(formats_of(each)) for each in places if "string" in each.likely]
        self._objects = [_Object(whole, each) for each in places if "object" in each.likely]
        self._arrays = [_Array(whole, each) for each in places if "array" in each.likely]

    def text(self, value: Any, path: str) -> str:
        """Return the text of a value or null. Raises `UnencodableRowError`."""
        if value is None:
            if not self.is_nullable:
                refuse(path, f"null, where the schema has {described(self._places)}")
            return "null"
        name = _type_of(value)
        if name == "object" or (name == "array" and not self._arrays):
            return self._by_one_of(self._objects, value, path)
        if name == "array":
            return self._by_one_of(self._arrays, value, path)
        if name not in self._types:
            self._refuse(value, path)
        if name == "string":
            return self._string(value, path)
        return boolean(value, path) if name == "boolean" else self._number(value, path)

    def _string(self, value: Any, path: str) -> str:
        if isinstance(value, str):
            if not any(not each or has_format(value, each) for each in self._formats):
                self._refuse(value, path)
            return string(value, path)
        format, text = _way(value, is_local=self._is_open)
        if not (self._is_open or any(format in each for each in self._formats)):
            self._refuse(value, path)
        return text(value, path)

    def _number(self, value: Any, path: str) -> str:
        if isinstance(value, _FLOATS):
            if not (self._is_open or math.isfinite(value)):
                self._refuse(value, path)
            is_single = isinstance(value, np.floating) and value.itemsize < 8
            return text_of_leaf(value, pa.float32() if is_single else pa.float64())
        if isinstance(value, Decimal):
            return _decimal_text(value) or self._refuse(value, path)
        number = index(value)
        return str(number) if number in _WHOLE else self._refuse(value, path)

    def _by_one_of(self, ways: "list[_Object] | list[_Array]", value: Any, path: str) -> str:
        """Return the text by a choice that the value fits.

        It is one that adds the fewest nulls for fields that the value lacks. Of these the longest
        has the most nulls that a choice requires, as a column has them.
        """
        found: list[tuple[int, int, str]] = []
        error = UnencodableRowError([0], "")
        for each in ways:
            try:
                text = each.text(value, path)
            except UnencodableRowError as failed:
                error = failed
            else:
                found.append((-each.added(value), len(text), text))
        if not ways:
            self._refuse(value, path)
        if not found:
            raise error
        return max(found)[2]

    def _refuse(self, value: Any, path: str) -> NoReturn:
        refuse(path, f"{quoted(value)} is no {described(self._places)}")


class _Object:
    """Writer of dicts for one choice."""

    def __init__(self, whole: ShapedText, place: Place) -> None:
        self._whole, self._place = whole, place
        self._known = dict.fromkeys(properties_of(place))
        self._lower = {each.lower() for each in self._known}
        self._required = required_of(place)
        self._is_map = not self._known and not place.is_open
        self._made: dict[str, tuple[str, _Spot]] = {}

    def text(self, value: Any, path: str) -> str:
        """Return the text of a dict, or of a map's pairs. Raises `UnencodableRowError`."""
        if not isinstance(value, Mapping) and not self._is_map:
            refuse(path, f"{quoted(value)} is no dict")
        given = dict(entries(value, path))
        more = (each for each in given if each not in self._known)
        named = [each for each in self._known if each in given]
        named += [each for each in more if below(path, each) not in self._whole.ignored]
        fields = [self._field(name, given[name], path) for name in named]
        fields += [self._field(each, None, path) for each in self._required if each not in given]
        return f"{{{','.join(filter(None, fields))}}}"

    def added(self, value: Any) -> int:
        """Return how many fields the text has that the value has not."""
        return sum(name not in value for name in self._required)

    def _field(self, name: str, value: Any, path: str) -> str:
        """Return the text of a field with its name, or an empty text if it is left out."""
        label, spot = self._at(name, path)
        writes_null = spot.is_nullable and (self._is_map or self._whole.nulls)
        if value is not None or name in self._required or writes_null:
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
        if name in self._known or name in self._required:
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

    def added(self, value: Any) -> int:
        """Return how many items the text has that the value has not: none."""
        return 0

    def _at(self, number: int) -> "_Spot":
        """Return the writer for an item. Those behind the prefix of a tuple have the same."""
        found: dict[int, None] = {}
        for node in self._nodes:
            if number < len(node.prefix):
                found[node.prefix[number]] = None
            elif node.items is not None:
                found[node.items] = None
        return self._whole.at((tuple(found),))


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
