"""Graph of what a JSON Schema says about values, with its references followed.

Each node is one schema object of the text. Another node is given by its number, so that a schema
that contains itself is a graph, too. `SchemaGraph.places` says what may stand in one place.

Keywords that only restrict values of a type (`pattern`, `minimum`, `not`, `if`, ...) are not here.
https://json-schema.org/specification

The module is long because the graph and its building both know each keyword's place in a `Node`.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

from spark_kafka_source.values.errors import RecursiveTypeError, SchemaError, quoted
from spark_kafka_source.values.fitting import below
from spark_kafka_source.values.json.documents import (
    Documents,
    LeadsNowhereError,
    Scope,
    known_names,
)
from spark_kafka_source.values.schema_text import SchemaText

MAX_WAYS = 1_000
"""The most choices of `oneOf` and `anyOf` for one place, combined."""
MAX_CHAIN = 100
"""The most references after each other for one place."""
INSTEAD = "Give the schema as DDL, where a STRING keeps the text"

Types = frozenset[str]
Scalar = str | bool | int | float | None
Options = tuple[tuple[int, ...], ...]
"""Nodes for one place: a value must fit all of one tuple."""

ANY: Types = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
"""The types of values. Here `number` stands for numbers that are no `integer`."""
NULL: Types = frozenset({"null"})
_NAMED = {**{each: frozenset({each}) for each in ANY}, "number": frozenset({"integer", "number"})}
_OF_VALUES: Mapping[type[Any], Types] = {
    bool: _NAMED["boolean"],
    int: _NAMED["integer"],
    str: _NAMED["string"],
    type(None): NULL,
    list: _NAMED["array"],
    dict: _NAMED["object"],
}
_OBJECT = ("properties", "patternProperties", "additionalProperties")
_ARRAY = ("items", "prefixItems")
_STRING = ("format", "contentEncoding")


@dataclass(frozen=True, slots=True)
class Node:
    """One schema object. `None` stands for a keyword that is not there."""

    types: Types = ANY
    format: str = ""
    encoding: str = ""
    properties: tuple[tuple[str, int], ...] | None = None
    patterns: tuple[tuple[str, int], ...] | None = None
    more: int | None = None
    """`additionalProperties`."""
    others: int | None = None
    """`unevaluatedProperties`."""
    required: tuple[str, ...] = ()
    prefix: tuple[int, ...] = ()
    """`prefixItems`, or a list of `items`."""
    items: int | None = None
    """The items after those of `prefix`."""
    together: tuple[tuple[str, int], ...] = ()
    """The nodes that must fit, too: the target of a `$ref` with its text, and those of `allOf`."""
    choices: tuple[tuple[int, ...], ...] = ()
    """The nodes of `oneOf` and of `anyOf`."""
    values: tuple[Scalar, ...] | None = None
    """Values of `const` or `enum`. None without them, or if a value is an object or an array."""

    @property
    def is_object(self) -> bool:
        """Whether it describes the fields of objects."""
        fields = (self.properties, self.patterns, self.more, self.others)
        return any(field is not None for field in fields)

    @property
    def is_array(self) -> bool:
        """Whether it describes the items of arrays."""
        return bool(self.prefix) or self.items is not None

    @property
    def is_string(self) -> bool:
        """Whether it describes the texts of strings."""
        return bool(self.format or self.encoding)

    @property
    def is_bare(self) -> bool:
        """Whether it gives nothing but types."""
        return not (self.is_object or self.is_array or self.is_string or self.required)


@dataclass(frozen=True, slots=True)
class Place:
    """Values that fit all `nodes`, and are of one of the `types`."""

    types: Types
    numbers: tuple[int, ...] = ()
    nodes: tuple[Node, ...] = field(default=(), compare=False)

    @property
    def is_open(self) -> bool:
        """Whether nothing says of which type a value is."""
        return self.likely == ANY

    @property
    def likely(self) -> Types:
        """The types of its values. Without a type, keywords for objects mean objects, and so on."""
        if self.types == ANY:
            if self.objects:
                return frozenset({"object"})
            if self.arrays:
                return frozenset({"array"})
            if self.formats or self.encodings:
                return frozenset({"string"})
        return self.types

    @property
    def objects(self) -> list[Node]:
        """The nodes that describe fields."""
        return [node for node in self.nodes if node.is_object]

    @property
    def arrays(self) -> list[Node]:
        """The nodes that describe items."""
        return [node for node in self.nodes if node.is_array]

    @property
    def formats(self) -> list[str]:
        """The formats of its strings."""
        return list(dict.fromkeys(node.format for node in self.nodes if node.format))

    @property
    def encodings(self) -> list[str]:
        """The encodings of bytes in its strings."""
        return list(dict.fromkeys(node.encoding for node in self.nodes if node.encoding))


@dataclass(frozen=True)
class SchemaGraph:
    """All nodes that can be reached from the first, which is the whole schema."""

    nodes: tuple[Node, ...]

    @classmethod
    def of(cls, schema: SchemaText) -> "SchemaGraph":
        """Parse a schema. Raises `SchemaError` with the path of a part that is none.

        Raises `ConfigurationError` for a `$ref` without the package that resolves it.
        """
        documents = Documents.of(schema)
        building = _Building(documents)
        return cls(building.nodes(documents.root))

    def __reduce__(self) -> tuple[Any, ...]:
        return SchemaGraph, (self.nodes,)

    def places(
        self, options: Options, path: str, above: frozenset[int] = frozenset()
    ) -> list[Place]:
        """Return the places that values may have. There is none if no value fits.

        Raises `SchemaError` for too many, and `RecursiveTypeError` for a reference to one of the
        nodes `above`.
        """
        choices: dict[Place, None] = {}
        for numbers in options:
            every = (self._of(number, path, above) for number in numbers)
            whole = reduce(lambda one, other: _both(one, other, path), every, [Place(ANY)])
            choices |= dict.fromkeys(whole)
        return list(choices)

    def spread(self, options: Options) -> frozenset[int]:
        """Return the numbers of all nodes that describe a place."""
        reached: set[int] = set()
        left = [number for numbers in options for number in numbers]
        while left:
            number = left.pop()
            if number not in reached:
                reached.add(number)
                node = self.nodes[number]
                left += [target for _, target in node.together]
                left += [each for group in node.choices for each in group]
        return frozenset(reached)

    def allows(self, number: int, value: Any) -> bool:
        """Whether `const` and `enum` of a node, and of those that it refers to, have the value.

        Objects and arrays are not compared, nor what is no value of JSON.
        """
        if not isinstance(value, Scalar):
            return True
        node = self.nodes[number]
        return (
            (node.values is None or any(_is_same(value, each) for each in node.values))
            and all(self.allows(target, value) for _, target in node.together)
            and all(any(self.allows(each, value) for each in group) for group in node.choices)
        )

    def _of(self, number: int, path: str, above: frozenset[int], chain: int = 0) -> list[Place]:
        """Return the places for values that fit a node. `chain` is its distance by references."""
        kept = self._kept.get(number)
        if kept is not None and not above & self.spread(((number,),)):
            return kept
        if chain > MAX_CHAIN:
            raise SchemaError(path, f"a chain of more than {MAX_CHAIN} references", INSTEAD)
        node, above = self.nodes[number], above | {number}
        choices = [Place(ANY)]
        for text, target in node.together:
            if target in above:
                raise RecursiveTypeError(path, f"{quoted(text)} holds itself", INSTEAD)
            choices = _both(choices, self._of(target, path, above, chain + 1), path)
        for group in node.choices:
            members: dict[Place, None] = {}
            for each in group:
                members |= dict.fromkeys(self._of(each, path, above, chain + 1))
            choices = _both(choices, list(members), path)
        own = Place(node.types) if node.is_bare else Place(node.types, (number,), (node,))
        choices = _both(choices, [own], path)
        self._kept[number] = choices
        return choices

    @cached_property
    def _kept(self) -> dict[int, list[Place]]:
        return {}


def _both(one: list[Place], other: list[Place], path: str) -> list[Place]:
    """Return the places for values that fit a place of each list."""
    found: dict[Place, None] = {}
    for left in one:
        for right in other:
            types = left.types & right.types
            if types:
                nodes = dict(zip(left.numbers, left.nodes, strict=True))
                nodes |= zip(right.numbers, right.nodes, strict=True)
                found[Place(types, tuple(nodes), tuple(nodes.values()))] = None
        if len(found) > MAX_WAYS:
            raise SchemaError(path, f"more than {MAX_WAYS} choices combined", INSTEAD)
    return list(found)


@dataclass
class _Building:
    """Nodes of a schema, numbered in the order in which they are found."""

    documents: Documents
    numbers: dict[int, int] = field(default_factory=dict)
    """By the identity of the schema object."""
    left: deque[tuple[Any, Scope, str]] = field(default_factory=deque)

    def nodes(self, root: Any) -> tuple[Node, ...]:
        """Return the node of `root` and the nodes of all schemas that it contains or refers to."""
        self._number(root, self.documents.scope, "")
        made = []
        while self.left:
            made.append(self._node(*self.left.popleft()))
        return tuple(made)

    def _number(self, node: Any, scope: Scope, path: str) -> int:
        """Return the number of a node. Its scope is given."""
        # True and False are one object each. They have no references, so one number is enough.
        if id(node) not in self.numbers:
            if not isinstance(node, dict | bool):
                raise SchemaError(path, f"{quoted(node)} describes no value", "Give a JSON Schema")
            self.numbers[id(node)] = len(self.numbers)
            self.left.append((node, scope, path))
        return self.numbers[id(node)]

    def _below(self, node: Any, scope: Scope, path: str) -> int:
        """Return the number of a node that is a part of another."""
        return self._number(node, scope.at(node), path)

    def _node(self, node: Any, scope: Scope, path: str) -> Node:
        if isinstance(node, bool):
            return Node() if node else Node(types=frozenset())
        references = tuple(self._references(node, scope, path))
        if references and scope.takes_references_alone:
            return Node(together=references)
        all_of, one_of, any_of = (
            tuple(self._below(each, scope, path) for each in _listed(node, name, path))
            for name in ("allOf", "oneOf", "anyOf")
        )
        return Node(
            types=_types(node, path),
            format=_text(node, "format"),
            encoding=_text(node, "contentEncoding"),
            required=tuple(each for each in _strings(node.get("required"))),
            together=(*references, *(("allOf", each) for each in all_of)),
            choices=tuple(each for each in (one_of, any_of) if each),
            values=_values(node),
            **self._fields(node, scope, path),
            **self._items(node, scope, path),
        )

    def _references(self, node: Any, scope: Scope, path: str) -> Iterator[tuple[str, int]]:
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if keyword not in node:
                continue
            text = node[keyword]
            if not isinstance(text, str):
                raise SchemaError(path, f"{keyword} is {quoted(text)}", "Give a text")
            try:
                target, inner = scope.target(text)
            except LeadsNowhereError:
                known = known_names(self.documents.names)
                expected = f"It is to a place in this schema or its references, which are {known}"
                raise SchemaError(
                    path, f"{keyword} {quoted(text)} leads nowhere", expected
                ) from None
            if keyword != "$ref" and self.documents.is_dynamic:
                found = f"{keyword} {quoted(text)} where several anchors are dynamic"
                raise SchemaError(path, found, "Use $ref, whose target is always the same")
            yield text, self._number(target, inner, path)

    def _fields(self, node: Any, scope: Scope, path: str) -> dict[str, Any]:
        properties, patterns = (_members(node, name, path) for name in _OBJECT[:2])
        keywords: dict[str, Any] = {"properties": None, "patterns": None}
        if properties is not None:
            keywords["properties"] = tuple(
                (name, self._below(each, scope, below(path, name)))
                for name, each in properties.items()
            )
        of_any = f"{path}{{}}"
        if patterns is not None:
            keywords["patterns"] = tuple(
                (name, self._below(each, scope, of_any)) for name, each in patterns.items()
            )
        names = (("more", "additionalProperties"), ("others", "unevaluatedProperties"))
        for key, name in names:
            if name in node:
                keywords[key] = self._below(node[name], scope, of_any)
        return keywords

    def _items(self, node: Any, scope: Scope, path: str) -> dict[str, Any]:
        inner = f"{path}[]"
        first, rest = node.get("prefixItems"), node.get("items")
        if isinstance(rest, list):
            first, rest = rest, node.get("additionalItems")
        prefix = first if isinstance(first, list) else []
        return {
            "prefix": tuple(self._below(each, scope, inner) for each in prefix),
            "items": None if rest is None else self._below(rest, scope, inner),
        }


def _types(node: Mapping[str, Any], path: str) -> Types:
    """Return the types that a node allows. Without `type` those of its values in `enum`."""
    if "type" in node:
        given = node["type"]
        names = given if isinstance(given, list) else [given]
        if not all(isinstance(name, str) and name in _NAMED for name in names):
            found = f"a value of type {', '.join(map(quoted, names))}"
            raise SchemaError(path, found, f"Types are {', '.join(sorted(ANY))}")
        return _any_of(_NAMED[name] for name in names)
    if "const" in node:
        return _of_value(node["const"])
    if "enum" not in node:
        return ANY
    values = node["enum"]
    if not isinstance(values, list):
        raise SchemaError(path, f"enum is {quoted(values)}", "Give a list of values")
    return _any_of(map(_of_value, values))


def _any_of(types: Iterable[Types]) -> Types:
    none: Types = frozenset()
    return none.union(*types)


def _of_value(value: Any) -> Types:
    """Return the types of a value. A float without a fraction is an integer, too."""
    if isinstance(value, float):
        return _NAMED["number"] if value.is_integer() else frozenset({"number"})
    return _OF_VALUES[type(value)]


def _values(node: Mapping[str, Any]) -> tuple[Scalar, ...] | None:
    allowed = [node["const"]] if "const" in node else node.get("enum")
    is_known = isinstance(allowed, list) and all(isinstance(each, Scalar) for each in allowed)
    return tuple(allowed or ()) if is_known else None


def _is_same(one: Scalar, other: Scalar) -> bool:
    """Whether two values are the same in JSON, where 1 is 1.0, and no true."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _text(node: Mapping[str, Any], name: str) -> str:
    text = node.get(name)
    return text if isinstance(text, str) else ""


def _strings(names: Any) -> list[str]:
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _listed(node: Mapping[str, Any], name: str, path: str) -> list[Any]:
    value = node.get(name, [])
    if not isinstance(value, list):
        raise SchemaError(path, f"{name} is {quoted(value)}", "Give a list of schemas")
    return value


def _members(node: Mapping[str, Any], name: str, path: str) -> Mapping[str, Any] | None:
    members = node.get(name)
    if members is not None and not isinstance(members, dict):
        raise SchemaError(path, f"{name} are {quoted(members)}", "Give an object")
    return members
