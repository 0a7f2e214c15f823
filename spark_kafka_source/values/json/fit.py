"""Comparison of a column's type with the schema that it is written with: made once, before any row.

The schema is DDL, a JSON Schema, or none. The result, a `Fit`, is a tree of the column's own type.
It says how each part is written, and what only rows can show to be wrong. The rules for types are
those of `values.fitting`, and for a JSON Schema those of docs/contributors/formats-in-detail.md.
The module is long because the three kinds of schemas stand beside each other, with the same rules
for nested types.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

import pyarrow as pa

from spark_kafka_source.values.ddl import TIMESTAMP, TIMESTAMP_NTZ, array_of, to_ddl
from spark_kafka_source.values.errors import SchemaError
from spark_kafka_source.values.fitting import (
    UnfitColumnError,
    below,
    missing_field,
    places,
    unfit,
    unknown_field,
    widens,
)
from spark_kafka_source.values.json.meaning import readable
from spark_kafka_source.values.json.schema import INSTEAD, NULL, Node, Options, Place, SchemaGraph

MAX_TRIED = 100_000
"""The most choices of a JSON Schema that a column is compared with."""
FORMATS = ("date", "date-time")
"""The formats whose values are times. All others are texts."""
BASE64 = "base64"


@dataclass(frozen=True, slots=True)
class Field:
    """Field of an object."""

    name: str
    place: int | None
    """The place in the column's struct. None for a field that is always null."""
    fit: "Fit"
    is_required: bool = False
    """Whether the object has it also if it is null. Other fields are left out then."""


@dataclass(frozen=True, slots=True)
class Fit:
    """How the values of one part of a column are written."""

    kind: pa.DataType
    """The type that the values are written as. For nested values only their kind counts."""
    path: str
    null: bool = True
    """Whether a null may be written."""
    is_number: bool = False
    """Whether NaN and infinity, which are strings in JSON, have no place."""
    formats: frozenset[str] = frozenset()
    """Any one of these formats a string must have. A time must have a year of four digits."""
    fields: tuple[Field, ...] = ()
    item: "Fit | None" = None
    names: tuple[str, ...] | None = None
    """The patterns of a map's keys, one of which each key must match. None for any key."""
    most: int | None = None
    """The most items of an array."""


def free(given: pa.DataType, path: str = "") -> Fit:
    """Return how a column is written without a schema.

    Raises `UnfitColumnError` for a type that JSON has no place for.
    """
    if pa.types.is_struct(given):
        _check_names(given, path)
        fields = (
            Field(each.name, place, free(each.type, below(path, each.name)))
            for place, each in enumerate(given)
        )
        return Fit(given, path, fields=tuple(fields))
    if pa.types.is_map(given):
        _check_keys(given, path)
        return Fit(given, path, item=free(given.item_type, f"{path}{{}}"))
    if pa.types.is_list(given):
        return Fit(given, path, item=free(given.value_type, f"{path}[]"))
    return Fit(written(given, path), path)


def written(given: pa.DataType, path: str) -> pa.DataType:
    """Return the type that values of a leaf are written as: the same values, in a type of Spark's.

    Raises `UnfitColumnError` for a type that JSON has no place for.
    """
    if given in _WIDER:
        return _WIDER[given]
    if pa.types.is_timestamp(given):
        return TIMESTAMP if given.tz else TIMESTAMP_NTZ
    try:
        return readable(given)
    except SchemaError as error:
        shown = f"it is of the type {given}, which JSON has no place for"
        raise UnfitColumnError(path, shown, error.expected) from None


_WIDER: Mapping[pa.DataType, pa.DataType] = {
    pa.null(): pa.null(),
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
}


def _check_names(given: pa.DataType, path: str) -> None:
    names = [field.name for field in given]
    twice = (
        [name for name in names if names.count(name) > 1] if len(set(names)) < len(names) else []
    )
    if twice:
        raise UnfitColumnError(below(path, twice[0]), "it is given twice", "Give each field once")


def _check_keys(given: pa.DataType, path: str) -> None:
    if not pa.types.is_string(given.key_type):
        shown = f"its keys are of the type {given.key_type}"
        raise UnfitColumnError(f"{path}{{}}", shown, "Names in JSON are strings")


# -- DDL -------------------------------------------------------------------------------------------


def fit_columns(
    given: pa.DataType, wanted: pa.DataType, ignored: Collection[str], path: str = ""
) -> Fit:
    """Return how a column is written as the type of a schema in DDL. Raises `UnfitColumnError`."""
    if pa.types.is_null(given):
        return Fit(given, path)
    if pa.types.is_struct(wanted) and pa.types.is_struct(given):
        place_of = places(
            [field.name for field in given], [field.name for field in wanted], path, ignored
        )
        fields = []
        for field in wanted:
            place, inner = place_of.get(field.name), below(path, field.name)
            kind = pa.null() if place is None else given[place].type
            if not field.nullable and pa.types.is_null(kind):
                missing_field(inner, f"{_in_ddl(field.type)} NOT NULL")
            fit = replace(fit_columns(kind, field.type, ignored, inner), null=field.nullable)
            fields.append(Field(field.name, place, fit, is_required=not field.nullable))
        return Fit(wanted, path, fields=tuple(fields))
    if pa.types.is_map(wanted) and pa.types.is_map(given):
        _check_keys(given, path)
        item = fit_columns(given.item_type, wanted.item_type, ignored, f"{path}{{}}")
        return Fit(wanted, path, item=item)
    if pa.types.is_list(wanted) and pa.types.is_list(given):
        item = fit_columns(given.value_type, wanted.value_type, ignored, f"{path}[]")
        return Fit(wanted, path, item=item)
    if pa.types.is_nested(wanted) or pa.types.is_nested(given) or not widens(given, wanted):
        unfit(path, given, _in_ddl(wanted))
    return Fit(wanted, path)


def _in_ddl(kind: pa.DataType) -> str:
    """Return the name of a type. A struct alone would be its columns."""
    return to_ddl(array_of(kind)).removeprefix("ARRAY<")[:-1]


# -- JSON Schema -----------------------------------------------------------------------------------


def fit_shape(given: pa.DataType, shape: SchemaGraph, ignored: Collection[str]) -> Fit:
    """Return how a column is written with a JSON Schema. Raises `UnfitColumnError`."""
    return _Fitting(shape, frozenset(ignored)).fit(given, ((0,),), "")


@dataclass
class _Fitting:
    """Comparison with one schema."""

    shape: SchemaGraph
    ignored: frozenset[str]
    tried: int = field(default=0)

    def fit(self, given: pa.DataType, options: Options, path: str) -> Fit:
        """Compare a type with what a schema says of its place. Any of its choices may fit."""
        places_there = self.shape.places(options, path)
        null = is_nullable(places_there)
        if pa.types.is_null(given):
            if not null:
                missing_field(path, described(places_there))
            return Fit(given, path)
        fits: list[Fit] = []
        errors: list[UnfitColumnError] = []
        for place in places_there:
            self.tried += 1
            if self.tried > MAX_TRIED:
                raise SchemaError(path, f"more than {MAX_TRIED} choices to compare", INSTEAD)
            try:
                fits.append(self._in(given, place, path))
            except UnfitColumnError as error:
                errors.append(error)
        if not fits:
            inner = [each for each in errors if each.column != path]
            if len(inner) == 1:
                raise inner[0]
            if len(errors) == 1:
                raise errors[0]
            unfit(path, given, described(places_there))
        return replace(reduce(_either, fits), null=null)

    def _in(self, given: pa.DataType, place: Place, path: str) -> Fit:
        """Compare a type with one choice."""
        if place.is_open:
            return free(given, path)
        names = place.likely
        if pa.types.is_struct(given) and "object" in names:
            return self._object(given, place, path)
        if pa.types.is_map(given) and "object" in names:
            return self._map(given, place, path)
        if pa.types.is_list(given) and "array" in names:
            return self._array(given, place, path)
        if pa.types.is_nested(given):
            unfit(path, given, described([place]))
        kind = written(given, path)
        return _leaf(kind, given, place, path)

    # -- objects

    def _object(self, given: pa.DataType, place: Place, path: str) -> Fit:
        _check_names(given, path)
        known = {name: number for number, name in enumerate(properties_of(place))}
        required = required_of(place)
        at = {each.name: number for number, each in enumerate(given)}
        fields: dict[str, Field] = {}
        for name in sorted(at, key=lambda each: known.get(each, len(known))):
            inner = below(path, name)
            if name not in known and inner in self.ignored:
                continue
            kind, options = given[at[name]].type, self.options(place, name, path)
            writes_null = not known and is_nullable(self.shape.places(options, inner))
            if name in required or writes_null or not pa.types.is_null(kind):
                fit = self.fit(kind, options, inner)
                fields[name] = Field(name, at[name], fit, name in required or writes_null)
        for name in required:
            if name not in fields:
                inner = below(path, name)
                fit = self.fit(pa.null(), self.options(place, name, path), inner)
                fields[name] = Field(name, None, fit, True)
        return Fit(given, path, fields=tuple(fields.values()))

    def options(self, place: Place, name: str, path: str) -> Options:
        """Return the nodes for a field. Raises `UnfitColumnError` if the object may not have it."""
        known = properties_of(place)
        is_alike = name not in known and name.lower() in {each.lower() for each in known}
        numbers = nodes_for(place, name)
        if is_alike or not self.shape.places((numbers,), path):
            unknown_field(name, known, path)
        return (numbers,)

    def _map(self, given: pa.DataType, place: Place, path: str) -> Fit:
        _check_keys(given, path)
        fixed = [*properties_of(place), *required_of(place)]
        if fixed:
            unfit(path, given, f"object with the field {fixed[0]!r}", "Give a STRUCT")
        item = self.fit(given.item_type, self._values(place, given, path), f"{path}{{}}")
        closed = [node for node in place.objects if self._is_closed(node, path)]
        names = tuple(name for each in closed for name, _ in each.patterns or ())
        return Fit(given, path, item=item, names=names if closed else None)

    def _values(self, place: Place, given: pa.DataType, path: str) -> Options:
        """Return the nodes that the values of a map must fit, whatever the keys are."""
        numbers: dict[int, None] = {}
        for node in place.objects:
            patterns = [number for _, number in node.patterns or ()]
            if self._is_closed(node, path):
                if not patterns:
                    unfit(path, given, "object without any field")
            else:
                patterns += [each for each in (node.more, node.others) if each is not None]
            numbers |= dict.fromkeys(patterns)
        return (tuple(numbers),)

    def _is_closed(self, node: Node, path: str) -> bool:
        """Whether an object may have no fields but those of `properties` and the patterns."""
        more = [each for each in (node.more, node.others) if each is not None]
        return any(not self.shape.places(((each,),), path) for each in more)

    # -- arrays

    def _array(self, given: pa.DataType, place: Place, path: str) -> Fit:
        numbers: dict[int, None] = {}
        most: int | None = None
        for node in place.arrays:
            numbers |= dict.fromkeys(node.prefix)
            if node.items is not None:
                if self.shape.places(((node.items,),), path):
                    numbers[node.items] = None
                else:
                    most = min(len(node.prefix), len(node.prefix) if most is None else most)
        item = self.fit(given.value_type, (tuple(numbers),), f"{path}[]")
        return Fit(given, path, item=item, most=most)


def _leaf(kind: pa.DataType, given: pa.DataType, place: Place, path: str) -> Fit:
    """Compare the type that is written with one choice."""
    wanted = described([place])
    if pa.types.is_timestamp(kind) and kind.tz is None and "date-time" in place.formats:
        unfit(path, given, wanted, "Such a time has a time zone: give it one")
    name = json_type(kind)
    if name not in place.likely:
        unfit(path, given, wanted)
    format = _FORMAT_OF.get(kind, "")
    if format and format not in (*place.formats, *place.encodings):
        unfit(path, given, wanted)
    formats = frozenset({format} if format else formats_of(place)) if name == "string" else None
    return Fit(kind, path, is_number=name == "number", formats=formats or frozenset())


_FORMAT_OF: Mapping[pa.DataType, str] = {
    pa.date32(): "date",
    TIMESTAMP: "date-time",
    TIMESTAMP_NTZ: "date-time",
    pa.binary(): BASE64,
}


def json_type(kind: pa.DataType) -> str:
    """Return the type in JSON of a leaf's values: `integer`, and `number` for other numbers."""
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0):
        return "integer"
    return "number" if pa.types.is_floating(kind) or pa.types.is_decimal(kind) else "string"


def formats_of(place: Place) -> list[str]:
    """Return the formats of a place that strings are checked for."""
    known = [format_name for format_name in place.formats if format_name in FORMATS]
    return [*known, *(encoding for encoding in place.encodings if encoding == BASE64)][:1]


def is_nullable(choices: Iterable[Place]) -> bool:
    """Whether a null fits one of the places."""
    return any("null" in choice.types for choice in choices)


def properties_of(place: Place) -> list[str]:
    """Return the names of `properties`, in their order."""
    names = (name for node in place.objects for name, _ in node.properties or ())
    return list(dict.fromkeys(names))


def required_of(place: Place) -> list[str]:
    """Return the names that an object must have."""
    return list(dict.fromkeys(name for node in place.nodes for name in node.required))


def nodes_for(place: Place, name: str) -> tuple[int, ...]:
    """Return the nodes that a field's value must fit all."""
    numbers: dict[int, None] = {}
    is_evaluated = False
    for node in place.objects:
        own = [number for each, number in node.properties or () if each == name]
        own += [number for each, number in node.patterns or () if matches(each, name)]
        if not own and node.more is not None:
            own = [node.more]
        is_evaluated |= bool(own)
        numbers |= dict.fromkeys(own)
    if not is_evaluated:
        numbers |= dict.fromkeys(each.others for each in place.objects if each.others is not None)
    return tuple(numbers)


def matches(pattern: str, name: str) -> bool:
    """Whether a name matches one of `patternProperties`. A pattern of no sense matches all."""
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return True


def described(places: Collection[Place]) -> str:
    """Return what may stand in a place: `integer`, `object or string (date-time)`."""
    names: dict[str, None] = {}
    for place in places:
        if place.is_open:
            return "any value"
        types = place.likely - NULL
        for each in sorted(types - {"integer"} if "number" in types else types):
            of = ", ".join(formats_of(place)) if each == "string" else ""
            names[f"{each} ({of})" if of else each] = None
    return " or ".join(names) or ("no value but null" if places else "no value")


def _either(one: Fit, other: Fit) -> Fit:
    """Return how values are written that fit either of two choices."""
    both = one.formats | other.formats if one.formats and other.formats else frozenset()
    fits = {field.name: field for field in other.fields}
    fields = {
        field.name: _either_field(field, fits[field.name])
        for field in one.fields
        if field.name in fits
    }
    alone = (each for each in (*one.fields, *other.fields) if each.name not in fields)
    fields |= {each.name: each for each in alone if each.place is not None}
    return replace(
        one,
        null=one.null or other.null,
        is_number=one.is_number and other.is_number,
        formats=both,
        fields=tuple(fields.values()),
        item=one.item and other.item and _either(one.item, other.item),
        names=None if one.names is None or other.names is None else (*one.names, *other.names),
        most=None if one.most is None or other.most is None else max(one.most, other.most),
    )


def _either_field(one: Field, other: Field) -> Field:
    """Return a field that one of two choices may require. A null of it is written if it may be."""
    both = one.is_required and other.is_required
    one_of = (one.is_required or other.is_required) and one.fit.null and other.fit.null
    return replace(one, fit=_either(one.fit, other.fit), is_required=both or one_of)


def with_nulls(fit: Fit) -> Fit:
    """Return the same, but null fields are written where the schema allows a null."""
    fields = (
        replace(field, fit=with_nulls(field.fit), is_required=field.is_required or field.fit.null)
        for field in fit.fields
    )
    return replace(fit, fields=tuple(fields), item=fit.item and with_nulls(fit.item))
