"""JSON Schema, drafts 4 to 2020-12 as registries hold them, to Arrow types.

| JSON Schema | column |
|---|---|
| integer, number, boolean | BIGINT, DOUBLE, BOOLEAN |
| string; with format `date`, `date-time` | STRING; DATE, TIMESTAMP |
| string with contentEncoding `base64` | BINARY |
| several of these types; `enum` or `const` of several | DOUBLE for numbers, else STRING: the text |
| null, or no type given | STRING: the text |
| array | ARRAY; of STRING if `items` are not described; tuples of one type |
| object with `properties` | STRUCT of these; other properties are not read |
| object without | MAP of `additionalProperties` or `patternProperties`, or else of STRING |
| `oneOf`, `anyOf` of one and null | that one |
| `allOf`, or keywords beside a `$ref` | what fits all; a STRUCT has the fields of all |
| `$ref` | the type of its target, which `documents` finds |

Keywords that only restrict values (`required`, `pattern`, `minimum`, `not`, `if`, ...) are ignored.
Every column is nullable. https://json-schema.org/specification
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

import pyarrow as pa

from spark_kafka_source.values.ddl import TIMESTAMP, array_of
from spark_kafka_source.values.errors import SchemaError, quoted
from spark_kafka_source.values.fitting import below
from spark_kafka_source.values.json.schema import INSTEAD, NULL, Node, Options, Place, SchemaGraph
from spark_kafka_source.values.schema_text import SchemaText

MAX_COLUMNS = 10_000
MAX_DEPTH = 100

_STRING = pa.string()
_FORMATS: Mapping[str, pa.DataType] = {"date": pa.date32(), "date-time": TIMESTAMP}
_NUMBERS = {pa.int64(), pa.float64()}


def arrow_type(schema: SchemaText) -> pa.DataType:
    """Return the type of the values that the schema describes.

    Raises `SchemaError` with the path of a part that cannot be a column, and `RecursiveTypeError`.
    """
    return column_type(SchemaGraph.of(schema))


def column_type(shape: SchemaGraph) -> pa.DataType:
    """Return the type of the values that a shape describes. Raises as `arrow_type` does."""
    return _Reading(shape).type(((0,),), "", frozenset())


@dataclass
class _Reading:
    """Walk through the shape, from the top to the columns of values."""

    shape: SchemaGraph
    columns: int = 0
    depth: int = 0

    def type(self, options: Options, path: str, above: frozenset[int]) -> pa.DataType:
        """Return the type of the values in one place. `above` are the nodes that it is within."""
        self.columns += 1
        self.depth += 1
        if self.columns > MAX_COLUMNS or self.depth > MAX_DEPTH:
            found = f"more than {MAX_COLUMNS} columns, or {MAX_DEPTH} within each other"
            raise SchemaError(path, found, INSTEAD)
        places = self.shape.places(options, path, above)
        if not places:
            raise SchemaError(path, "no value fits all that its schema says", INSTEAD)
        within_these = above | self.shape.spread(options)
        kind = self._type(places, path, within_these)
        self.depth -= 1
        return kind

    def _type(self, places: list[Place], path: str, above: frozenset[int]) -> pa.DataType:
        there = [place for place in places if place.types != NULL]
        if not there or any(each.is_open for each in there):
            return _STRING
        return _one_of([self._of(each, path, above) for each in there], path)

    def _of(self, place: Place, path: str, above: frozenset[int]) -> pa.DataType:
        names = place.likely - NULL
        if names == {"object"}:
            return self._object(place.objects, path, above)
        if names == {"array"}:
            return self._array(place.arrays, path, above)
        if names & {"object", "array"}:
            found = f"a value of type {' or '.join(sorted(names))}"
            raise SchemaError(path, found, f"One type has one column. {INSTEAD}")
        kinds = [_number(names)] if names & {"integer", "number"} else []
        kinds += [pa.bool_()] if "boolean" in names else []
        kinds += [_string(place)] if "string" in names else []
        return _one_of(kinds, path)

    def _object(self, nodes: list[Node], path: str, above: frozenset[int]) -> pa.DataType:
        fields: dict[str, tuple[int, ...]] = {}
        for node in nodes:
            for name, number in node.properties or ():
                fields[name] = (*fields.get(name, ()), number)
        if fields:
            return pa.struct(
                [
                    (name, self.type((numbers,), below(path, name), above))
                    for name, numbers in fields.items()
                ]
            )
        described = [self._sound(values_of(each)) for each in nodes if values_of(each)]
        if not all(described):
            return pa.struct([])
        return pa.map_(_STRING, self._common(described, f"{path}{{}}", above))

    def _array(self, nodes: list[Node], path: str, above: frozenset[int]) -> pa.DataType:
        described = [self._sound(items_of(node)) for node in nodes]
        return array_of(self._common(list(filter(None, described)), f"{path}[]", above))

    def _common(self, described: list[list[int]], path: str, above: frozenset[int]) -> pa.DataType:
        """Return the type of values that fit one number of each list."""
        return self.type(tuple(product(*described)), path, above)

    def _sound(self, numbers: Iterable[int]) -> list[int]:
        """Return the nodes that some value fits."""
        return [number for number in numbers if self.shape.nodes[number].types]


def values_of(node: Node) -> list[int]:
    """Return the nodes for the values of an object without `properties`."""
    more = [each for each in (node.more, node.others) if each is not None]
    return [*(number for _, number in node.patterns or ()), *more]


def items_of(node: Node) -> list[int]:
    """Return the nodes for the items of an array."""
    return [*node.prefix, *([] if node.items is None else [node.items])]


def _number(names: Iterable[str]) -> pa.DataType:
    return pa.float64() if "number" in names else pa.int64()


def _string(place: Place) -> pa.DataType:
    if "base64" in place.encodings:
        return pa.binary()
    kinds = [_FORMATS[format_name] for format_name in place.formats if format_name in _FORMATS]
    return kinds[0] if kinds else _STRING


def _one_of(kinds: list[pa.DataType], path: str) -> pa.DataType:
    """Return a type for any of these: one type, or for scalars a number or a text."""
    several = list(dict.fromkeys(kinds))
    if len(several) == 1:
        return several[0]
    if set(several) <= _NUMBERS:
        return pa.float64()
    if any(pa.types.is_nested(each) for each in several):
        shown = " or ".join(sorted({str(each) for each in several}))
        raise SchemaError(path, f"any of {quoted(shown)}", f"One type has one column. {INSTEAD}")
    return _STRING
